"""Identity, provenance and filters of documents; the bottom layer, which imports no LangChain module.

A document is identified by a metadata key if one is named, else by ``Document.id``, else by a hash of its
text. Results are copies, and carry in ``metadata["rag_kit"]`` where they came from, as a string for ``get_provenance``.
"""

from __future__ import annotations

from rag_kit._redact import redact
from rag_kit.documents.display import clean_text
from rag_kit.documents.explanation import explain
from rag_kit.documents.filters import Filter, combine_filters, compile_filter, matches, validate_filter
from rag_kit.documents.identity import content_hash, copy_document, document_keys
from rag_kit.documents.provenance import PROVENANCE_KEY, add_note, get_provenance, with_provenance

__all__ = [
    "PROVENANCE_KEY",
    "Filter",
    "add_note",
    "clean_text",
    "combine_filters",
    "compile_filter",
    "content_hash",
    "copy_document",
    "document_keys",
    "explain",
    "get_provenance",
    "matches",
    "redact",
    "validate_filter",
    "with_provenance",
]
