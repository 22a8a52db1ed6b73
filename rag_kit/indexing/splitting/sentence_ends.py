"""Where a text may be cut between sentences, decided only near the places that are asked for.

The rules are those of `rag_kit.text.sentences`; asking it for all sentences would take most of the time of a
split, since a chunk needs to know one or two ends only.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right

from rag_kit.text._sentence_rules import CLOSERS, ends_sentence, joins_next_line

_CANDIDATE = re.compile(
    rf"(?P<stop>[.!?。！？｡．]+|…+)(?P<close>[{CLOSERS}]*)"
    r"(?P<cite>(?:[ \t]?\[\d{1,3}(?:[,，–-] ?\d{1,3})*\])*)|\n"
)
_FAR = 400  # how far back the beginning of a line is looked for


class SentenceEnds:
    """The sentence ends of one text, found on demand."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._matches = list(_CANDIDATE.finditer(text))
        self._ends = [match.end() for match in self._matches]
        self._known: dict[int, bool] = {}

    def last(self, low: int, high: int) -> int:
        """The last sentence end in ``(low, high]``; -1 where there is none."""
        ends = self._ends
        index = bisect_right(ends, high) - 1
        while index >= 0 and ends[index] > low:
            if self._is_end(index):
                return ends[index]
            index -= 1
        return -1

    def first(self, low: int, high: int) -> int:
        """The first sentence end in ``[low, high)``; -1 where there is none."""
        ends = self._ends
        for index in range(bisect_left(ends, low), len(ends)):
            if ends[index] >= high:
                break
            if self._is_end(index):
                return ends[index]
        return -1

    def _is_end(self, index: int) -> bool:
        known = self._known.get(index)
        if known is None:
            known = self._known[index] = self._decide(index)
        return known

    def _decide(self, index: int) -> bool:
        text, match = self._text, self._matches[index]
        line = text.rfind("\n", max(0, match.start() - _FAR), match.start()) + 1
        if match["stop"] is None:
            following = text[match.end() : match.end() + _FAR].split("\n", 1)[0]
            before = text[max(line, match.start() - _FAR) : match.start()]
            return not before.strip() or not following.strip() or not joins_next_line(before, following)
        if match.end() >= len(text):
            return True
        begin = max(line, match.start() - _FAR)
        return ends_sentence(text, begin, min(len(text), match.end() + 80), match) > 0
