"""An answer taken apart: its statements, each with the numbers that it cites, and the tokens of a text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from rag_kit.text.analysis import content_words
from rag_kit.text.sentences import sentences

MAX_ANSWER = 100_000
"""Characters of an answer that are looked at."""

MAX_STATEMENTS = 500
_MAX_RANGE = 20
_MARK = re.compile(
    r"[\[［【]\s{0,4}(?P<numbers>\d{1,6}(?:\s{0,4}(?:[,，、;；–—~-]|and|和)\s{0,4}\d{1,6}){0,40})\s{0,4}[\]］】]"
)
_BLANK_AND_MARK = re.compile(rf"(?P<blank>\s?){_MARK.pattern}")
_PLAIN = re.compile(r"\[(\d{1,6})\]")
# begins where a run of blanks begins, so that a long run is looked at once and not from each of its blanks
_SPACE_BEFORE = re.compile(r"(?<![ \t])[ \t]++(?=\[\d{1,6}\])")
_LEADING = re.compile(r"^(?:\s*\[\d{1,6}\])+")
_RANGE = re.compile(r"(\d{1,6})\s{0,4}[–—~-]\s{0,4}(\d{1,6})")
_NO_STATEMENT = re.compile(
    r"^\s*(?:#{1,6}\s.*|[-*•·]?\s*(?:\*\*)?[^.!?。！？]{0,120}[:：](?:\*\*)?\s*|[\W_]*)$", re.DOTALL
)


class Statement(NamedTuple):
    """A statement of an answer and the numbers that it cites, each once, in order."""

    text: str
    numbers: tuple[int, ...]


def statements(answer: str) -> list[Statement]:
    """Cut an answer into statements with their citations.

    Marks may be ``[1]``, ``[1, 2]``, ``[1-3]``, ``[1][2]``, ``【1】`` or ``［1］``, before or after the full
    stop, or on the next line. A sentence with several marks is cut at them where each part says something.
    Headings and lines that only introduce a list are no statements.

    Args:
        answer: The answer; MAX_ANSWER characters and MAX_STATEMENTS statements are looked at.

    Example:
        >>> statements("A cat sleeps [1]. Dogs bark loudly 【2、3】。")
        [Statement(text='A cat sleeps.', numbers=(1,)), Statement(text='Dogs bark loudly。', numbers=(2, 3))]
    """
    plain = _SPACE_BEFORE.sub("", _MARK.sub(_normal, answer[:MAX_ANSWER]))
    found: list[Statement] = []
    for sentence in sentences(plain):
        text = sentence.text
        leading = _LEADING.match(text)
        if leading and found and not found[-1].numbers:
            found[-1] = Statement(found[-1].text, _numbers(leading.group()))
            text = text[leading.end() :]
        if len(found) >= MAX_STATEMENTS:
            break
        found.extend(part for part in _parts(text) if part.numbers or not _NO_STATEMENT.match(part.text))
    return found[:MAX_STATEMENTS]


def renumbered(answer: str, numbers: Mapping[int, int]) -> str:
    """An answer with other numbers in its marks; a number that has no other is left out.

    Example:
        >>> renumbered("Tea is hot [1, 2]. So is coffee【3】.", {1: 4, 3: 1})
        'Tea is hot [4]. So is coffee[1].'
        >>> renumbered("Tea is hot [1].", {})
        'Tea is hot.'
    """

    def new_marks(match: re.Match[str]) -> str:
        news = [numbers[n] for n in _numbers(_normal(match)) if n in numbers]
        return match["blank"] + "".join(f"[{n}]" for n in news) if news else ""

    return _BLANK_AND_MARK.sub(new_marks, answer)


def _normal(match: re.Match[str]) -> str:
    """A mark of any form as ``[1][2]``."""
    numbers: list[int] = []
    text = _RANGE.sub(_expanded, match["numbers"])
    for number in map(int, re.findall(r"\d{1,6}", text)):
        if number not in numbers:
            numbers.append(number)
    return "".join(f"[{number}]" for number in numbers)


def _expanded(match: re.Match[str]) -> str:
    first, last = int(match[1]), int(match[2])
    if first <= last < first + _MAX_RANGE:
        return ",".join(map(str, range(first, last + 1)))
    return f"{first},{last}"


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(dict.fromkeys(int(number) for number in _PLAIN.findall(text)))


def _parts(sentence: str) -> list[Statement]:
    """A sentence at its marks: several statements if each part has two content words or more, else one."""
    parts: list[Statement] = []
    start = 0
    for group in re.finditer(r"(?:\[\d{1,6}\]\s{0,3})+", sentence):
        parts.append(Statement(sentence[start : group.start()].strip(" ,，;；、"), _numbers(group.group())))
        start = group.end()
    rest = sentence[start:].strip()
    if (
        len(parts) > 1
        and not content_words(rest)
        and all(len(content_words(part.text)) > 1 for part in parts)
    ):
        return parts
    bare = re.sub(r"\s+([.,;!?])", r"\1", _PLAIN.sub("", sentence)).strip()
    return [Statement(bare, _numbers(sentence))] if bare or parts else []
