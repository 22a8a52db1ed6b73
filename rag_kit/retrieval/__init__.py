"""rag_kit.retrieval"""
