"""Cutting documents into chunks: by structure first, then between sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_kit._lazy import lazy_attributes

if TYPE_CHECKING:
    from rag_kit.indexing.splitting.api import split
    from rag_kit.indexing.splitting.packing import Span, split_spans

__all__ = ["Span", "split", "split_spans"]

__getattr__, __dir__ = lazy_attributes(
    __name__, {"split": ".api", "split_spans": ".packing", "Span": ".packing"}
)
