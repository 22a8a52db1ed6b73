"""rag_kit.prompts"""
