"""rag_kit.indexing"""
