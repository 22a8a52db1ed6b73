"""One statement against the passages that it cites: the best quote, and whether it says the same."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from rag_kit.text.citations.contrast import is_negation, negations, opposites
from rag_kit.text.citations.tokens import Token, evidence_keys, tokens
from rag_kit.text.fold import fold
from rag_kit.text.sentences import sentences

_MAX_SENTENCES = 2000
_NEAR_VERBATIM = 0.75
_COVERED = {True: 0.5, False: 0.6}  # Chinese pairs cross word borders, so fewer of them survive a new wording
_CONTRIBUTES = 0.25
_NOT_WORD = re.compile(r"[\W_]+")
# Chinese text marks some names: around the dot of a foreign name, and between title marks.
_HAN_NAME = re.compile(
    r"[\u3400-\u9fff]{1,2}[·•・‧][\u3400-\u9fff]{1,2}|[《「『][^《》「」『』]{1,40}[》」』]"
)
_MARK = re.compile(r"\s?\[\d{1,4}(?:[,，–-] ?\d{1,4})*\]")


class Verdict(NamedTuple):
    """Whether a passage supports a statement, by which span, and why."""

    supported: bool
    score: float
    reason: str
    start: int
    end: int


class Source:
    """A passage prepared for many statements."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.spans = [(one.start, one.end) for one in sentences(text)[:_MAX_SENTENCES]]
        self.keys = [evidence_keys(text[start:end]) for start, end in self.spans]
        self.solid = [_solid(text[start:end]) for start, end in self.spans]

    def best(self, statement: str, keys: set[str]) -> tuple[int, int]:
        """First and last index of the one to three sentences that hold most of the statement."""
        solid = _solid(statement)
        for index, sentence in enumerate(self.solid):
            if solid and solid in sentence:
                return index, index
        overlap = [len(keys & held) for held in self.keys]
        first = last = max(
            range(len(overlap)), key=lambda i: (overlap[i], -abs(len(self.keys[i]) - len(keys)), -i)
        )
        held = self.keys[first] & keys
        for _ in range(2):
            options = [i for i in (first - 1, last + 1) if 0 <= i < len(overlap)]
            gain = [(len((self.keys[i] & keys) - held), -i) for i in options]
            if not options or max(gain)[0] < max(2, len(keys) // 6):
                break
            chosen = -max(gain)[1]
            held |= self.keys[chosen] & keys
            first, last = min(first, chosen), max(last, chosen)
        return first, last


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
        or any(one.supported for one in single)
        or any(one.start == one.end for one in single)
    ):
        return single
    quotes = [source.text[one.start : one.end] for source, one in zip(sources, single, strict=True)]
    reason, _ = _compare(statement, "\n".join(quotes), exact=False)
    if reason != "covered":
        return single
    return [
        one._replace(
            supported=one.score >= _CONTRIBUTES, reason="covered" if one.score >= _CONTRIBUTES else one.reason
        )
        for one in single
    ]


def _judge(statement: str, source: Source) -> Verdict:
    if not source.spans:
        return Verdict(False, 0.0, "thin", 0, 0)
    if not _solid(statement):
        start, end = source.spans[0]
        return Verdict(False, 0.0, "empty", start, end)
    first, last = source.best(statement, evidence_keys(statement))
    start, end = source.spans[first][0], source.spans[last][1]
    quote = source.text[start:end]
    reason, score = _compare(statement, quote, exact=first == last)
    return Verdict(reason in ("verbatim", "covered"), score, reason, start, end)


def _compare(statement: str, quote: str, *, exact: bool) -> tuple[str, float]:
    """Reason and share of the statement that the quote holds."""
    solid = _solid(statement)
    if solid and solid in _solid(quote):
        return "verbatim", 1.0
    said, held = tokens(statement), tokens(_MARK.sub("", quote))
    keys = evidence_keys(statement)
    share = len(keys & evidence_keys(quote)) / len(keys) if keys else 0.0
    matcher = SequenceMatcher(None, [one.key for one in held], [one.key for one in said], autojunk=False)
    blocks = [block for block in matcher.get_matching_blocks() if block.size]
    kept = sum(block.size for block in blocks) / (len(said) or 1)
    if kept >= _NEAR_VERBATIM:
        changed = _changed(held, said, matcher)
        if changed:
            return changed, share
    elif _swapped(held, said):
        return "order", share
    keys_held = {one.key for one in held}
    if any(one.number and one.key not in keys_held for one in said):
        return "number", share
    stems = evidence_keys(quote)
    names = [one for index, one in enumerate(said) if one.name and index > 0]
    if any(one.key not in keys_held and not evidence_keys(one.key) <= stems for one in names):
        return "name", share
    solid_quote = _solid(quote)
    if any(_solid(name) not in solid_quote for name in _HAN_NAME.findall(statement)):
        return "name", share
    mostly_han = sum(one.han for one in said) * 2 > len(said)
    if share < _COVERED[mostly_han]:
        return "thin", share
    said_keys = {one.key for one in said}
    if any(opposites(a, b) for a in said_keys - keys_held for b in keys_held - said_keys):
        return "opposite", share
    if (
        exact
        and kept < _NEAR_VERBATIM
        and (negations(statement) > 0) != (negations(quote) > 0)
        and share > 0.5
    ):
        return "negation", share
    return "covered", share


def _changed(held: list[Token], said: list[Token], matcher: SequenceMatcher[str]) -> str:
    """For a statement that is nearly word for word: the change that alters its meaning, or ""."""
    codes = matcher.get_opcodes()
    last = max((index for index, code in enumerate(codes) if code[0] == "equal"), default=0)
    first = min((index for index, code in enumerate(codes) if code[0] == "equal"), default=0)
    moved: set[str] = set()
    gone: set[str] = set()
    for index, (kind, a, b, c, d) in enumerate(codes):
        if kind == "equal":
            continue
        inside = first < index < last
        old, new = held[a:b] if inside or kind == "replace" else [], said[c:d]
        old_keys, new_keys = {one.key for one in old}, {one.key for one in new}
        if any(is_negation(one.key) for one in new) != any(is_negation(one.key) for one in old):
            return "negation"
        if any(opposites(x, y) for x in new_keys for y in old_keys):
            return "opposite"
        if new and old:
            if any(one.number for one in new) and not {one.key for one in new if one.number} <= old_keys:
                return "number"
            if any(one.name for one in new) and any(one.name for one in old):
                return "name"
            if any(one.han for one in new) and any(one.han for one in old):
                return "changed"
        elif new and sum(one.han for one in new) > 1:
            return "changed"
        moved |= {one.key for one in new if one.number or one.name}
        gone |= {one.key for one in old if one.number or one.name}
    return "order" if moved & gone else ""


def _swapped(held: list[Token], said: list[Token]) -> bool:
    """Whether only names, numbers or Chinese characters changed places: "Basel paid Ghent" for "Ghent paid Basel"."""
    if sorted(one.key for one in held) != sorted(one.key for one in said):
        return False
    return all(
        a.key == b.key or all(one.name or one.number or one.han for one in (a, b))
        for a, b in zip(held, said, strict=True)
    )


def _solid(text: str) -> str:
    """A text without marks, spaces and punctuation, folded: what is compared word for word."""
    return _NOT_WORD.sub("", fold(_MARK.sub("", text)))
