"""rag_kit.text"""
