"""What a check of citations finds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

CitationStatus = Literal["supported", "unsupported", "undecided", "missing_passage"]
ReportStatus = Literal["grounded", "flagged", "undecided", "uncited", "declined"]


@dataclass(frozen=True)
class Citation:
    """One statement of an answer with one of the passages that it cites.

    Attributes:
        number: The number in the brackets; passages count from 1.
        statement: The statement, without its citation marks.
        quote: The sentence or sentences of the passage that support it best, a verbatim span of the passage;
            None where there is no passage of that number.
        quote_start: Offset of the quote in the passage, in characters; None without a quote.
        quote_end: Offset of its end; ``passage[quote_start:quote_end] == quote``.
        status: ``"supported"``, ``"unsupported"``, ``"undecided"`` (words do not tell) or
            ``"missing_passage"``.
        score: Share of the statement that the passage holds, in [0, 1].
        reason: Why, in one short sentence.
    """

    number: int
    statement: str
    quote: str | None
    quote_start: int | None
    quote_end: int | None
    status: CitationStatus
    score: float
    reason: str


@dataclass(frozen=True)
class CitationReport:
    """All citations of an answer.

    Attributes:
        status: ``"declined"`` (the answer says that it is not in the documents), ``"flagged"`` (a citation does
            not hold), ``"undecided"`` (a citation could not be checked, and all others hold), ``"uncited"`` (all that
            is cited holds, but a statement has no citation) or ``"grounded"``.
        citations: One entry per pair of statement and cited number, in the order of the answer.
        uncited: The statements without a citation.
    """

    status: ReportStatus
    citations: tuple[Citation, ...] = ()
    uncited: tuple[str, ...] = ()
