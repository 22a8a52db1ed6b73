"""Conversational RAG: threads with a summary, facts about a user, questions to ask next."""
