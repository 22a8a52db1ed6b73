"""Trees of summaries over the passages of an index, as RAPTOR makes them."""

from __future__ import annotations

from rag_kit.indexing.raptor.build import RaptorReport, build_raptor
from rag_kit.indexing.raptor.tree import RaptorTree

__all__ = ["RaptorReport", "RaptorTree", "build_raptor"]
