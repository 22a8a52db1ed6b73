"""Conversational RAG: threads with a summary, facts about a user, questions to ask next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_kit._lazy import lazy_attributes

if TYPE_CHECKING:
    from rag_kit.graphs.conversational.build import build_conversational_rag
    from rag_kit.graphs.conversational.context import ConversationalContext
    from rag_kit.graphs.conversational.facts import aforget_facts, forget_facts
    from rag_kit.graphs.conversational.state import ConversationalState

__all__ = [
    "ConversationalContext",
    "ConversationalState",
    "aforget_facts",
    "build_conversational_rag",
    "forget_facts",
]

__getattr__, __dir__ = lazy_attributes(
    __name__,
    {
        "ConversationalContext": ".context",
        "ConversationalState": ".state",
        "aforget_facts": ".facts",
        "build_conversational_rag": ".build",
        "forget_facts": ".facts",
    },
)
