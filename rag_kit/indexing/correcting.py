"""Correction by hand: chunks to a JSONL file, and what was changed in it back into the index."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from langchain_core.documents import Document
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rag_kit.documents.explanation import CORRECTED
from rag_kit.documents.files import json_line, replace_file
from rag_kit.errors import InvalidInputError
from rag_kit.indexing.document_index.index import DocumentIndex
from rag_kit.indexing.document_index.rows import Child, Family, document_rows, family_rows, make_row
from rag_kit.indexing.document_index.writing import Batch, Correction

_PAGE_SIZE = 500  # chunks that are read at a time


class _Line(BaseModel):
    """A line of the file of chunks."""

    model_config = ConfigDict(strict=True)

    id: str
    text: Annotated[str, Field(pattern=r"\S")] | None


class Corrected(NamedTuple):
    """Counts of the chunks that `import_chunks` changed."""

    corrected: int
    removed: int
    restored: int
    unchanged: int


def export_chunks(index: DocumentIndex, path: str | PathLike[str]) -> int:
    """Write all chunks of an index as JSON lines to correct: ``id``, ``text``, ``metadata``.

    Chunks that were corrected before have their ``original`` text, too; of those that were taken out ``text`` is null.

    Args:
        index: The index.
        path: A new file.

    Returns:
        How many chunks.

    Raises:
        InvalidInputError: There is such a file already, or it cannot be written.
    """
    corrections = {correction.id: correction for correction in index.corrections()}
    ids = index.passage_ids()
    removed = [correction for correction in corrections.values() if correction.corrected is None]

    def lines() -> Iterator[dict[str, Any]]:
        """Yield a line for each chunk of the index, and for each that was taken out."""
        for start in range(0, len(ids), _PAGE_SIZE):
            for chunk in index.get(ids[start : start + _PAGE_SIZE]):
                line = {"id": chunk.id, "text": chunk.page_content, "metadata": chunk.metadata}
                if chunk.id in corrections and chunk.metadata.get(CORRECTED) is True:
                    line["original"] = corrections[chunk.id].text
                yield line
        for correction in removed:
            metadata = json.loads(correction.metadata)
            yield {"id": correction.id, "text": None, "metadata": metadata, "original": correction.text}

    if os.path.lexists(path):
        raise InvalidInputError(f"{path} is there already, and may hold corrections. Name a new file.")
    try:
        replace_file(Path(path), lambda file: file.writelines(map(json_line, lines())))
    except OSError as error:
        raise InvalidInputError(f"{path} cannot be written ({error.strerror or error}).") from error
    return len(ids) + len(removed)


def import_chunks(index: DocumentIndex, path: str | PathLike[str]) -> Corrected:
    """Apply the changed texts of a file of `export_chunks` to the index, in one transaction.

    Only ``id`` and ``text`` count; chunks that are not in the file stay as they are. A corrected chunk keeps its id, is
    embedded and searched by its new text, gets the metadata field ``corrected_by_hand`` and loses its offsets in the
    file. ``"text": null`` takes a chunk out; its original text puts it back as it was. When `ingest` reads the file
    again, it makes the corrections again, reports those that fit nowhere, and represents corrected chunks anew.

    Args:
        index: The index, opened for writing with its embedding model.
        path: The file.

    Raises:
        InvalidInputError: A line is wrong; the message has its number, and nothing was changed.
        ModelError: The embedding model failed; nothing was changed.

    Example:
        >>> import pathlib, tempfile
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> with DocumentIndex.create(folder / "index") as index:
        ...     _ = index.upsert([Document("The pump starts at 4O degrees.", id="pump")])
        ...     _ = export_chunks(index, folder / "chunks.jsonl")
        ...     text = (folder / "chunks.jsonl").read_text().replace("4O", "40")
        ...     _ = (folder / "chunks.jsonl").write_text(text)
        ...     import_chunks(index, folder / "chunks.jsonl").corrected, index.get(["pump"])[0].page_content
        (1, 'The pump starts at 40 degrees.')
    """
    lines = _read_lines(Path(path))

    def read_stored() -> tuple[dict[str, Correction], dict[str, tuple[Correction, bool]]]:
        """Return what the index has of the lines' chunks: earlier corrections, and the chunks themselves."""
        earlier = {correction.id: correction for correction in index.corrections() if correction.id in lines}
        return earlier, index.present_chunks(lines)

    def check(_: Batch) -> None:
        """Raise InvalidInputError inside the transaction if the index does not have what was read before it."""
        if read_stored() != (earlier, present):
            raise InvalidInputError(
                f"{path}: another process has just changed chunks of it. Nothing was changed; export again."
            )

    earlier, present = read_stored()
    is_represented = bool(index.settings.get("represent"))
    changes = list[Correction]()
    for key, (number, text) in lines.items():
        chunk, has_children = present.get(key, (None, False))
        original = _chunk_as_read(chunk, earlier.get(key))
        # only an ingest can make children of the new text
        if original is None or (has_children and not is_represented):
            raise InvalidInputError(
                f"{path}, line {number}: the index has no chunk {key!r} that can be corrected; its file may have "
                "changed. Nothing was changed; export again."
            )
        text_now = None if chunk is None else chunk.text
        if text != text_now:
            changes.append(original._replace(corrected=text))
    # a chunk that was taken out is put back with children if the others have them
    with_children = {change.id for change in changes if present.get(change.id, (None, is_represented))[1]}
    line_names = {key: f"{path}, line {number}" for key, (number, _) in lines.items()}  # for errors
    batch = _batch_of(changes, with_children, line_names)
    corrections = [change for change in changes if change.corrected != change.text]
    restored = [change.id for change in changes if change.corrected == change.text]
    removed = [change.id for change in changes if change.corrected is None]
    # without settings on record the next ingest reads these files again, and represents their chunks
    records = index.source_records() if is_represented else {}
    sources = {row.source for row in batch.parents}
    to_read = [replace(records[source], settings="") for source in sorted(records.keys() & sources)]
    batch = replace(batch, removed_ids=removed, records=to_read, check=check)
    index.write(replace(batch, corrections=corrections, uncorrected=restored))
    corrected, unchanged = len(corrections) - len(removed), len(lines) - len(changes)
    return Corrected(corrected, len(removed), len(restored), unchanged)


def _batch_of(
    changes: Sequence[Correction], with_children: Collection[str], line_names: Mapping[str, str]
) -> Batch:
    """Make the batch that writes changed texts: as chunks; ids in ``with_children`` as documents with one child."""
    rows, families, sources = [], list[Family](), list[str]()  # and the sources of the families
    for change in changes:
        key, text = change.id, change.corrected
        if text is None:
            continue
        metadata = json.loads(change.metadata)
        if text != change.text:
            metadata = _corrected_metadata(metadata)
        if key in with_children:
            families.append(Family(Document(text, id=key, metadata=metadata), [Child(text, 0, len(text))]))
            sources.append(change.source)
        else:
            rows.append(make_row(line_names[key], key, change.source, change.ordinal, text, metadata))
    parents, children = family_rows(families, sources=sources)
    return Batch([*rows, *children], parents)


def _chunk_as_read(stored: Correction | None, earlier: Correction | None) -> Correction | None:
    """Return a chunk as it was read: as it is stored, or by its ``earlier`` correction; ``None`` if it is unknown."""
    if stored is None:
        was_taken_out = earlier is not None and earlier.corrected is None
        return earlier if was_taken_out else None
    is_corrected = earlier is not None and json.loads(stored.metadata).get(CORRECTED) is True
    return earlier if is_corrected else stored


def apply_corrections(
    chunks: Sequence[Document], source: str, corrections: Sequence[Correction]
) -> tuple[list[Document], list[Correction]]:
    """Apply corrections to the chunks of a file; also return the corrections that fit nowhere any more.

    A chunk whose text was corrected gets the corrected text. If the file is now split otherwise, the text is replaced
    in each chunk that contains all of it. Each chunk keeps the id made of its text as read; blank ones are dropped.
    """
    ids = [row.id for row in document_rows(chunks, sources=source)]
    correction_of = {correction.id: correction for correction in corrections if correction.id in ids}
    others = [correction for correction in corrections if correction.id not in correction_of]
    results, placed = list[Document](), set[str]()  # placed: ids of the others that fit somewhere
    for chunk, key in zip(chunks, ids, strict=True):
        text = chunk.page_content
        if key in correction_of:
            text = correction_of[key].corrected or ""  # None: it was taken out
        else:
            for correction in others:
                if correction.text in text:
                    text = text.replace(correction.text, correction.corrected or "")
                    placed.add(correction.id)
        if text == chunk.page_content:
            results.append(Document(text, id=key, metadata=chunk.metadata))
        elif text.strip():
            results.append(Document(text, id=key, metadata=_corrected_metadata(chunk.metadata)))
    return results, [correction for correction in others if correction.id not in placed]


def _corrected_metadata(metadata: dict[str, Any]) -> dict[str, Any]:
    """Return metadata of a chunk marked as corrected, and without offsets, for the new text is not in the file."""
    fields = {key: value for key, value in metadata.items() if key not in ("start", "end")}
    return {**fields, CORRECTED: True}


def _read_lines(path: Path) -> dict[str, tuple[int, str | None]]:
    """Read the lines of a file of chunks: id -> (line number, text); ``None`` for a chunk to take out."""
    lines: dict[str, tuple[int, str | None]] = {}
    number = 0
    try:
        for number, data in enumerate(path.read_bytes().split(b"\n"), 1):
            if data.strip():
                line = _Line.model_validate_json(data.removeprefix(b"\xef\xbb\xbf"))  # the byte order mark
                if line.id in lines:
                    raise ValueError(f"the id {line.id!r} is on line {lines[line.id][0]}, too")
                lines[line.id] = (number, line.text)
    except ValueError as error:
        reason = str(error)
        if isinstance(error, ValidationError):
            detail = error.errors(include_url=False)[0]
            reason = "".join(f'"{name}": ' for name in detail["loc"]) + detail["msg"]
        raise InvalidInputError(
            f'{path}, line {number}: {reason}. A line has an "id" of its own, and a "text" that is not empty, or '
            "null to take the chunk out. Nothing was changed."
        ) from error
    except OSError as error:
        raise InvalidInputError(f"{path} cannot be read ({error.strerror or error}).") from error
    return lines
