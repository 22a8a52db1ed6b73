"""Whether the passages state anything for the period that a question asks for, "from 1990 to 1994".

Decision 0192 has what it is worth.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from rag_kit.models.extractive.evidence import Candidate, PassageText, collect
from rag_kit.models.extractive.question import Question
from rag_kit.models.extractive.select import choose, telling
from rag_kit.models.extractive.timeline import Stated, timeline
from rag_kit.models.extractive.timespan import HIGHEST, LOWEST, Span

ENOUGH = 0.38
"""From which value on the period counts as stated: a span that holds all of it does, whatever else it holds."""

_SURE = {"range": 1.0, "begun": 0.8, "open": 0.6, "point": 0.8, "carried": 0.3}
_INSIDE = 0.8
# "between 1990 and 1994" may ask for what happened once in that time, and so may a decade
_WITHIN = re.compile(r"\bbetween\b|\bduring\b|\d0['’]?s\b|年代|之间|期间", re.IGNORECASE)


def periods(question: Question) -> list[Span]:
    """The periods with a beginning and an end that a question asks for; none where it asks for a point of time.

    Example:
        >>> from rag_kit.models.extractive.question import analyse
        >>> periods(analyse("Who led the club from 1990 to 1994?")), periods(analyse("Who led it in 1990?"))
        ([Span(start=1990.0, end=1995.0)], [])
    """
    if _WITHIN.search(question.text):
        return []
    return [
        one
        for one in question.spans
        if one.start > LOWEST
        and one.end < HIGHEST
        and not any(abs(one.end - one.start - w) < 1e-6 for w in (1, 1 / 12))
    ]


def stated_share(question: Question, passages: Sequence[PassageText]) -> float | None:
    """How well the sentences that would answer state the period asked for, from 0 to 1; None where none is asked for.

    Example:
        >>> from rag_kit.models.extractive.question import analyse
        >>> asked = analyse("Who led the club from 1990 to 1994?")
        >>> stated = "The club was led by Ann Lee from {} to {}."
        >>> [stated_share(asked, [PassageText(1, stated.format(*years))]) for years in ((1990, 1994), (1995, 1999))]
        [1.0, 0.0]
    """
    asked = periods(question)
    if not asked:
        return None
    found = collect(question, passages)
    lines: dict[int, list[Candidate]] = {}
    for one in found:
        lines.setdefault(one.place, []).append(one)
    best = 0.0
    for picked in telling(choose(question, found)):
        beside = lines[picked.place]
        stated = timeline([one.text for one in beside])[beside.index(picked)]
        best = max(best, *(fit(want, one) for want in asked for one in stated), 0.0)
    return best


def fit(asked: Span, stated: Stated) -> float:
    """How well a stated time answers for a period: its ends named, its years covered.

    Example:
        >>> fit(Span(1990, 1995), Stated(Span(1990, 1995), "range"))
        1.0
    """
    span = stated.span
    last = int(asked.end - 1e-6)
    begins = int(span.start) == int(asked.start)
    ends = int(span.end - 1e-6) == last or (stated.how in ("point", "begun") and int(span.start) == last)
    shared = max(0.0, min(asked.end, span.end) - max(asked.start, span.start))
    covered = shared / (max(asked.end, span.end) - min(asked.start, span.start))
    if stated.how != "carried":
        covered = max(covered, _INSIDE * shared / (asked.end - asked.start))
    return _SURE[stated.how] * (0.25 * begins + 0.25 * ends + 0.5 * covered)
