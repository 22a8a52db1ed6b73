"""rag_kit.concurrency"""
