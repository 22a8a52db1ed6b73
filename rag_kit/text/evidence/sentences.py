"""The sentences of the passages as evidence: how well each may answer the question, and which ones do."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rag_kit.text.evidence.passages import PassageText, Question, Row, is_question, offers, read_rows
from rag_kit.text.evidence.terms import terms
from rag_kit.text.evidence.times import Span, TimeFit, fit_in_time, time_spans


class Features(NamedTuple):
    """What speaks for a sentence, each from 0 to 1.

    Attributes:
        cover: Weight of the question's terms in the sentence.
        rest: The same, without the terms that the passage's title holds anyway.
        near: The same as cover, in the sentence, its two neighbours and the title.
        soft: Chinese terms whose characters are all there, though not side by side.
        passage: The same as cover, in the whole passage.
        rank: Place of the passage: 1, 1/2, 1/3 ...
        first: First sentence of its passage.
        kind: Offers something of the kind that is asked for, not named in the question.
        edges, overlap, recent: Fit in time (`TimeFit`).
        asks: Is itself a question.
    """

    cover: float
    rest: float
    near: float
    soft: float
    passage: float
    rank: float
    first: float
    kind: float
    edges: float
    overlap: float
    recent: float
    asks: float


# fitted by a softmax over the sentences of each question (docs/decisions/0034)
_WEIGHTS = Features(2.1, 3.2, 4.1, 3.5, 1.9, 2.1, 0.6, 1.8, 1.4, 0.7, 0.9, -0.5)
_HIGHEST = sum(weight for weight in _WEIGHTS if weight > 0)
LEAST_NEAR = 0.1
"""Share of the question's weight that must stand in a sentence, its neighbours and the title, to be worth anything."""
# how far behind the first sentence a second one may be, in its passage and in another one
_BEHIND, _BEHIND_ELSEWHERE = 5.0, 3.5
_NOT_WORD = re.compile(r"\W+")


@dataclass(frozen=True)
class Candidate:
    """A sentence that may become a part of the answer.

    Attributes:
        text: The sentence, verbatim.
        number: Number of its passage.
        place: Position of its passage.
        order: Its place among all sentences.
        matched: Terms of the question in it.
        near: Terms of the question in it, its neighbours and the title of its passage.
        features: What speaks for it.
        score: Its features, weighed: the logarithm of a share.
        header: The header of the table that it is a row of, if it is one.
    """

    text: str
    number: int
    place: int
    order: int
    matched: frozenset[str]
    near: frozenset[str]
    features: Features
    score: float
    header: str

    def worth(self, least_near: float = LEAST_NEAR) -> float:
        """The score as a share of the highest possible one; 0 for what says too little about the question."""
        one = self.features
        near = max(one.near, one.soft) >= max(least_near, 1e-9)
        own = max(one.cover, one.soft, one.kind, one.edges, one.overlap) > 0
        return max(0.0, self.score / _HIGHEST) if near and own else 0.0


def collect(question: Question, passages: Sequence[PassageText]) -> list[Candidate]:
    """Every sentence of the passages with its features, in reading order.

    Example:
        >>> from rag_kit.text.evidence.passages import analyse
        >>> found = collect(analyse("Who wrote Emma?"), [PassageText(1, "Emma is a novel. Jane Austen wrote Emma.")])
        >>> [sorted(candidate.matched) for candidate in found]
        [['emma'], ['emma', 'wrote']]
    """
    rows, title_terms = read_rows(passages)
    keys = question.keys
    titles = [keys & one for one in title_terms]
    hits = [keys & row.terms for row in rows]
    whole = [set(title) for title in titles]
    for row, hit in zip(rows, hits, strict=True):
        whole[row.place] |= hit
    weight = _rarity(question, hits)
    total = sum(weight.values()) or 1.0

    def share(some: frozenset[str] | set[str]) -> float:
        return sum(weight[key] for key in some) / total

    found = []
    last: dict[int, list[Span]] = {}
    for order, row in enumerate(rows):
        title, own = titles[row.place], hits[order]
        rest = keys - title
        near = own.union(title, _beside(rows, hits, order), keys & set(terms(row.header)))
        features = Features(
            share(own),
            share(own & rest) / (share(rest) or 1.0),
            share(near),
            share(_scattered(keys - own, row.terms)),
            share(whole[row.place]),
            1 / (1 + row.place),
            float(order == 0 or rows[order - 1].place != row.place),
            float(offers(question.kind, row.text, question.text)),
            *_time(question, row, last),
            float(is_question(row.text)),
        )
        score = sum(weight * value for weight, value in zip(_WEIGHTS, features, strict=True))
        number = passages[row.place].number
        found.append(Candidate(row.text, number, row.place, order, own, near, features, score, row.header))
    return found


def choose(question: Question, found: Sequence[Candidate], count: int = 2) -> list[Candidate]:
    """The best `count` distinct sentences, best first; equal scores keep reading order.

    After the first, a sentence gains by the terms of the question that it adds to those chosen.

    Example:
        >>> from rag_kit.text.evidence.passages import analyse
        >>> passage = PassageText(1, "Emma is a novel. Cats sleep. Jane Austen wrote Emma.")
        >>> question = analyse("Who wrote Emma?")
        >>> [c.text for c in choose(question, collect(question, [passage]), 1)]
        ['Jane Austen wrote Emma.']
    """
    salience = {term.key: term.salience for term in question.terms}
    total = sum(salience.values()) or 1.0
    left = [(one, _NOT_WORD.sub("", one.text.casefold())) for one in found]
    chosen: list[Candidate] = []
    matched: frozenset[str] | None = None
    while left and len(chosen) < count:

        def value(item: tuple[Candidate, str], known: frozenset[str] | None = matched) -> tuple[float, int]:
            new = item[0].matched - known if known is not None else ()
            return item[0].score + sum(salience[key] for key in new) / total, -item[0].order

        best, plain = max(left, key=value)
        chosen.append(best)
        matched = best.matched.union(matched or ())
        left = [item for item in left if item[1] not in ("", plain)]
    return chosen


def without_distraction(picked: Sequence[Candidate]) -> list[Candidate]:
    """The chosen sentences without those far behind the first, or with nothing of the question or the kind asked for.

    Five less in score means that a sentence holds the answer 150 times less often.

    Example:
        >>> from rag_kit.text.evidence.passages import analyse
        >>> question = analyse("Who wrote Emma?")
        >>> passage = PassageText(1, "Cats sleep. Jane Austen wrote Emma.")
        >>> [one.text for one in without_distraction(choose(question, collect(question, [passage])))]
        ['Jane Austen wrote Emma.']
    """

    def stays(one: Candidate) -> bool:
        limit = _BEHIND if one.place == picked[0].place else _BEHIND_ELSEWHERE
        return picked[0].score - one.score < limit and bool(one.matched or one.features.kind)

    return [*picked[:1], *filter(stays, picked[1:])]


def _rarity(question: Question, hits: Sequence[frozenset[str]]) -> dict[str, float]:
    """Weight of each term: its salience times its rarity among the sentences."""
    count = Counter(key for hit in hits for key in hit)
    return {
        term.key: term.salience * math.log1p((len(hits) + 1) / (count[term.key] + 0.5))
        for term in question.terms
    }


def _beside(rows: Sequence[Row], hits: Sequence[frozenset[str]], order: int) -> frozenset[str]:
    """Terms of the question in the neighbours; a question is about what follows it, not what stands before it."""
    found: frozenset[str] = frozenset()
    for at in (order - 1, order + 1):
        if 0 <= at < len(rows) and rows[at].place == rows[order].place:
            found |= frozenset() if at > order and is_question(rows[at].text) else hits[at]
    return found


def _scattered(missing: frozenset[str], own: frozenset[str]) -> set[str]:
    """Chinese terms that are not in the sentence as such although all their characters are."""
    chinese = {key for key in missing if not key.isascii()}
    if not chinese:
        return chinese
    characters = set("".join(key for key in own if not key.isascii()))
    return {key for key in chinese if characters.issuperset(key)}


def _time(question: Question, row: Row, last: dict[int, list[Span]]) -> TimeFit:
    """Fit in time; a sentence without a date takes the last one named before it, at half value."""
    if not question.spans:
        return TimeFit()
    if found := time_spans(row.text):
        last[row.place] = found[-1:]
        return fit_in_time(question.spans, found)
    return TimeFit(*(value / 2 for value in fit_in_time(question.spans, last.get(row.place, []))))
