"""A beam as an answer: its text, its citations, the passages it rests on."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rag_kit.graphs.self_rag.state import Beam, Segment
from rag_kit.text import detect_language, sentences
from rag_kit.text.citations.statements import renumbered

_ENDED = re.compile(r"[.!?。！？…][\"'”’」』)）\]]*$")
_END = re.compile(r"^\W*END\W*$")


def tidy(text: str, count: int) -> str:
    """A continuation without citations of its own, at most `count` sentences; empty if it says END.

    Example:
        >>> tidy("The fan is loud. [1] It is red. It is old.", 2), tidy("END.", 1)
        ('The fan is loud. It is red.', '')
    """
    if _END.match(text):
        return ""
    bare = renumbered(text, {}).strip()
    found = sentences(bare)
    # a model that says something and then END means the end of its text
    if len(found) > 1 and _END.match(found[-1].text):
        found = found[:-1]
    kept = found[:count]
    return bare[kept[0].start : kept[-1].end].strip() if kept else ""


def answer_so_far(beam: Beam) -> str:
    """The answer so far, without citations."""
    return _joined([segment["text"] for segment in beam["segments"]])


def used_passages(segments: Sequence[Segment]) -> list[int]:
    """Indices of the passages that an answer rests on, in the order of their first use."""
    return list(dict.fromkeys(part["passage"] for part in segments if part["passage"] is not None))


def cited_pieces(segments: Sequence[Segment]) -> list[str]:
    """The segments as they stand in the answer, ``[n]`` after each sentence; joined they are the answer.

    Example:
        >>> first = {"text": "Tea is hot. Ice is cold.", "beam": 1, "passage": 7, "f": 1.0}
        >>> cited_pieces([first, {"text": "Hello", "beam": 1, "passage": None, "f": 1.0}])
        ['Tea is hot.[1] Ice is cold.[1]', ' Hello.']
    """
    numbers = {passage: number for number, passage in enumerate(used_passages(segments), start=1)}
    pieces: list[str] = []
    for part in segments:
        mark = "" if part["passage"] is None else f"[{numbers[part['passage']]}]"
        text = _joined([f"{_finished(one.text)}{mark}" for one in sentences(part["text"])])
        pieces.append(_gap(pieces[-1] if pieces else "", text) + text)
    return pieces


def _finished(text: str) -> str:
    """A sentence with a stop, without which the citation check could not tell it from the next; rows have none."""
    text = " ".join(text.split())
    if text.startswith("|") or _ENDED.search(text):
        return text
    return text.rstrip(",;:，；：、") + ("。" if detect_language(text) == "zh" else ".")


def _joined(parts: Sequence[str]) -> str:
    text = ""
    for part in parts:
        text += _gap(text, part) + part
    return text


def _gap(before: str, part: str) -> str:
    """Rows of a table stand on lines of their own; Chinese sentences have no blank between them."""
    if not before:
        return ""
    if before.lstrip().startswith("|") or part.startswith("|"):
        return "\n"
    return "" if detect_language(part) == "zh" else " "
