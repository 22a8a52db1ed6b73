"""The sentences of the passages as evidence: for each one, how well it may answer the question."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rag_kit.models.extractive.question import Question, offers
from rag_kit.models.extractive.terms import terms
from rag_kit.models.extractive.timespan import Span, fit_in_time, time_spans
from rag_kit.text import sentences
from rag_kit.text.sentences import Sentence

MAX_SENTENCES = 400
"""Sentences looked at in one prompt; what follows is left out, so that time is bounded."""

_MAX_HEADING = 100
_MAX_TITLE = 500
_STOPS = ".!?。！？…;；:："

FEATURES = (
    "cover",  # weight of the question's terms in the sentence
    "rest",  # the same, without the terms that the passage's title holds anyway
    "near",  # the same as cover, in the sentence, its two neighbours and the title
    "soft",  # Chinese terms whose characters are all there, though not side by side
    "passage",  # the same as cover, in the whole passage
    "rank",  # place of the passage: 1, 1/2, 1/3 ...
    "first",  # first sentence of its passage
    "kind",  # offers something of the kind that is asked for, not named in the question
    "edges",  # names the start and the end of the asked span of time
    "overlap",  # overlap with the asked span of time
    "recent",  # tells what began last before the asked span of time, or in it
    "asks",  # is itself a question
)


@dataclass(frozen=True)
class PassageText:
    """A passage as the model sees it: its number in the prompt, its text and its title."""

    number: int
    text: str
    title: str = ""


def passage_text(number: int, text: str, metadata: Mapping[str, Any]) -> PassageText:
    """A passage as this model sees it; its title is what the metadata name as title and heading.

    Example:
        >>> passage_text(1, "Text.", {"title": "Emma", "heading": "Plot", "page": 3}).title
        'Emma\\nPlot'
    """
    names = (metadata.get("title"), metadata.get("heading"))
    return PassageText(number, text, "\n".join(name[:_MAX_TITLE] for name in names if isinstance(name, str)))


@dataclass(frozen=True)
class Candidate:
    """A sentence that may become a part of the answer.

    Attributes:
        text: The sentence, verbatim.
        number: Number of its passage in the prompt.
        place: Index of its passage in the list of passages.
        order: Its place among all sentences of the prompt.
        matched: Terms of the question in it.
        near: Terms of the question in it, its neighbours and the title of its passage.
        features: Values in the order of FEATURES.
        header: The header of the table that it is a row of, if it is one.
    """

    text: str
    number: int
    place: int
    order: int
    matched: frozenset[str]
    near: frozenset[str]
    features: tuple[float, ...]
    header: str = ""


@dataclass
class _Row:
    """A sentence while its features are being collected."""

    text: str
    place: int
    hits: frozenset[str]
    bag: frozenset[str]
    header: str = ""


_HEADING = re.compile(r"#{1,6}\s")
_DELIMITER = re.compile(r"\|(?:\s*:?-+:?\s*\|)+")


def collect(question: Question, passages: Sequence[PassageText]) -> list[Candidate]:
    """Every sentence of the passages with its features, in reading order.

    A markdown heading says what the text is about, but answers nothing: it counts as context of its neighbours and
    is a candidate only where there is nothing else. The header of a table is context of all its rows.

    Args:
        question: The analysed question.
        passages: The passages in the order of the prompt.

    Returns:
        At most MAX_SENTENCES candidates.

    Example:
        >>> from rag_kit.models.extractive.question import analyse
        >>> found = collect(analyse("Who wrote Emma?"), [PassageText(1, "Emma is a novel. Jane Austen wrote Emma.")])
        >>> [sorted(candidate.matched) for candidate in found]
        [['emma'], ['emma', 'wrote']]
    """
    rows, titles = _rows(question, passages)
    weight = weigh(question, [row.bag for row in rows])
    total = sum(weight.values()) or 1.0
    whole = [set(title) for title in titles]
    for row in rows:
        whole[row.place] |= row.hits

    def share(keys: frozenset[str] | set[str]) -> float:
        return sum(weight[key] for key in keys) / total

    found = []
    last_spans: dict[int, list[Span]] = {}
    for order, row in enumerate(rows):
        title = titles[row.place]
        # A question is about what follows it, not about what stands before it.
        neighbours = [
            rows[i].hits
            for i in (order - 1, order + 1)
            if 0 <= i < len(rows) and rows[i].place == row.place and not (i > order and asks(rows[i].text))
        ]
        near = row.hits.union(title, *neighbours, question.keys & set(terms(row.header)))
        rest = question.keys - title
        edges, overlap, recent = _time(question, row, last_spans)
        features = (
            share(row.hits),
            share(row.hits & rest) / (share(rest) or 1.0),
            share(near),
            share(_scattered(question.keys - row.hits, row.bag)),
            share(whole[row.place]),
            1 / (1 + row.place),
            float(order == 0 or rows[order - 1].place != row.place),
            float(offers(question.kind, row.text, question.text)),
            edges,
            overlap,
            recent,
            float(asks(row.text)),
        )
        found.append(
            Candidate(
                row.text,
                passages[row.place].number,
                row.place,
                order,
                row.hits,
                near,
                features,
                row.header,
            )
        )
    return [one for one in found if not _HEADING.match(one.text)] or found


def weigh(question: Question, bags: Sequence[frozenset[str]]) -> dict[str, float]:
    """Weight of each term of the question: its salience times its rarity among the sentences given."""
    frequency = Counter(key for bag in bags for key in bag & question.keys)
    return {
        term.key: term.salience * math.log1p((len(bags) + 1) / (frequency[term.key] + 0.5))
        for term in question.terms
    }


def _rows(question: Question, passages: Sequence[PassageText]) -> tuple[list[_Row], list[frozenset[str]]]:
    """The sentences that may be chosen, and for each passage the question's terms in its titles and headings."""
    rows: list[_Row] = []
    titles: list[frozenset[str]] = []
    for place, passage in enumerate(passages):
        title = set(terms(passage.title))
        own = {line.strip() for line in passage.title.splitlines()}
        body = passage.text
        first_line, _, below = body.partition("\n")
        if first_line.strip() in own and below.strip():
            body = below
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
            heading = text in own or _is_heading(body, text, span.end, first=index == 0)
            keys = terms(text)
            if heading and len(spans) > 1:
                title.update(keys)
            elif text and len(rows) < MAX_SENTENCES:
                bag = frozenset(keys)
                rows.append(_Row(text, place, bag & question.keys, bag, header))
        titles.append(question.keys & title)
    return rows, titles


def asks(text: str) -> bool:
    """Whether a sentence is a question."""
    return text.rstrip("\"'”’」』)）").endswith(("?", "？"))


def _opens_table(spans: Sequence[Sentence], index: int) -> bool:
    """Whether a line is the header of a table that has a row."""
    below = [span.text.strip() for span in spans[index + 1 : index + 3]]
    return len(below) == 2 and _DELIMITER.fullmatch(below[0]) is not None and below[1].startswith("|")


def _is_heading(passage: str, text: str, end: int, *, first: bool) -> bool:
    """A Markdown heading, or a short first line without a full stop: it says what the passage is about."""
    if text.startswith("#"):
        return True
    alone = passage[end : end + 2].lstrip(" ").startswith("\n")
    return first and alone and len(text) <= _MAX_HEADING and text[-1:] not in _STOPS


def _scattered(missing: frozenset[str], bag: frozenset[str]) -> set[str]:
    """Chinese terms that are not in the sentence as such although all their characters are."""
    missing = frozenset(key for key in missing if not key.isascii())
    if not missing:
        return set()
    characters = set("".join(key for key in bag if not key.isascii()))
    return {key for key in missing if characters.issuperset(key)}


def _time(question: Question, row: _Row, last: dict[int, list[Span]]) -> tuple[float, float, float]:
    """Fit in time; a sentence without a date takes the last one named before it, at half value."""
    if not question.spans:
        return 0.0, 0.0, 0.0
    found = time_spans(row.text)
    if found:
        last[row.place] = found[-1:]
        return fit_in_time(list(question.spans), found)
    edges, overlap, recent = fit_in_time(list(question.spans), last.get(row.place, []))
    return edges / 2, overlap / 2, recent / 2
