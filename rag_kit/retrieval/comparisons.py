"""Questions that compare several things; the rules are in `rag_kit.text.comparisons`."""

from __future__ import annotations

from rag_kit.text.comparisons import entity_queries, uncovered

__all__ = ["entity_queries", "uncovered"]
