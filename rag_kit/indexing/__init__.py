"""Reading, splitting and indexing documents, and the one write path that keeps an index whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_kit._lazy import lazy_attributes

if TYPE_CHECKING:
    from rag_kit.indexing.bm25 import BM25Index
    from rag_kit.indexing.document_index import DocumentIndex
    from rag_kit.indexing.files import iter_files
    from rag_kit.indexing.ingestion import IngestReport, ingest
    from rag_kit.indexing.readers import read, register_reader, supported_suffixes
    from rag_kit.indexing.sparse import SparseIndex, TfidfEncoder
    from rag_kit.indexing.splitting import split

__all__ = [
    "BM25Index",
    "DocumentIndex",
    "IngestReport",
    "SparseIndex",
    "TfidfEncoder",
    "ingest",
    "iter_files",
    "read",
    "register_reader",
    "split",
    "supported_suffixes",
]

__getattr__, __dir__ = lazy_attributes(
    __name__,
    {
        "BM25Index": ".bm25",
        "DocumentIndex": ".document_index",
        "IngestReport": ".ingestion",
        "SparseIndex": ".sparse",
        "TfidfEncoder": ".sparse",
        "ingest": ".ingestion",
        "iter_files": ".files",
        "read": ".readers",
        "register_reader": ".readers",
        "split": ".splitting",
        "supported_suffixes": ".readers",
    },
)
