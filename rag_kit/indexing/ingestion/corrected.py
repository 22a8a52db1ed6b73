"""Corrections by hand, made again in the chunks of a file that is read again."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any, NamedTuple

from langchain_core.documents import Document

from rag_kit.documents.explanation import SITUATION
from rag_kit.indexing.correcting import corrected_metadata
from rag_kit.indexing.document_index.rows import document_rows

if TYPE_CHECKING:
    from rag_kit.indexing.document_index.writing import Correction

_PIECE = re.compile(r"[^\W\u3400-\u9fff]+|.", re.S)
_MOST_PIECES = 4_000  # of both texts; more are not aligned: the whole text is one change
#: Fields of a chunk, not of the part of the file that it was cut from.
_OF_CHUNK = frozenset({"chunk", "start", "end", "heading", "table_header", SITUATION})

_Made = tuple[int, int, str, str]  # the first four of an `_Edit`


class _Edit(NamedTuple):
    """A span of a part of the file, the text that takes its place, and the chunk that was corrected."""

    start: int
    end: int
    text: str
    part: str
    first: int
    chunk: str


def correct(
    chunks: Sequence[Document], source: str, corrections: Sequence[Correction]
) -> tuple[list[Document], list[Correction]]:
    """Make corrections in the chunks of a file.

    A chunk with the text that was corrected gets the correction's. In chunks that were cut otherwise, what had been
    changed is changed where it stands now, if it stands in one of them whole.

    Returns:
        The chunks, each with the id of what was read; and the corrections that have no place any more.
    """
    ids = [row.id for row in document_rows(chunks, given_source=source)]
    exact = {one.id: one for one in corrections if one.id in ids}
    edits = {one.id: list(_edits(one)) for one in corrections if one.id not in exact}
    made = list[Document]()
    # what passages share is changed once, by whichever correction has a place
    done = {edit[:4] for one in exact.values() for edit in _edits(one)}
    for chunk, key in zip(chunks, ids, strict=True):
        text: str | None = exact[key].corrected if key in exact else _edited(chunk, edits.values(), done)
        if text == chunk.page_content:
            made.append(Document(text, id=key, metadata=chunk.metadata))
        elif text is not None and text.strip():
            made.append(Document(text, id=key, metadata=corrected_metadata(chunk.metadata)))
    lost = [one for one in corrections if one.id in edits and not _is_done(edits[one.id], done)]
    return made, lost


def _is_done(edits: Sequence[_Edit], done: set[_Made]) -> bool:
    """Whether all of a correction was made; one without a place in the file has no edits."""
    return bool(edits) and done.issuperset(edit[:4] for edit in edits)


def _edited(chunk: Document, places: Iterable[Sequence[_Edit]], done: set[_Made]) -> str:
    """The text of a chunk with the edits that lie in it, which are added to `done`."""
    text = chunk.page_content
    start, part = _offset_and_part(chunk.metadata, text)
    wanted: set[tuple[int, int, str]] = set()
    for edit in (edit for edits in places for edit in edits):
        first = edit.first
        low, high = max(start, first), min(start + len(text), first + len(edit.chunk))
        if start < 0 or edit.part != part or low >= high:
            continue
        if text[low - start : high - start] != edit.chunk[low - first : high - first]:
            continue
        # a span that is taken out may lie in several chunks
        cut = edit if edit.text else edit._replace(start=max(edit.start, low), end=min(edit.end, high))
        # what is put in belongs to the text before it, unless it is put before everything
        inside = low < edit.end or edit.start == edit.end == low == first
        if inside and low <= cut.start <= cut.end <= high:
            wanted.add(cut[:3])
            done.add(edit[:4])
    before = start + len(text)
    for first, end, new in sorted(wanted, reverse=True):
        if end <= before:
            text, before = text[: first - start] + new + text[end - start :], first
    return text


def _offset_and_part(metadata: Mapping[str, Any], text: str) -> tuple[int, str]:
    """The offset of a chunk in the part of the file that it was cut from, -1 if unknown, and a key of that part."""
    start: Any = metadata.get("start")
    end: Any = metadata.get("end")
    known = type(start) is int and type(end) is int and end - start == len(text)
    of_part = {k: v for k, v in metadata.items() if k not in _OF_CHUNK and not k.startswith("tag_")}
    return start if known else -1, json.dumps(of_part, sort_keys=True, default=str)


def _edits(correction: Correction) -> Iterator[_Edit]:
    """The spans that a correction changed, by a diff of its words; none for a chunk without an offset."""
    old, new = correction.text, correction.corrected or ""
    start, part = _offset_and_part(json.loads(correction.metadata), old)
    before, after = _PIECE.findall(old), _PIECE.findall(new)
    if start < 0:
        return
    if not new or len(before) + len(after) > _MOST_PIECES:
        yield _Edit(start, start + len(old), new, part, start, old)
        return
    offsets = [start]
    for piece in before:
        offsets.append(offsets[-1] + len(piece))
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag != "equal":
            yield _Edit(offsets[i1], offsets[i2], "".join(after[j1:j2]), part, start, old)
