"""rag_kit.evaluation"""
