"""JSON out of what models write: fences, prose around it, trailing commas, Chinese punctuation."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

MAX_TEXT = 100_000
_MAX_STARTS = 32
_MAX_DEPTH = 64
# Nothing is given back (``*+``): a fence that is never closed would be tried at each of its places.
_FENCE = re.compile(r"(?:```|~~~)[ \t]*+([\w+-]*+)[ \t]*+\n?+(.*?)(?:```|~~~)", re.DOTALL)
# Only what can begin JSON is worth a scan to its end; other braces in prose are passed over.
_START = re.compile(r"[{｛](?=\s*[\"'“”‘＂}｝])|[\[［](?=\s*(?:[\"'“”‘＂\[{［｛\]］\d-]|true|false|null))")

_OPEN = {"{": "}", "[": "]"}
_PUNCTUATION = dict(zip("，：｛｝［］【】、", ",:{}[][],", strict=True))
_QUOTES = {'"': '"', "“": '”"“', "”": '”"', "'": "'", "‘": "’'", "＂": '＂"'}
# A quote closes its string only if what follows is punctuation of JSON, or nothing.
_STRINGS = {
    quote: re.compile(
        rf"((?:\\.|[^\\])*?)[{closing}](?=\s{{0,200}}(?:[,:}}\]，：｝］】、]|\Z)|\s{{200}})", re.DOTALL
    )
    for quote, closing in _QUOTES.items()
}
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
            value, end = _read_value(text, 0)
            if not text[end:].strip():
                yield value
                return
    fenced = [match.group(2).strip() for match in _FENCE.finditer(text)]
    for block in reversed(fenced):
        yield from reversed(_find_values(block)[0])
    yield from reversed(_find_values(_FENCE.sub("\n", text))[0])


def is_truncated(text: str) -> bool:
    """Tell whether a text ends in JSON that breaks off, also behind a fence or a preamble."""
    return _find_values(text[:MAX_TEXT])[1]


def _find_values(text: str) -> tuple[list[Any], bool]:
    """Find the values in a text, and whether the last one breaks off; parts of a broken value do not count."""
    values: list[Any] = []
    position = 0
    for _ in range(_MAX_STARTS):
        match = _START.search(text, position)
        if match is None:
            break
        try:
            value = _read_value(text, match.start())
        except TruncatedError:
            return values, True
        except (ValueError, RecursionError):
            position = match.start() + 1
            continue
        values.append(value[0])
        position = value[1]
    return values, False


def _read_value(text: str, start: int) -> tuple[Any, int]:
    """Read the value that starts at a position; also return where it ends."""
    try:
        value, end = _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):
        strict, end = _to_strict_json(text, start)
        value = _DECODER.decode(strict)
    return value, end


def _to_strict_json(text: str, start: int) -> tuple[str, int]:
    """Rewrite the value that starts here as strict JSON; (JSON text, end position). No JSON at all is a ValueError."""
    out: list[str] = []
    closers: list[str] = []
    i = start
    while i < len(text):
        c = _PUNCTUATION.get(text[i], text[i])
        if c in _QUOTES:
            string, i = _read_string(text, i)
            out.append(string)
            continue
        if c in _OPEN:
            closers.append(_OPEN[c])
            if len(closers) > _MAX_DEPTH:
                raise ValueError(f"nested deeper than {_MAX_DEPTH}")
        elif c in "}]":
            if not closers or closers.pop() != c:
                raise ValueError("brackets do not match")
            while out and (out[-1].isspace() or out[-1] == ","):
                out.pop()
        elif c.isalpha():
            word = re.compile(r"[^\W\d]\w*").match(text, i)
            name = word.group() if word else c
            out.append(_WORDS.get(name, name))
            i += len(name)
            continue
        out.append(c)
        i += 1
        if not closers:
            return "".join(out), i
    raise TruncatedError("the JSON breaks off")


def _read_string(text: str, start: int) -> tuple[str, int]:
    """Read a string whose closing quote may be of another kind, or whose inner quotes are not escaped."""
    match = _STRINGS[text[start]].match(text, start + 1)
    if match is None:
        raise TruncatedError("a string breaks off")
    return _quote_json(match[1]), match.end()


def _quote_json(raw: str) -> str:
    """Write the inside of a string as a JSON string."""
    try:
        return json.dumps(json.loads('"' + re.sub(r'(?<!\\)"', r"\"", raw) + '"', strict=False))
    except ValueError:
        return json.dumps(raw)
