"""Corrective RAG: judge what was retrieved, then refine it, look outside, or both.

Paper: Yan et al., Corrective Retrieval Augmented Generation, arXiv 2401.15884.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_kit._lazy import lazy_attributes

if TYPE_CHECKING:
    from rag_kit.graphs.crag.build import build_crag
    from rag_kit.graphs.crag.context import CragContext
    from rag_kit.graphs.crag.state import CragState, PassageGrading, Strip

__all__ = ["CragContext", "CragState", "PassageGrading", "Strip", "build_crag"]

__getattr__, __dir__ = lazy_attributes(
    __name__,
    {
        "CragContext": ".context",
        "CragState": ".state",
        "PassageGrading": ".state",
        "Strip": ".state",
        "build_crag": ".build",
    },
)
