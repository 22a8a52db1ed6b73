"""JSON out of what models write: fences, prose around it, Chinese punctuation; and replies that repeat themselves."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

MAX_TEXT = 100_000
_MAX_STARTS = 32
_MAX_DEPTH = 64
# A fenced block: ```json, its text, ```. ``*+`` tries no shorter match, which would take long without a closing fence.
_FENCE = re.compile(r"(?:```|~~~)[ \t]*+([\w+-]*+)[ \t]*+\n?+(.*?)(?:```|~~~)", re.DOTALL)
# Only what can begin JSON is worth a scan to its end; other braces in prose are passed over.
_START = re.compile(r"[{｛](?=\s*[\"'“”‘＂}｝])|[\[［](?=\s*(?:[\"'“”‘＂\[{［｛\]］\d-]|true|false|null))")

_OPEN = {"{": "}", "[": "]"}
_PUNCTUATION = dict(zip("，：｛｝［］【】、", ",:{}[][],", strict=True))
# opening quote -> those that may close it
_QUOTES = {'"': '"', "“": '”"“', "”": '”"', "'": "'", "‘": "’'", "＂": '＂"'}
# A quote closes its string only if what follows is punctuation of JSON, or nothing.
_STRINGS = {
    quote: re.compile(
        rf"((?:\\.|[^\\])*?)[{closing}](?=\s{{0,200}}(?:[,:}}\]，：｝］】、]|\Z)|\s{{200}})", re.DOTALL
    )
    for quote, closing in _QUOTES.items()
}
_JSON_WORD = re.compile(r"[^\W\d_]\w*")
_WORDS = {"True": "true", "False": "false", "None": "null", "undefined": "null"}
_DECODER = json.JSONDecoder(strict=False)


class TruncatedError(ValueError):
    """The text ends in the middle of a JSON value."""


def json_values(text: str) -> Iterator[Any]:
    """Find every JSON object or array in the first 100,000 characters of a text, the likeliest answer first.

    The whole text comes first, then fenced blocks and embedded values, the last before the first: models think first.

    Example:
        >>> list(json_values('Sure: {"query"： “cats”,} Done.'))
        [{'query': 'cats'}]
    """
    text = text[:MAX_TEXT].strip().lstrip("\ufeff")
    if not text:
        return
    if _START.match(text):
        with suppress(ValueError, RecursionError):
            value, end = read_value(text, 0)
            if not text[end:].strip():
                yield value
                return
    fenced_blocks = [match.group(2).strip() for match in _FENCE.finditer(text)]
    outside_fences = _FENCE.sub("\n", text)
    for part in (*reversed(fenced_blocks), outside_fences):
        values, _ = _find_values(part)
        yield from reversed(values)


def is_truncated(text: str) -> bool:
    """Tell whether a text ends in JSON that breaks off, even after a fence or a preamble."""
    _, is_broken_off = _find_values(text[:MAX_TEXT])
    return is_broken_off


def _find_values(text: str) -> tuple[list[Any], bool]:
    """Return the whole JSON values in a text, and whether the text ends in another one that breaks off."""
    values: list[Any] = []
    position = 0
    for _ in range(_MAX_STARTS):
        start = _START.search(text, position)
        if start is None:
            break
        try:
            value, position = read_value(text, start.start())
        except TruncatedError:
            return values, True
        except (ValueError, RecursionError):
            position = start.start() + 1
        else:
            values.append(value)
    return values, False


def read_value(text: str, start: int) -> tuple[Any, int]:
    """Read the JSON value at a position, strictly or else leniently; return it and its end, or raise ValueError."""
    try:
        return _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):
        strict_json, end = _to_strict_json(text, start)
        return _DECODER.decode(strict_json), end


def _to_strict_json(text: str, start: int) -> tuple[str, int]:
    """Rewrite the object or array that starts at a position as strict JSON; also return where it ends.

    ValueError if it is no JSON, TruncatedError if it breaks off.
    """
    tokens: list[str] = []
    closers: list[str] = []  # of the objects and arrays that are open
    position = start
    while position < len(text):
        mark = _PUNCTUATION.get(text[position], text[position])
        if mark in _QUOTES:
            string, position = _read_string(text, position)
            tokens.append(string)
            continue
        if word := _JSON_WORD.match(text, position):
            tokens.append(_WORDS.get(word[0], word[0]))
            position = word.end()
            continue
        if mark in _OPEN:
            closers.append(_OPEN[mark])
            if len(closers) > _MAX_DEPTH:
                raise ValueError(f"nested deeper than {_MAX_DEPTH}")
        elif mark in "}]":
            if not closers or closers.pop() != mark:
                raise ValueError("brackets do not match")
            while tokens and (tokens[-1].isspace() or tokens[-1] == ","):  # a trailing comma
                tokens.pop()
        tokens.append(mark)
        position += 1
        if not closers:
            return "".join(tokens), position
    raise TruncatedError("the JSON breaks off")


def _read_string(text: str, start: int) -> tuple[str, int]:
    """Read the string that begins at a position; return it as strict JSON, and the position after it.

    Its quotes need not match, nor quotes inside have their backslash: ``“a "big" cat"`` is ``"a \\"big\\" cat"``.
    """
    match = _STRINGS[text[start]].match(text, start + 1)
    if match is None:
        raise TruncatedError("a string breaks off")
    escaped = re.sub(r'(?<!\\)"', r"\"", match[1])  # quotes inside that lack their backslash
    try:
        value = json.loads(f'"{escaped}"', strict=False)
    except ValueError:
        value = match[1]
    return json.dumps(value), match.end()


_MAX_TAIL = 20_000  # characters
_LEAST_ROUNDS = 4
_LEAST_CHARS = 80  # a shorter repetition may be meant
_LISTED = 2  # rounds kept of a loop of entries; if it begins in the middle of one, the second is whole
_MAX_CLOSINGS = 4
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
    """Yield values of JSON that a model wrote into an endless loop, read up to the loop, the fullest one first.

    A string that repeats itself ends after the first round; of a list the whole entries stay, each once.

    Example:
        >>> next(values_before_loop('{"queries": ["a", ' + '"b", ' * 50))
        {'queries': ['a', 'b']}
    """
    for closed in _closings(_up_to_loop(text)):
        with suppress(ValueError):
            value = json.loads(closed)
            if isinstance(value, dict):
                yield {name: _distinct(item) for name, item in value.items()}
            else:
                yield _distinct(value)


def _up_to_loop(text: str) -> str:
    """Cut a text from its first bracket to its loop: ``["a", "b", "b", "b"``; "" without a loop or JSON."""
    opening = re.search(r"[{\[]", text)
    text = text[opening.start() :] if opening else ""
    loop = _find_loop(text)
    if loop is None:
        return text if ends_in_loop(text, counting=True) else ""
    start, round_length = loop
    up_to_second = text[: start + round_length].rstrip("\\")
    tokens = [*_TOKEN.finditer(up_to_second)]
    is_inside_string = bool(tokens) and tokens[-1]["end"] == ""
    if '"' not in text[start : start + round_length] and is_inside_string:
        return up_to_second + '"'  # words repeat themselves, not entries
    return text[: start + _LISTED * round_length]


def _find_loop(text: str) -> tuple[int, int] | None:
    """Return the start of the longest loop at the end of a text, and the length of a round; None without a loop.

    The text is read backwards, so that a loop is at its beginning. A border of a text is a prefix that is also its
    suffix ("ab" of "abcab"); a text of length n with a longest border of length b repeats itself each n - b
    characters. The borders of all prefixes are found in one pass (Knuth, Morris and Pratt, 1977).
    """
    backwards = text[-_MAX_TAIL:][::-1]
    borders = [0]  # the length of the longest border of each prefix
    loop = None
    for last in range(1, len(backwards)):
        border = borders[-1]
        while border and backwards[last] != backwards[border]:
            border = borders[border - 1]
        if backwards[last] == backwards[border]:
            border += 1
        borders.append(border)
        length = last + 1
        round_length = length - border
        if length >= max(_LEAST_CHARS, _LEAST_ROUNDS * round_length):
            loop = len(text) - length, round_length
    return loop


def _closings(text: str) -> Iterator[str]:
    """Yield JSON that breaks off with its brackets closed: at its end, then after one of its last entries.

    ``{"ids": [1, 2`` gives ``{"ids": [1, 2]}``, then ``{"ids": [1]}``. An object in a list is never closed, for as an
    entry it would lack fields.
    """
    closers = ""  # the closing brackets that are due, the innermost first
    cuts = []  # offsets to cut at, each with the brackets due there
    for token in _TOKEN.finditer(text):
        mark = token[0]
        if mark in _OPEN:
            closers = _OPEN[mark] + closers
            continue
        if mark in ("}", "]"):
            closers = closers[1:]
        if mark[0] != '"':
            cuts.append((token.start() if mark == "," else token.end(), closers))
    cuts.append((len(text), closers))
    # "}" before a "]" would close an object in a list
    closed = [text[:cut] + due for cut, due in cuts if not (due.startswith("}") and "]" in due)]
    yield from reversed(closed[-_MAX_CLOSINGS:])


def _distinct(entries: Any) -> Any:
    """Return a list with each entry once ("2. pumps" repeats "1. pumps"); anything else as it is."""
    if not isinstance(entries, list):
        return entries
    kept: dict[str, Any] = {}
    for entry in entries:
        key = _NUMBERING.sub("", entry, count=1) if isinstance(entry, str) else json.dumps(entry)
        kept.setdefault(key, entry)
    return list(kept.values())
