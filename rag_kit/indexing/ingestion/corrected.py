"""Corrections by hand, made again in the chunks of a file that is read again."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any

from langchain_core.documents import Document

from rag_kit.documents.explanation import SITUATION
from rag_kit.indexing.correcting import corrected_metadata
from rag_kit.indexing.document_index.rows import document_rows

if TYPE_CHECKING:
    from rag_kit.indexing.document_index.corrections import Correction

_PIECE = re.compile(r"[^\W\u3400-\u9fff]+|.", re.S)
_MOST_PIECES = 4_000  # of both texts; more are not aligned: the whole text is one change
#: Fields of a chunk, not of the part of the file that it was cut from.
_OF_CHUNK = frozenset({"chunk", "start", "end", "heading", "table_header", SITUATION})


@dataclass(frozen=True, order=True)
class _Edit:
    """A span of a part of the file, and the text that takes its place."""

    start: int
    end: int
    text: str


def correct(
    chunks: Sequence[Document], source: str, corrections: Sequence[Correction]
) -> tuple[list[Document], list[Correction]]:
    """Make corrections in the chunks of a file.

    A chunk with the text that was corrected gets the correction's. In chunks that were cut otherwise, what had been
    changed is changed where it stands now, if it stands in one of them whole.

    Args:
        chunks: As they were cut.
        source: The file.
        corrections: Of the file.

    Returns:
        The chunks, each with the id of what was read; and the corrections that have no place any more.
    """
    waiting = {one.id: one for one in corrections}
    exact: dict[str, Correction] = {}
    ids = [row.id for row in document_rows(chunks, given_source=source)]
    for key in ids:
        if key in waiting:
            exact[key] = waiting.pop(key)
    places = [_Place.of(one) for one in waiting.values()]
    made: list[Document] = []
    for chunk, key in zip(chunks, ids, strict=True):
        text = exact[key].corrected if key in exact else _edited(chunk, places)
        if text == chunk.page_content:
            made.append(Document(text, id=key, metadata=chunk.metadata))
        elif text is not None and text.strip():
            made.append(Document(text, id=key, metadata=corrected_metadata(chunk.metadata)))
    lost = [one for one, place in zip(waiting.values(), places, strict=True) if place.missing]
    return made, lost


@dataclass
class _Place:
    """Where a correction stands, and those of its edits that no chunk has had yet."""

    part: str
    start: int
    text: str
    edits: list[_Edit]
    missing: set[_Edit]

    @classmethod
    def of(cls, correction: Correction) -> _Place:
        metadata = json.loads(correction.metadata)
        start = _start(metadata, correction.text)
        edits = [] if start is None else _edits(correction.text, correction.corrected, start)
        # without a place nothing can be found; such a correction counts as lost
        missing = set(edits) or {_Edit(0, 0, "")}
        return cls(_part(metadata), start or 0, correction.text, edits, missing)


def _edited(chunk: Document, places: Sequence[_Place]) -> str:
    """The text of a chunk with the edits that lie in it."""
    text = chunk.page_content
    start, part = _start(chunk.metadata, text), _part(chunk.metadata)
    if start is None:
        return text
    wanted: set[_Edit] = set()
    for place in places:
        low, high = max(start, place.start), min(start + len(text), place.start + len(place.text))
        if (
            place.part != part
            or text[low - start : high - start] != place.text[low - place.start : high - place.start]
        ):
            continue
        for edit in place.edits if low < high else ():
            # what is put in belongs to the text before it, unless it is put before everything
            inside = low < edit.end or edit.start == edit.end == low == place.start
            # a span that is taken out may lie in several chunks
            cut = edit if edit.text else _Edit(max(edit.start, low), min(edit.end, high), "")
            if inside and low <= cut.start <= cut.end <= high:
                wanted.add(cut)
                place.missing.discard(edit)
    done = start + len(text)
    for edit in sorted(wanted, reverse=True):
        if edit.end <= done:
            text = text[: edit.start - start] + edit.text + text[edit.end - start :]
            done = edit.start
    return text


def _start(metadata: Mapping[str, Any], text: str) -> int | None:
    start, end = metadata.get("start"), metadata.get("end")
    return start if type(start) is int and type(end) is int and end - start == len(text) else None


def _part(metadata: Mapping[str, Any]) -> str:
    """What names the part of a file that a chunk was cut from: its metadata, without those of representations."""
    kept = {k: v for k, v in metadata.items() if k not in _OF_CHUNK and not k.startswith("tag_")}
    return json.dumps(kept, sort_keys=True, default=str)


def _edits(old: str, new: str | None, start: int) -> list[_Edit]:
    if not new:
        return [_Edit(start, start + len(old), "")]
    before, after = _PIECE.findall(old), _PIECE.findall(new)
    if len(before) + len(after) > _MOST_PIECES:
        return [_Edit(start, start + len(old), new)]
    offsets = [start]
    for piece in before:
        offsets.append(offsets[-1] + len(piece))
    return [
        _Edit(offsets[i1], offsets[i2], "".join(after[j1:j2]))
        for tag, i1, i2, j1, j2 in SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
        if tag != "equal"
    ]
