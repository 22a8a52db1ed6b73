"""Correction by hand: chunks to a JSONL file, and what was changed in it back into the index."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from langchain_core.documents import Document
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rag_kit.documents.explanation import CORRECTED, SITUATION
from rag_kit.errors import InvalidInputError
from rag_kit.indexing.document_index.families import Child, Family, family_rows
from rag_kit.indexing.document_index.rows import Row, document_rows, dump_metadata, text_hash
from rag_kit.indexing.document_index.writing import Batch, Correction

if TYPE_CHECKING:
    from rag_kit.indexing.document_index.index import DocumentIndex


#: Fields of a chunk, not of the part of the file that it was cut from.
_OF_CHUNK = frozenset({"chunk", "start", "end", "heading", "table_header", SITUATION})


class _Line(BaseModel):
    """What counts of a line of the file."""

    model_config = ConfigDict(strict=True)

    id: str
    text: Annotated[str, Field(pattern=r"\S")] | None


class Corrected(NamedTuple):
    """What `import_chunks` changed, in numbers of chunks."""

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
    old = {one.id: one for one in index.corrections()}
    ids = index.passage_ids()
    gone = [one for one in old.values() if one.corrected is None]
    try:
        with Path(path).open("x", encoding="utf-8") as file:
            for at in range(0, len(ids), 500):
                for one in index.get(ids[at : at + 500]):
                    line: dict[str, Any] = {"id": one.id, "text": one.page_content, "metadata": one.metadata}
                    if one.id in old and one.metadata.get(CORRECTED) is True:
                        line["original"] = old[one.id].text
                    file.write(json.dumps(line, ensure_ascii=False) + "\n")
            for taken in gone:
                line = {"id": taken.id, "text": None, "metadata": json.loads(taken.metadata)}
                file.write(json.dumps({**line, "original": taken.text}, ensure_ascii=False) + "\n")
    except FileExistsError as error:
        raise InvalidInputError(
            f"{path} is there already, and may hold corrections. Name a new file."
        ) from error
    except OSError as error:
        raise InvalidInputError(f"{path} cannot be written ({error.strerror or error}).") from error
    return len(ids) + len(gone)


def import_chunks(index: DocumentIndex, path: str | PathLike[str]) -> Corrected:
    """Take over the texts of a file of `export_chunks` that differ from the index, in one transaction.

    Only ``id`` and ``text`` count; chunks that are not in the file stay as they are. A corrected chunk keeps its id, is
    embedded and searched by its new text, has the metadata field ``corrected_by_hand`` and no place in the file any
    more. ``"text": null`` takes a chunk out; its original text puts it back as it was. `ingest` makes corrections
    again when it reads the file again, and says which have no place any more. Texts that represent a corrected chunk
    go, and the next `ingest` makes them anew.

    Args:
        index: The index, opened for writing with its embedding model.
        path: The file.

    Raises:
        InvalidInputError: A line is wrong; the message has its number, and nothing was changed.
        ModelError: The embedding model failed; nothing was changed.

    Example:
        >>> import pathlib, tempfile
        >>> from rag_kit.indexing import DocumentIndex
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> with DocumentIndex.create(folder / "index") as index:
        ...     _ = index.upsert([Document("The pump starts at 4O degrees.", id="pump")])
        ...     _ = export_chunks(index, folder / "chunks.jsonl")
        ...     text = (folder / "chunks.jsonl").read_text().replace("4O", "40")
        ...     _ = (folder / "chunks.jsonl").write_text(text)
        ...     import_chunks(index, folder / "chunks.jsonl").corrected, index.get(["pump"])[0].page_content
        (1, 'The pump starts at 40 degrees.')
    """
    lines: dict[str, tuple[int, str | None]] = {}
    for number, key, text in _lines(Path(path)):
        if key in lines:
            raise InvalidInputError(
                f"{path}, line {number}: the id {key!r} is on line {lines[key][0]}, too. Keep one of them."
            )
        lines[key] = (number, text)
    old, present = {one.id: one for one in index.corrections()}, index.present_chunks(lines)
    rows, families, corrections = list[Row](), list[Family](), list[Correction]()
    removed, restored, sources = list[str](), list[str](), list[str]()
    represented = bool(index.settings.get("represent"))
    for key, (number, text) in lines.items():
        now, is_parent = present.get(key, (None, False))
        base = old.get(key)
        if now is not None and (base is None or json.loads(now.metadata).get(CORRECTED) is not True):
            base = now
        if base is None or (now is None and base.corrected is not None) or (is_parent and not represented):
            raise InvalidInputError(
                f"{path}, line {number}: the index has no chunk {key!r} that can be corrected; its file may have "
                "changed. Nothing was changed; export again."
            )
        if text == (None if now is None else now.text):
            continue
        if text != base.text:
            corrections.append(base._replace(corrected=text))
        if text is None:
            removed.append(key)
            continue
        metadata = json.loads(base.metadata)
        if text == base.text:
            restored.append(key)
        else:
            metadata = _corrected_metadata(metadata)
        if is_parent or (now is None and represented):
            whole = Document(text, id=key, metadata=metadata)
            families.append(Family(whole, [Child(text, 0, len(text))]))
            sources.append(base.source)
        else:
            rows.append(Row(key, base.source, base.ordinal, text, dump_metadata(metadata), text_hash(text)))
    # the next ingest makes again what represents them
    records = index.source_records() if represented else {}
    again = [replace(records[source], settings="") for source in sorted(records.keys() & sources)]
    parents, children = family_rows(families, sources=sources)
    index.write(
        Batch(
            rows=[*rows, *children],
            parents=parents,
            removed_ids=removed,
            records=again,
            corrections=corrections,
            uncorrected=restored,
        )
    )
    changed = len(corrections) - len(removed)
    return Corrected(
        changed, len(removed), len(restored), len(lines) - changed - len(removed) - len(restored)
    )


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
            made.append(Document(text, id=key, metadata=_corrected_metadata(chunk.metadata)))
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


def _corrected_metadata(metadata: dict[str, Any]) -> dict[str, Any]:
    """The metadata of a chunk whose text is not what stands in the file."""
    kept = {key: value for key, value in metadata.items() if key not in ("start", "end")}
    return {**kept, CORRECTED: True}


def _lines(path: Path) -> Iterator[tuple[int, str, str | None]]:
    """Number, id and text of each line that is not blank.

    Raises:
        InvalidInputError: The file cannot be read, or a line is not what it must be.
    """
    try:
        with path.open("rb") as file:
            for number, data in enumerate(file, 1):
                if data.strip():
                    line = _Line.model_validate_json(data.removeprefix(b"\xef\xbb\xbf"))
                    yield number, line.id, line.text
    except ValidationError as error:
        [wrong, *_] = error.errors(include_url=False)
        where = "".join(f'"{name}": ' for name in wrong["loc"])
        raise InvalidInputError(
            f'{path}, line {number}: {where}{wrong["msg"]}. A line has an "id", and a "text" that is not empty, or '
            "null to take the chunk out. Nothing was changed."
        ) from error
    except OSError as error:
        raise InvalidInputError(f"{path} cannot be read ({error.strerror or error}).") from error
