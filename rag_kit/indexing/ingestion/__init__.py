"""Files into an index: what changed is read, split, embedded and written; the rest is left alone."""

from __future__ import annotations

from rag_kit.indexing.ingestion.report import IngestReport
from rag_kit.indexing.ingestion.run import ingest

__all__ = ["IngestReport", "ingest"]
