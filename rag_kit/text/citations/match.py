"""One statement against the passages that it cites: the best quote, and whether it says the same."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence, Set
from itertools import pairwise
from typing import Literal, NamedTuple

from rag_kit.text.citations.aligned import alike, replaced
from rag_kit.text.citations.contrast import is_negation, opposites
from rag_kit.text.citations.statements import UNITS, Token, tokens
from rag_kit.text.citations.written import other_language
from rag_kit.text.language import fold
from rag_kit.text.sentences import sentences

_MAX_SENTENCES = 2000
_COVERED = 0.5
"""Share of a statement's content that the quote, or what it refers back to, must hold."""
_CONTRIBUTES = 0.25
_NEAR = 3
"""How far from a number what it counts may stand in the quote, in tokens."""
_NOT_WORD = re.compile(r"[\W_]+")
_CLAUSE = re.compile(r"[，；：]|[,;:](?=\s)")
_MARK = re.compile(r"\s?\[\d{1,4}(?:[,，–-] ?\d{1,4})*\]")


class Verdict(NamedTuple):
    """Whether a passage supports a statement, by which span, and why."""

    score: float
    reason: str
    start: int
    end: int

    @property
    def status(self) -> Literal["supported", "unsupported", "undecided"]:
        """What the reason means."""
        if self.reason in ("verbatim", "covered"):
            return "supported"
        return "undecided" if self.reason in ("language", "other", "joined") else "unsupported"


class Source:
    """A passage prepared for many statements."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.spans = [(one.start, one.end) for one in sentences(text)[:_MAX_SENTENCES]]
        self.tokens = [tokens(_MARK.sub("", text[start:end])) for start, end in self.spans]
        self.keys = [{one.key for one in found if one.content} for found in self.tokens]
        self.solid = [_solid(text[start:end]) for start, end in self.spans]
        # the last sentence in which two content words follow one another
        self.pairs = {pair: place for place, found in enumerate(self.tokens) for pair in _pairs(found)}
        self.all = frozenset().union(*self.keys) if self.keys else frozenset[str]()

    def best(self, statement: str, said: list[Token]) -> tuple[int, int, int]:
        """The sentence that has most of a statement's words, and the first and last of those that support it."""
        solid = _solid(statement)
        keys = {one.key for one in said if one.content}
        strong = {one.key for one in said if one.number or one.name}
        for index, sentence in enumerate(self.solid):
            if solid and solid in sentence:
                return index, index, index
        numbers = {one.key for one in said if one.number}
        overlap = [len(keys & own) + len(numbers & own) for own in self.keys]
        best = first = last = max(
            range(len(overlap)), key=lambda i: (overlap[i], -abs(len(self.keys[i]) - len(keys)), -i)
        )
        covered = self.keys[first] & keys
        for _ in range(2):
            options = [i for i in (first - 1, last + 1) if 0 <= i < len(overlap)]
            gain = [
                (sum(1 + (key in strong) for key in (self.keys[i] & keys) - covered), -i) for i in options
            ]
            if not options or max(gain)[0] < 2:
                break
            chosen = -max(gain)[1]
            covered |= self.keys[chosen] & keys
            first, last = min(first, chosen), max(last, chosen)
        return best, first, last

    def clause(self, index: int, said: list[Token]) -> list[Token]:
        """The part of a sentence between commas that has most of a statement's words."""
        start, end = self.spans[index]
        keys = {one.key for one in said if one.content}
        clauses = [tokens(part) for part in _CLAUSE.split(_MARK.sub("", self.text[start:end]))]
        return max(clauses, key=lambda part: (len(keys & {one.key for one in part}), -len(part)))

    def quoted(self, first: int, last: int) -> list[Token]:
        """The tokens of a run of sentences."""
        return [one for found in self.tokens[first : last + 1] for one in found]


def judge(statement: str, sources: Sequence[Source]) -> list[Verdict]:
    """Judge a statement against each passage that it cites; several may support it together.

    Args:
        statement: The statement, without marks.
        sources: The cited passages.

    Returns:
        One verdict per passage, in order.
    """
    single = [_judge(statement, source) for source in sources]
    if (
        len(sources) < 2
        or any(one.status == "supported" for one in single)
        or any(one.start == one.end for one in single)
    ):
        return single
    quotes = [source.text[one.start : one.end] for source, one in zip(sources, single, strict=True)]
    reason, _ = _compared(tokens(statement), tokens(_MARK.sub("", "\n".join(quotes))))
    if reason != "covered":
        return single
    return [one._replace(reason="covered") if one.score >= _CONTRIBUTES else one for one in single]


def _judge(statement: str, source: Source) -> Verdict:
    if not source.spans:
        return Verdict(0.0, "thin", 0, 0)
    solid = _solid(statement)
    if not solid:
        start, end = source.spans[0]
        return Verdict(0.0, "empty", start, end)
    said = tokens(statement)
    best, first, last = source.best(statement, said)
    start, end = source.spans[first][0], source.spans[last][1]
    if solid in _solid(source.text[start:end]):
        return Verdict(1.0, "verbatim", start, end)
    if other_language(statement, source.text):
        return Verdict(0.0, "language", start, end)
    reason, score = _compared(said, source.quoted(first, last), source.keys[0])
    if reason == "covered":
        found = (
            replaced(part, said, source.all) for part in (source.tokens[best], source.clause(best, said))
        )
        reason = next(filter(None, found), "") or _elsewhere(said, source, first, last) or reason
    return Verdict(score, reason, start, end)


def _elsewhere(said: list[Token], source: Source, first: int, last: int) -> str:
    """Whether a number counts something else than in the quote, or a phrase is one of a sentence after the quote."""
    cited = source.quoted(first, last)
    keys = {one.key for one in cited}
    near: dict[str, set[str]] = {one.key: set() for one in said if one.number}
    for place, one in enumerate(cited):
        if one.key in near:
            near[one.key].update(other.key for other in cited[max(0, place - _NEAR) : place + _NEAR + 1])
    for one, after in pairwise(said):
        counts = after.key in UNITS or (after.content and after.key in source.all)
        if not one.number or after.number or after.name or not counts or not near[one.key]:
            continue
        if not any(alike(after.key, other) for other in near[one.key]):
            return "number"
    later = (source.pairs.get(pair, 0) > last for pair in _pairs(said) if not keys & set(pair))
    return "joined" if any(later) else ""


def _pairs(found: list[Token]) -> Iterable[tuple[str, str]]:
    """Content words that follow one another."""
    return pairwise(one.key for one in found if one.content)


def _compared(said: list[Token], cited: list[Token], opening: Set[str] = frozenset()) -> tuple[str, float]:
    """The reason for the verdict, and the share of the statement's content words that the quote has.

    The quote may refer back to what the passage's opening sentence names, in words such as "the company".
    """
    content = list(dict.fromkeys(one for one in said if one.content))
    cited_keys = {one.key for one in cited}
    words = [one.key for one in cited if one.content and not one.number]

    def holds(one: Token) -> bool:
        if one.key in cited_keys:
            return True
        return not one.number and any(alike(one.key, word) for word in words)

    missing = [one for one in content if not holds(one)]
    score = 1 - len(missing) / len(content) if content else 0.0
    back = [one for one in missing if not one.number and one.key in opening]
    if any(one.number for one in missing):
        return "number", score
    if any(one.name and one not in back for one in missing):
        return "name", score
    if not content or len(missing) - len(back) > _COVERED * len(content):
        return "thin", score
    lost = cited_keys - {one.key for one in said}
    if any(opposites(one.key, key) for one in said if one.key not in cited_keys for key in lost):
        return "opposite", score
    return ("negation" if _negation(said, cited) else "covered"), score


def _negation(said: list[Token], cited: list[Token]) -> bool:
    """Whether only one of two texts negates what both say."""
    ours, theirs = _negated(said), _negated(cited)
    if bool(ours) == bool(theirs) or not (ours or theirs):
        return False
    own, other = (said, cited) if ours else (cited, said)
    keys, repeated = {one.key for one in other}, Counter(one.key for one in own)
    return any(key in keys and repeated[key] == 1 for key in ours or theirs if key)


def _negated(found: list[Token]) -> list[str]:
    """What each negation denies: the next content word, where it stands close by."""
    return [
        next((one.key for one in found[place + 1 : place + 3] if one.content), "")
        for place, token in enumerate(found)
        if is_negation(token.key)
    ]


def _solid(text: str) -> str:
    """A text without marks, spaces and punctuation, folded: what is compared word for word."""
    return _NOT_WORD.sub("", fold(_MARK.sub("", text)))
