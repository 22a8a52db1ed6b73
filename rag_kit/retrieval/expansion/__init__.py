"""Query expansion: more terms for the keyword leg, from a model, a thesaurus or the first results."""

from __future__ import annotations

from rag_kit.retrieval.expansion.feedback import RelevanceFeedback
from rag_kit.retrieval.expansion.retriever import ExpansionRetriever
from rag_kit.retrieval.expansion.thesaurus import Thesaurus

__all__ = ["ExpansionRetriever", "RelevanceFeedback", "Thesaurus"]
