"""Self-RAG: retrieval on demand, critique, and a beam of segments; or the loop that grades and tries again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_kit._lazy import lazy_attributes

if TYPE_CHECKING:
    from rag_kit.graphs.self_rag.build import build_self_rag
    from rag_kit.graphs.self_rag.context import SelfRagContext
    from rag_kit.graphs.self_rag.state import SelfRagState

__all__ = ["SelfRagContext", "SelfRagState", "build_self_rag"]

__getattr__, __dir__ = lazy_attributes(
    __name__,
    {
        "build_self_rag": ".build",
        "SelfRagContext": ".context",
        "SelfRagState": ".state",
    },
)
