"""rag_kit.documents"""
