"""Passages cut into the sentences that may answer; headings, titles and table headers are context of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from rag_kit.text.evidence.question import Question
from rag_kit.text.evidence.terms import terms
from rag_kit.text.sentences import Sentence, sentences

MAX_SENTENCES = 400
"""Sentences looked at together; what follows is left out, so that time is bounded."""

_MAX_HEADING = 100
_MAX_TITLE = 500
_STOPS = ".!?。！？…;；:："
_HEADING = re.compile(r"#{1,6}\s")
_DELIMITER = re.compile(r"\|(?:\s*:?-+:?\s*\|)+")


@dataclass(frozen=True)
class PassageText:
    """A passage as far as evidence is counted in it: its number, its text and its title."""

    number: int
    text: str
    title: str = ""


def passage_text(number: int, text: str, metadata: Mapping[str, Any]) -> PassageText:
    """A passage whose title is what the metadata name as title and heading.

    Example:
        >>> passage_text(1, "Text.", {"title": "Emma", "heading": "Plot", "page": 3}).title
        'Emma\\nPlot'
    """
    names = (metadata.get("title"), metadata.get("heading"))
    return PassageText(number, text, "\n".join(name[:_MAX_TITLE] for name in names if isinstance(name, str)))


def found_names(question: Question, passages: Sequence[PassageText]) -> float:
    """Share of the question's names that some passage holds; 1 where it has none.

    Example:
        >>> from rag_kit.text.evidence.question import analyse
        >>> plan = analyse("What is the file size of the ENTERPRISE plan?")
        >>> found_names(plan, [PassageText(1, "The maximum file size of a plan is 10 MB.")])
        0.0
    """
    names = [t.key for t in question.terms if t.nominal and not any(c.isdigit() for c in t.key)]
    if not names:
        return 1.0
    words = frozenset(key for one in passages for key in terms(f"{one.title}\n{one.text}"))
    return sum(name in words or any(_akin(name, key) for key in words) for name in names) / len(names)


def _akin(name: str, key: str) -> bool:
    """Whether two stems are forms of one name: German and Germany, California and Californian."""
    short, long = sorted((name, key), key=len)
    return len(short) >= max(4, len(long) - 3) and long.startswith(short)


class Row(NamedTuple):
    """A sentence, the position of its passage, its terms, and the header of the table that it is a row of."""

    text: str
    place: int
    terms: frozenset[str]
    header: str = ""


def read_rows(passages: Sequence[PassageText]) -> tuple[list[Row], list[frozenset[str]]]:
    """The sentences of the passages, and for each passage the terms of its titles and headings."""
    rows: list[Row] = []
    titles: list[frozenset[str]] = []
    for place, passage in enumerate(passages):
        title = set(terms(passage.title))
        for text, header, heading in _lines(passage):
            keys = frozenset(terms(text))
            if heading:
                title |= keys
            elif len(rows) < MAX_SENTENCES:
                rows.append(Row(text, place, keys, header))
        titles.append(frozenset(title))
    # a heading in the middle of a passage is an answer only where there is nothing else
    return [row for row in rows if not _HEADING.match(row.text)] or rows, titles


def is_question(text: str) -> bool:
    """Whether a sentence is a question."""
    return text.rstrip("\"'”’」』)）").endswith(("?", "？"))


def _lines(passage: PassageText) -> Iterator[tuple[str, str, bool]]:
    """Each sentence of a passage, the header of its table, and whether it is a heading."""
    titles = {line.strip() for line in passage.title.splitlines()}
    first_line, _, below = passage.text.partition("\n")
    body = below if first_line.strip() in titles and below.strip() else passage.text
    spans = sentences(body)
    header = ""
    for index, span in enumerate(spans):
        text = span.text.strip()
        if not text.startswith("|"):
            header = ""
        elif _DELIMITER.fullmatch(text):
            continue
        elif _opens_table(spans, index):
            header = text
            continue
        if text:
            heading = text in titles or _is_heading(body, text, span.end, first=index == 0)
            yield text, header, heading and len(spans) > 1


def _opens_table(spans: Sequence[Sentence], index: int) -> bool:
    below = [span.text.strip() for span in spans[index + 1 : index + 3]]
    return len(below) == 2 and _DELIMITER.fullmatch(below[0]) is not None and below[1].startswith("|")


def _is_heading(passage: str, text: str, end: int, *, first: bool) -> bool:
    """A Markdown heading, or a short first line without a full stop."""
    if text.startswith("#"):
        return True
    alone = passage[end : end + 2].lstrip(" ").startswith("\n")
    return first and alone and len(text) <= _MAX_HEADING and text[-1:] not in _STOPS
