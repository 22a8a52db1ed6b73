"""One write path for text, metadata, vectors and the keyword index of a set of documents."""

from __future__ import annotations

from rag_kit.indexing.document_index.index import DocumentIndex
from rag_kit.indexing.document_index.report import IndexReport
from rag_kit.indexing.document_index.writing import WriteReport

__all__ = ["DocumentIndex", "IndexReport", "WriteReport"]
