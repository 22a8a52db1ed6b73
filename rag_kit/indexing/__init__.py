"""Reading, splitting and indexing documents, and the one write path that keeps an index whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_kit._lazy import lazy_names

if TYPE_CHECKING:
    from rag_kit.indexing.bm25.index import BM25Index as BM25Index
    from rag_kit.indexing.document_index.index import DocumentIndex as DocumentIndex
    from rag_kit.indexing.ingestion.run import ingest as ingest
    from rag_kit.indexing.ingestion.settings import IngestOptions as IngestOptions
    from rag_kit.indexing.locating import locate as locate
    from rag_kit.indexing.readers.api import read as read
    from rag_kit.indexing.readers.formats import register_reader as register_reader
    from rag_kit.indexing.splitting.api import split as split

__all__, __getattr__, __dir__ = lazy_names(__name__)
