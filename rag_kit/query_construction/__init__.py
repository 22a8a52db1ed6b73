"""rag_kit.query_construction"""
