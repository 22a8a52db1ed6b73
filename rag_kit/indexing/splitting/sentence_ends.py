"""Where a text may be cut between sentences, decided only near the places that are asked for.

The rules are those of `rag_kit.text.sentences`; asking it for all sentences would take most of the time of a
split, since a chunk needs to know one or two ends only. The plain cases, by far the most frequent, are decided
here without them: a lower-case word that is no abbreviation, a stop, a space and a capital; and a Chinese stop
without a quote. A test compares the two.
"""

from __future__ import annotations

import re

from rag_kit.text.sentences import (
    BEFORE_NUMBER,
    CLOSERS,
    MAYBE_ABBREVIATIONS,
    TITLES,
    ends_sentence,
    joins_next_line,
)

_CANDIDATE = re.compile(
    rf"(?P<stop>[.!?。！？｡．]{{1,64}}|…{{1,64}})(?P<close>[{CLOSERS}]{{0,64}})"
    r"(?P<cite>(?:[ \t]?\[\d{1,3}(?:[,，–-] ?\d{1,3}){0,20}\]){0,20})|\n"
)
_SPOT = re.compile(r"[.!?。！？｡．…\n]")
_LAST_SPOT = re.compile(r"(?s:.*)[.!?。！？｡．…\n]")
_SPACE_CAPITAL = re.compile(r" [A-Z]")
_PLAIN_WORD = re.compile(r"(?<=[a-z,]) ([a-z]{2,20})")
_KNOWN = TITLES | MAYBE_ABBREVIATIONS | BEFORE_NUMBER
_WINDOW = 256
_FAR = 400  # how far back the beginning of a line is looked for
_LONGEST = 64  # of a run of stops or quotes; a longer one may be cut anywhere
_CLOSING = 8  # a stop with its quotes may begin this much before the place that is asked for


class SentenceEnds:
    """The sentence ends of one text, found on demand."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._titles = "《" in text  # a stop inside a book's title ends nothing

    def last(self, low: int, high: int) -> int:
        """The last sentence end in ``(low, high]``; -1 where there is none."""
        text, right = self._text, high
        while right > low:
            left = max(low, right - _WINDOW)
            spot = _LAST_SPOT.match(text, left, right)
            if spot is None:
                right = left
                continue
            start = spot.end() - 1
            first = max(low, start - _LONGEST)
            while start > first and text[start] != "\n" and text[start - 1] in _STOPS:
                start -= 1
            match = _CANDIDATE.match(text, start)
            if match and low < match.end() <= high and self._is_end(match):
                return match.end()
            right = start
        return -1

    def first(self, low: int, high: int) -> int:
        """The first sentence end in ``[low, high)``; -1 where there is none."""
        text = self._text
        left = after = low - _CLOSING if low > _CLOSING else 0
        first = max(0, left - _LONGEST)
        while left > first and text[left - 1] in _STOPS:
            left -= 1
        for spot in _SPOT.finditer(text, left, high):
            place = spot.start()
            if place >= after:
                match = _CANDIDATE.match(text, place)
                if match:
                    after = match.end()
                    if low <= after < high and self._is_end(match):
                        return after
        return -1

    def _is_end(self, match: re.Match[str]) -> bool:
        text, start, end = self._text, match.start(), match.end()
        if end >= len(text):
            return True
        if end == start + 1 and not self._titles:
            stop = text[start]
            if stop in "。！？" or (stop == "\n" and (text[end] == "\n" or text[start - 1 : start] == "\n")):
                return True
            # inside a number, a name or an address: 3.5, e.g, a.b, page?id
            if stop in ".!?" and (following := text[end]).isascii() and following.isalnum():
                return False
            # only after a full stop can the word before be an abbreviation or the number of a list item
            if stop in ".!?" and _SPACE_CAPITAL.match(text, end) and (stop != "." or self._plain_word(start)):
                return True
        line = text.rfind("\n", max(0, start - _FAR), start) + 1
        if match["stop"] is None:
            following = text[end : end + _FAR].split("\n", 1)[0]
            before = text[max(line, start - _FAR) : start]
            return not before.strip() or not following.strip() or not joins_next_line(before, following)
        begin = max(line, start - _FAR)
        return ends_sentence(text, begin, min(len(text), end + 80), match) > 0

    def _plain_word(self, stop: int) -> bool:
        """Before the stop stands a number inside a line, or a word in lower case that is no abbreviation."""
        text = self._text
        if text[stop - 1].isdigit():
            return stop >= 8 and "\n" not in text[stop - 8 : stop]
        match = _PLAIN_WORD.match(text, text.rfind(" ", max(0, stop - 21), stop))
        return match is not None and match.end(1) == stop and match[1] not in _KNOWN


_STOPS = frozenset(".!?。！？｡．…")
