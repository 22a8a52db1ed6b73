"""Ranking metrics on the ids of the retrieved passages, computed by ir-measures."""

from __future__ import annotations

from rag_kit._lazy import lazy_attributes

__all__ = ["NAMES", "RankingMetric", "ranked_ids", "ranking"]

__getattr__, __dir__ = lazy_attributes(
    __name__,
    {
        "NAMES": ".metric",
        "RankingMetric": ".metric",
        "ranked_ids": ".ids",
        "ranking": ".metric",
    },
)
