"""rag_kit.graphs"""
