"""rag_kit.cli"""
