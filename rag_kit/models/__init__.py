"""rag_kit.models"""
