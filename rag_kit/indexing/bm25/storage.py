"""The file of a BM25 index: one versioned container of JSON and raw arrays, with a checksum.

Layout, little-endian: 8 bytes ``RAGKBM25``, format version (uint32), length of the header (uint32), length of the
body (uint64), the header (JSON), the body (sections at the offsets that the header names), and 32 bytes BLAKE2b
over all before. Nothing in it is executed when it is read.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import struct
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rag_kit.errors import IndexFormatError, IndexMissingError, InvalidInputError
from rag_kit.indexing.bm25.postings import Postings
from rag_kit.indexing.bm25.view import Columns
from rag_kit.text import Analyzer

FORMAT_VERSION = 1
_MAGIC = b"RAGKBM25"
_FIXED = struct.Struct("<8sIIQ")
_DIGEST = 32
_STALE = 3600.0  # seconds after which a left-over temporary file is taken for a crash's


@dataclass(frozen=True)
class Stored:
    """What a file holds."""

    settings: dict[str, Any]
    analyzer: dict[str, Any] | None
    columns: Columns
    postings: Postings
    vocabulary: list[str]


def save(
    path: Path,
    settings: Mapping[str, Any],
    analyzer: Mapping[str, Any] | None,
    columns: Columns,
    postings: Postings,
    vocabulary: Sequence[str],
) -> None:
    """Write the file: to a temporary name beside it, flushed to disk, then renamed over the old one."""
    rows = zip(
        columns.ids, columns.document_ids, columns.texts, columns.metadata, columns.lengths, strict=True
    )
    sections: dict[str, bytes] = {
        "documents": b"\n".join(_json_row(row) for row in rows),
        "vocabulary": _dumps(list(vocabulary)),
        "pointers": postings.pointers.astype("<i8").tobytes(),
        "postings": postings.documents.astype("<i4").tobytes(),
        "counts": postings.counts.astype(f"<u{postings.counts.itemsize}").tobytes(),
    }
    places, offset = {}, 0
    for name, data in sections.items():
        places[name] = [offset, len(data)]
        offset += len(data)
    header = _dumps(
        {
            "settings": dict(settings),
            "analyzer": analyzer,
            "documents": len(columns.ids),
            "count_bytes": postings.counts.itemsize,
            "sections": places,
        }
    )
    blocks = [_FIXED.pack(_MAGIC, FORMAT_VERSION, len(header), offset), header, *sections.values()]
    digest = hashlib.blake2b(digest_size=_DIGEST)
    for block in blocks:
        digest.update(block)
    write_atomically(path, [*blocks, digest.digest()])


def write_atomically(path: Path, blocks: Sequence[bytes]) -> None:
    """Write a file so that a crash at any moment leaves the old one or the new one."""
    _remove_stale(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
    try:
        with temporary.open("xb") as file:
            for block in blocks:
                file.write(block)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            temporary.unlink()
        raise
    if os.name == "posix":
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def load(path: Path) -> Stored:
    """Read a file and check all of it."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise IndexMissingError(f"There is no BM25 index at {path}. Build one and save() it there.") from None
    if len(data) < _FIXED.size or not data.startswith(_MAGIC):
        raise IndexFormatError(f"{path} is not a BM25 index of rag_kit (or its beginning is damaged).")
    _, version, header_size, body_size = _FIXED.unpack_from(data)
    if version != FORMAT_VERSION:
        raise IndexFormatError(
            f"{path} has format version {version}; this rag_kit reads version {FORMAT_VERSION}. "
            "Use the rag_kit that wrote it, or build the index again."
        )
    expected = _FIXED.size + header_size + body_size + _DIGEST
    if len(data) != expected:
        raise IndexFormatError(
            f"{path} is cut short or damaged: {len(data)} bytes, {expected} expected. Build the index again."
        )
    view = memoryview(data)
    if hashlib.blake2b(view[:-_DIGEST], digest_size=_DIGEST).digest() != data[-_DIGEST:]:
        raise IndexFormatError(f"{path} is damaged: its checksum does not fit. Build the index again.")
    try:
        return _parsed(view[_FIXED.size :], header_size)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise IndexFormatError(
            f"{path} holds contradictory data ({error}). Build the index again."
        ) from error


def _parsed(view: memoryview, header_size: int) -> Stored:
    header = json.loads(bytes(view[:header_size]))
    body = view[header_size:]

    def section(name: str) -> memoryview:
        offset, size = header["sections"][name]
        return body[offset : offset + size]

    lines = bytes(section("documents")).split(b"\n") if header["documents"] else []
    columns = (
        Columns(*(list(column) for column in zip(*map(json.loads, lines), strict=True)))
        if lines
        else Columns()
    )
    pointers = np.frombuffer(section("pointers"), "<i8").astype(np.int64)
    documents = np.frombuffer(section("postings"), "<i4").astype(np.int32)
    types = {1: np.uint8, 2: np.uint16, 4: np.uint32}
    counts = np.frombuffer(section("counts"), f"<u{header['count_bytes']}").astype(
        types[header["count_bytes"]]
    )
    vocabulary = json.loads(bytes(section("vocabulary")))
    if len(columns.ids) != header["documents"] or len(vocabulary) != len(pointers) - 1:
        raise ValueError("counts differ")
    if pointers[-1] != len(documents) or len(documents) != len(counts):
        raise ValueError("array lengths differ")
    return Stored(
        header["settings"], header["analyzer"], columns, Postings(pointers, documents, counts), vocabulary
    )


def pick_analyzer(
    path: Path, settings: Mapping[str, Any] | None, given: Callable[[str], list[str]] | None
) -> Callable[[str], list[str]]:
    """The analyzer for a loaded index: the stored one, or the caller's where none could be stored."""
    if settings is None:
        if given is None:
            raise InvalidInputError(
                f"{path} was built with an analyzer function of its own; give it again: load(path, analyzer=...)."
            )
        return given
    stored = Analyzer.from_settings(settings)
    if given is not None and given != stored:
        raise InvalidInputError(
            f"{path} was built with {stored!r}, not with {given!r}. Leave analyzer out, or build the index again."
        )
    return stored


def _dumps(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), default=_plain).encode("ascii")


def _json_row(row: tuple[Any, ...]) -> bytes:
    try:
        return _dumps(row)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"The metadata of document {row[0]!r} cannot be saved: {error}. Use plain JSON values "
            "(a date as an ISO string, a set as a list)."
        ) from error


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} is not JSON")


def _remove_stale(path: Path) -> None:
    for left in path.parent.glob(f".{path.name}.*.tmp"):
        with contextlib.suppress(OSError):
            if time.time() - left.stat().st_mtime > _STALE:
                left.unlink()
