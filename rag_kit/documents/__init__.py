"""Identity, provenance and filters of documents; the bottom layer, which imports no LangChain module.

A document is identified by a metadata key if one is named, else by ``Document.id``, else by a hash of its
text. Results are copies, and carry in ``metadata["rag_kit"]`` where they came from, as one
string; ``get_provenance`` reads it, ``explain`` shows it.
"""

from __future__ import annotations

from rag_kit._redact import redact
from rag_kit.documents.clean import clean_text
from rag_kit.documents.explanation import Explanation, explain
from rag_kit.documents.filters import Filter, combine_filters, compile_filter, matches, validate_filter
from rag_kit.documents.filters_chroma import to_chroma
from rag_kit.documents.identity import content_hash, copy_document, document_key, document_keys
from rag_kit.documents.plain import to_plain
from rag_kit.documents.provenance import (
    PROVENANCE_KEY,
    add_note,
    first_stage,
    get_provenance,
    peek_provenance,
    peek_score,
    strip_provenance,
    with_provenance,
)

__all__ = [
    "PROVENANCE_KEY",
    "Explanation",
    "Filter",
    "add_note",
    "clean_text",
    "combine_filters",
    "compile_filter",
    "content_hash",
    "copy_document",
    "document_key",
    "document_keys",
    "explain",
    "first_stage",
    "get_provenance",
    "matches",
    "peek_provenance",
    "peek_score",
    "redact",
    "strip_provenance",
    "to_chroma",
    "to_plain",
    "validate_filter",
    "with_provenance",
]
