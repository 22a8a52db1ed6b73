"""Corrections by hand, made again in the chunks of a file that is read again."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from langchain_core.documents import Document

from rag_kit.documents.explanation import SITUATION
from rag_kit.indexing.correcting import corrected_metadata
from rag_kit.indexing.document_index.rows import document_rows

if TYPE_CHECKING:
    from rag_kit.indexing.document_index.writing import Correction

#: Fields of a chunk, not of the part of the file that it was cut from.
_OF_CHUNK = frozenset({"chunk", "start", "end", "heading", "table_header", SITUATION})


def correct(
    chunks: Sequence[Document], source: str, corrections: Sequence[Correction]
) -> tuple[list[Document], list[Correction]]:
    """Make corrections in the chunks of a file.

    A chunk with the text that was corrected gets the correction's. Where the file is cut otherwise, the text is
    replaced in each chunk that has all of it at the same place.

    Returns:
        The chunks, each with the id of what was read; and the corrections that have no place any more.
    """
    ids = [row.id for row in document_rows(chunks, given_source=source)]
    exact = {one.id: one for one in corrections if one.id in ids}
    others = [one for one in corrections if one.id not in exact]
    made, done = list[Document](), set[str]()
    for chunk, key in zip(chunks, ids, strict=True):
        text = exact[key].corrected if key in exact else _replaced(chunk, others, done)
        if text == chunk.page_content:
            made.append(Document(text, id=key, metadata=chunk.metadata))
        elif text is not None and text.strip():
            made.append(Document(text, id=key, metadata=corrected_metadata(chunk.metadata)))
    return made, [one for one in others if one.id not in done]


def _replaced(chunk: Document, corrections: Sequence[Correction], done: set[str]) -> str:
    """The text of a chunk with the corrections of what it holds; their ids are added to `done`."""
    text = chunk.page_content
    start, part = _start_and_part(chunk.metadata)
    places = [(*_start_and_part(json.loads(one.metadata)), one) for one in corrections]
    for begin, of_part, one in sorted(places, key=lambda place: -place[0]):
        at = begin - start
        if part == of_part and 0 <= start <= begin and text.startswith(one.text, at):
            text = text[:at] + (one.corrected or "") + text[at + len(one.text) :]
            done.add(one.id)
    return text


def _start_and_part(metadata: Mapping[str, Any]) -> tuple[int, str]:
    """The offset of a chunk in the part of the file that it was cut from, -1 if unknown, and a key of that part."""
    start = metadata.get("start")
    of_part = {k: v for k, v in metadata.items() if k not in _OF_CHUNK and not k.startswith("tag_")}
    return start if type(start) is int else -1, json.dumps(of_part, sort_keys=True, default=str)
