"""Retrieval in a conversation: follow-up questions are made complete before they are searched for."""

from __future__ import annotations

from rag_kit.retrieval.conversational.retriever import ConversationalRetriever

__all__ = ["ConversationalRetriever"]
