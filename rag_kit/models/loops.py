"""Replies in which a model repeats itself up to the bound: finding the loop, and reading what came before it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

_MAX_TAIL = 20_000  # characters
_LEAST_ROUNDS = 4
_LEAST_CHARS = 80  # a shorter repetition may be meant
_LISTED = 2  # rounds kept of a loop of entries; if it begins in the middle of one, the second is whole
_MAX_CLOSINGS = 4
_CLOSERS = {"{": "}", "[": "]"}
# a string, whose `end` is empty if it breaks off, or one of the marks []{},
_TOKEN = re.compile(r'"(?:\\.|[^"\\])*+(?P<end>"|\Z)|[\[\]{},]', re.DOTALL)
_NUMBERING = re.compile(r"\s*\d+[.)、．）]\s*")


def ends_in_loop(text: str, *, counting: bool = False) -> bool:
    """Tell whether the end of a text repeats itself; with ``counting`` also where only numbers differ.

    Example:
        >>> entries = [f'{{"id": {n}, "relevant": true}}' for n in range(50)]
        >>> ends_in_loop(", ".join(entries)), ends_in_loop(", ".join(entries), counting=True)
        (False, True)
    """
    return _find_loop(re.sub(r"\d+", "0", text) if counting else text) is not None


def values_before_loop(text: str) -> Iterator[Any]:
    """Yield what JSON that breaks off in a loop says up to the loop, the fullest reading first.

    A string that repeats itself ends after the first round; of a list the whole entries stay, each once.

    Example:
        >>> next(values_before_loop('{"queries": ["a", ' + '"b", ' * 50))
        {'queries': ['a', 'b']}
    """
    opening = re.search(r"[{\[]", text)
    text = text[opening.start() :] if opening else ""
    loop = _find_loop(text)
    if loop is not None:
        start, period = loop
        first_round = text[: start + period].rstrip("\\")
        if '"' not in text[start : start + period] and _is_inside_string(first_round):
            text = first_round + '"'  # words repeat themselves, not entries
        else:
            text = text[: start + _LISTED * period]
    elif not ends_in_loop(text, counting=True):
        return
    for closed in _closings(text):
        with suppress(ValueError):
            value = json.loads(closed)
            is_object = isinstance(value, dict)
            yield {name: _distinct(item) for name, item in value.items()} if is_object else _distinct(value)


def _find_loop(text: str) -> tuple[int, int] | None:
    """Return where the longest loop at the end of a text begins, and the length of a round; None without a loop.

    The text is read backwards, so that a loop is at its beginning. A border of a text is a beginning that is its end
    as well ("ab" of "abcab"); a text repeats itself with a period of its length less that of its longest border. All
    borders of all beginnings are found in one pass (Knuth, Morris and Pratt, 1977).
    """
    backwards = text[-_MAX_TAIL:][::-1]
    borders, loop = [0], None  # length of the longest border of each beginning
    for last in range(1, len(backwards)):
        border = borders[-1]
        while border and backwards[last] != backwards[border]:
            border = borders[border - 1]
        border += backwards[last] == backwards[border]  # one longer if the characters agree
        borders.append(border)
        length = last + 1
        period = length - border
        if length >= max(_LEAST_CHARS, _LEAST_ROUNDS * period):
            loop = len(text) - length, period
    return loop


def _is_inside_string(text: str) -> bool:
    """Tell whether JSON breaks off inside a string."""
    tokens = [*_TOKEN.finditer(text)]
    return bool(tokens) and tokens[-1]["end"] == ""


def _closings(text: str) -> Iterator[str]:
    """Yield JSON that breaks off with its brackets closed: at its end, then after one of its last entries.

    An object in a list is never closed, for as an entry it would lack fields.
    """
    closers = ""  # the closing brackets that are due, the innermost first
    ends = []  # positions to cut at, each with the brackets due there
    for token in _TOKEN.finditer(text):
        mark = token[0]
        if mark in _CLOSERS:
            closers = _CLOSERS[mark] + closers
            continue
        if mark in ("}", "]"):
            closers = closers[1:]
        if mark[0] != '"':
            ends.append((token.start() if mark == "," else token.end(), closers))
    ends.append((len(text), closers))
    whole = [text[:end] + due for end, due in ends if not (due[:1] == "}" and "]" in due)]
    yield from whole[: -_MAX_CLOSINGS - 1 : -1]  # the last ones, backwards


def _distinct(entries: Any) -> Any:
    """Return a list with each entry once ("2. pumps" repeats "1. pumps"); anything else as it is."""
    if not isinstance(entries, list):
        return entries
    kept: dict[str, Any] = {}
    for entry in entries:
        key = _NUMBERING.sub("", entry, count=1) if isinstance(entry, str) else json.dumps(entry)
        kept.setdefault(key, entry)
    return list(kept.values())
