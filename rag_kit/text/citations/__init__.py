"""Citations in an answer: found, matched with a verbatim quote, and checked."""

from __future__ import annotations

from rag_kit.text.citations.check import check_citations
from rag_kit.text.citations.decline import DECLINED, is_declined
from rag_kit.text.citations.report import Citation, CitationReport
from rag_kit.text.citations.statements import renumbered

__all__ = ["DECLINED", "Citation", "CitationReport", "check_citations", "is_declined", "renumbered"]
