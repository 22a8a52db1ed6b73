"""The file of an index over postings: what stands in it, and what is checked when it is read.

Layout, little-endian: 8 bytes that name the kind of index, format version (uint32), length of the header (uint32),
length of the body (uint64), the header (JSON), the body (sections at the offsets that the header names), and
32 bytes BLAKE2b over all before, which finds any damage. Nothing in it is executed when it is read.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rag_kit.documents.files import replace_file
from rag_kit.errors import IndexFormatError, IndexMissingError, InvalidInputError
from rag_kit.indexing.bm25.postings import Postings
from rag_kit.indexing.bm25.view import ScoreRow
from rag_kit.text import Analyzer
from rag_kit.text.analysis import CharacterNgrams

FORMAT_VERSION = 2  # 1 lacks the parts of words of letters and digits
_PREFIX = struct.Struct("<8sIIQ")  # kind, version, length of the header, length of the body
_DIGEST_SIZE = 32
_ANALYZERS: dict[str, type[Analyzer | CharacterNgrams]] = {"words": Analyzer, "characters": CharacterNgrams}


class IndexKind(NamedTuple):
    """A kind of index file."""

    magic: bytes  # its first 8 bytes
    name: str  # in messages
    counts: str  # name of the section of the postings' counts, or of their weights


class StorageState(NamedTuple):
    """The documents of an index, their postings, and the terms in the order of their numbers."""

    rows: Sequence[ScoreRow]
    postings: Postings
    vocabulary: Sequence[str]


def save(path: str | Path, kind: IndexKind, header: Mapping[str, Any], state: StorageState) -> None:
    """Write the state of an index; raise InvalidInputError for metadata that are not JSON, or a path of no file."""
    target = Path(path)
    if target.exists() and not target.is_file():
        raise InvalidInputError(f"{str(target)!r} is no ordinary file; name another place for the index.")
    counts = state.postings.counts
    sections = {
        "documents": b"\n".join(map(_dump_row, state.rows)),
        "vocabulary": _dump(list(state.vocabulary)),
        "pointers": state.postings.pointers.astype("<i8").tobytes(),
        "postings": state.postings.documents.astype("<i4").tobytes(),
        kind.counts: counts.astype(counts.dtype.newbyteorder("<")).tobytes(),
    }
    extents, offset = {}, 0
    for name, data in sections.items():
        extents[name] = [offset, len(data)]
        offset += len(data)
    numbers = {"documents": len(state.rows), "count_bytes": counts.itemsize}
    head = _dump({**header, **numbers, "sections": extents})
    blocks = [_PREFIX.pack(kind.magic, FORMAT_VERSION, len(head), offset), head, *sections.values()]
    digest = hashlib.blake2b(digest_size=_DIGEST_SIZE)
    for block in blocks:
        digest.update(block)
    replace_file(target, lambda file: file.writelines([*blocks, digest.digest()]))


def load(path: str | Path, kind: IndexKind) -> tuple[Any, StorageState]:
    """Read a file and check that it is whole; return its header and the state."""
    try:
        data = Path(path).read_bytes()
    except FileNotFoundError:
        raise IndexMissingError(f"There is no {kind.name} at {path}. Build one and save() it.") from None
    if len(data) < _PREFIX.size or not data.startswith(kind.magic):
        raise IndexFormatError(f"{path} is not a {kind.name} of rag_kit (or its beginning is damaged).")
    _, version, header_size, body_size = _PREFIX.unpack_from(data)
    if version != FORMAT_VERSION:
        older = "an older rag_kit, which made other terms of a text"
        writer = older if version < FORMAT_VERSION else "a newer rag_kit"
        raise IndexFormatError(
            f"{path} is a {kind.name} of {writer}: it has format version {version}, and this rag_kit reads version "
            f"{FORMAT_VERSION}. Build the index again, or use the rag_kit that wrote it."
        )
    view, body_start = memoryview(data), _PREFIX.size + header_size  # slices of a memoryview are no copies
    digest = hashlib.blake2b(view[:-_DIGEST_SIZE], digest_size=_DIGEST_SIZE).digest()
    if len(data) != body_start + body_size + _DIGEST_SIZE or digest != data[-_DIGEST_SIZE:]:
        raise IndexFormatError(
            f"{path} is cut short or damaged: its checksum is wrong. Build the index again."
        )
    header = json.loads(data[_PREFIX.size : body_start])
    return header, _read_state(header, view[body_start : body_start + body_size], kind)


def _read_state(header: Any, body: memoryview, kind: IndexKind) -> StorageState:
    """Read the documents and postings of a file."""

    def section(name: str) -> bytes:
        offset, size = header["sections"][name]
        return bytes(body[offset : offset + size])

    is_counted = kind.counts == "counts"  # else the section has weights, as float32
    stored = np.frombuffer(section(kind.counts), f"<u{header['count_bytes']}" if is_counted else "<f4")
    counts: Any = stored.astype(np.uint16 if is_counted else np.float32)
    pointers = np.frombuffer(section("pointers"), "<i8").astype(np.int64)
    postings = Postings(pointers, np.frombuffer(section("postings"), "<i4").astype(np.int32), counts)
    rows = [ScoreRow(*json.loads(line)) for line in section("documents").splitlines()]
    return StorageState(rows, postings, json.loads(section("vocabulary")))


def settings_of(analyzer: Callable[[str], list[str]]) -> dict[str, Any] | None:
    """Return an analyzer's settings to store; ``None`` for a function of the user's, which cannot be stored."""
    return analyzer.settings() if type(analyzer) in _ANALYZERS.values() else None  # type: ignore[attr-defined]


def analyzer_from(path: str | Path, settings: Mapping[str, Any] | None) -> Analyzer | CharacterNgrams | None:
    """Make an analyzer from the settings in a file; ``None`` if it has none, IndexFormatError for other terms."""
    if settings is None:
        return None
    try:
        return _ANALYZERS[settings.get("kind", "words")].from_settings(settings)
    except InvalidInputError as error:
        raise IndexFormatError(f"{path}: {error}") from error


def _dump(value: Any) -> bytes:
    """Write a value as compact JSON, numpy's scalars as plain numbers."""
    return json.dumps(value, separators=(",", ":"), default=_plain).encode("ascii")


def _dump_row(row: ScoreRow) -> bytes:
    """Write a document as a line of JSON; raise InvalidInputError where its metadata are not JSON."""
    try:
        return _dump(row)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInputError(
            f"The metadata of document {row.key!r} cannot be saved: {error}. Use plain JSON values "
            "(a date as an ISO string, a set as a list)."
        ) from error


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} is not JSON")
