"""Retrieval in a conversation: follow-up questions are made complete before they are searched for."""
