"""JSON out of what models write: fences, prose around it, trailing commas, Chinese punctuation."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

MAX_TEXT = 200_000
_MAX_STARTS = 64
_FENCE = re.compile(r"(?:```|~~~)[ \t]*([\w+-]*)[ \t]*\n?(.*?)(?:```|~~~)", re.DOTALL)
_THINK = re.compile(r"<(think|thinking|thought|reasoning)>.*?</\1>", re.DOTALL | re.IGNORECASE)
_THINK_END = re.compile(r"^.*</(?:think|thinking|thought|reasoning)>", re.DOTALL | re.IGNORECASE)
_THINK_OPEN = re.compile(r"<(?:think|thinking|thought|reasoning)>.*\Z", re.DOTALL | re.IGNORECASE)

_OPEN = {"{": "}", "[": "]"}
_PUNCTUATION = {
    "，": ",",
    "：": ":",
    "｛": "{",
    "｝": "}",
    "［": "[",
    "］": "]",
    "【": "[",
    "】": "]",
    "、": ",",
}
_QUOTES = {'"': '"', "“": '”"“', "”": '”"', "'": "'", "‘": "’'", "＂": '＂"'}
_WORDS = {"True": "true", "False": "false", "None": "null", "undefined": "null"}
_DECODER = json.JSONDecoder(strict=False)


class TruncatedError(ValueError):
    """The text ends in the middle of a JSON value."""


def without_thinking(text: str) -> str:
    """Drop reasoning blocks, also one whose opening tag the server swallowed or whose end is missing.

    Example:
        >>> without_thinking('<think>maybe {"a": 2}</think>{"a": 1}')
        '{"a": 1}'
    """
    text = _THINK.sub("", text)
    text = _THINK_END.sub("", text)
    return _THINK_OPEN.sub("", text).strip()


def json_values(text: str) -> Iterator[Any]:
    """Every JSON object or array in a text, the likeliest answer first.

    The whole text comes first, then fenced blocks and embedded values, each kind from the last to the
    first: a model that thinks aloud gives its answer at the end.

    Args:
        text: What the model wrote; what goes beyond 200,000 characters is not looked at.

    Yields:
        Parsed values.

    Example:
        >>> list(json_values('Sure: {"query"： “cats”,} Done.'))
        [{'query': 'cats'}]
    """
    text = text[:MAX_TEXT].strip().lstrip("\ufeff")
    if not text:
        return
    whole = _at(text, 0) if text[0] in '{["｛［' else None
    if whole is not None and not text[whole[1] :].strip():
        yield whole[0]
        return
    fenced = [match.group(2).strip() for match in _FENCE.finditer(text)]
    for block in reversed(fenced):
        for value, _ in reversed(_embedded(block)):
            yield value
    for value, _ in reversed(_embedded(_FENCE.sub("\n", text))):
        yield value


def is_truncated(text: str) -> bool:
    """Whether the text is JSON that breaks off (behind a fence or a preamble, too).

    Example:
        >>> is_truncated('{"queries": ["a", "b'), is_truncated("plain words")
        (True, False)
    """
    start = min((at for mark in ("{", "[", "｛") if (at := text.find(mark)) >= 0), default=-1)
    if start < 0 or _embedded(text[:MAX_TEXT]):
        return False
    try:
        _strict(text[:MAX_TEXT], start)
    except TruncatedError:
        return True
    return False


def _embedded(text: str) -> list[tuple[Any, int]]:
    found: list[tuple[Any, int]] = []
    position = 0
    for _ in range(_MAX_STARTS):
        match = re.compile(r"[{\[｛]").search(text, position)
        if match is None:
            break
        value = _at(text, match.start())
        if value is None:
            position = match.start() + 1
        else:
            found.append(value)
            position = value[1]
    return found


def _at(text: str, start: int) -> tuple[Any, int] | None:
    """The value that starts here and where it ends, else None."""
    try:
        value, end = _DECODER.raw_decode(text, start)
        return value, end
    except (ValueError, RecursionError):
        pass  # not strict JSON: read it leniently below
    try:
        strict, end = _strict(text, start)
        return _DECODER.decode(strict), end
    except (ValueError, RecursionError):
        return None


def _strict(text: str, start: int) -> tuple[str, int]:
    """Rewrite the value that starts here as strict JSON; (JSON text, end position).

    Raises:
        TruncatedError: The text ends before the value does.
        ValueError: It is no JSON, however leniently read.
    """
    out: list[str] = []
    closers: list[str] = []
    i = start
    while i < len(text):
        c = _PUNCTUATION.get(text[i], text[i])
        if c in _QUOTES:
            string, i = _string(text, i)
            out.append(string)
            continue
        if c in _OPEN:
            closers.append(_OPEN[c])
        elif c in "}]":
            if not closers or closers.pop() != c:
                raise ValueError("brackets do not match")
            while out and (out[-1].isspace() or out[-1] == ","):
                out.pop()
        elif text.startswith("//", i):
            i = _line_end(text, i)
            continue
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


def _line_end(text: str, i: int) -> int:
    end = text.find("\n", i)
    return len(text) if end < 0 else end


def _string(text: str, start: int) -> tuple[str, int]:
    """Read a string whose closing quote may be of another kind, or whose inner quotes are not escaped."""
    closing = _QUOTES[text[start]]
    i = start + 1
    while i < len(text):
        if text[i] == "\\":
            i += 2
            continue
        if text[i] in closing and _ends_string(text, i + 1):
            return _quoted(text[start + 1 : i]), i + 1
        i += 1
    raise TruncatedError("a string breaks off")


def _ends_string(text: str, after: int) -> bool:
    """A quote closes its string only if what follows is punctuation of JSON, or nothing."""
    rest = text[after : after + 200].lstrip()
    return not rest or rest[0] in ",:}]，：｝］】、" or rest.startswith("//")


def _quoted(raw: str) -> str:
    try:
        return json.dumps(json.loads('"' + re.sub(r'(?<!\\)"', r"\"", raw) + '"', strict=False))
    except ValueError:
        return json.dumps(raw)
