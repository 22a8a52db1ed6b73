"""The file of an index over postings: what stands in it, and what is checked when it is read.

Layout, little-endian: 8 bytes that name the kind of index, format version (uint32), length of the header (uint32),
length of the body (uint64), the header (JSON), the body (sections at the offsets that the header names), and
32 bytes BLAKE2b over all before, which finds any damage. Nothing in it is executed when it is read.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from rag_kit.documents.atomic_file import replace_file
from rag_kit.errors import IndexFormatError, IndexMissingError, InvalidInputError
from rag_kit.indexing.bm25.postings import Postings
from rag_kit.indexing.bm25.view import Columns, View
from rag_kit.text import Analyzer
from rag_kit.text.ngrams import CharacterNgrams

FORMAT_VERSION = 1
T = TypeVar("T")
_FIXED = struct.Struct("<8sIIQ")
_DIGEST = 32
_ANALYZERS: dict[str, type[Analyzer] | type[CharacterNgrams]] = {
    "words": Analyzer,
    "characters": CharacterNgrams,
}


@dataclass(frozen=True)
class Kind:
    """A kind of index file.

    Attributes:
        magic: Its first 8 bytes.
        name: What it is called in messages, e.g. ``"BM25 index"``.
        counts: Name of the section of the postings' counts, or of their weights.
    """

    magic: bytes
    name: str
    counts: str


@dataclass(frozen=True)
class Stored:
    """What a file holds."""

    header: Mapping[str, Any]
    columns: Columns
    postings: Postings
    vocabulary: list[str]


class Sections:
    """The header of a file, and the sections that it names."""

    def __init__(self, header: Mapping[str, Any], body: memoryview) -> None:
        self.header = header
        self._body = body

    def bytes(self, name: str) -> bytes:
        """A section."""
        offset, size = self.header["sections"][name]
        return bytes(self._body[offset : offset + size])

    def json(self, name: str) -> Any:
        """A section of JSON."""
        return json.loads(self.bytes(name))


def save(
    path: str | Path,
    kind: Kind,
    header: Mapping[str, Any],
    state: tuple[View, Sequence[str]],
    sections: Mapping[str, bytes] | None = None,
) -> None:
    """Write documents, postings, the terms in the order of their numbers, and further sections.

    Raises:
        InvalidInputError: Metadata are not JSON, its folder is not there, or it is no ordinary file.
        OSError: It cannot be written.
    """
    place = _checked_path(path)
    if not place.parent.is_dir():
        raise InvalidInputError(f"The folder {place.parent} is not there; create it, or give another path.")
    if place.exists() and not place.is_file():
        raise InvalidInputError(f"{str(place)!r} is no ordinary file; name another place for the index.")
    view, vocabulary = state
    columns, _ = view.columns.taken(np.arange(len(view)))
    rows = zip(
        columns.ids, columns.document_ids, columns.texts, columns.metadata, columns.lengths, strict=True
    )
    counts = view.postings.counts
    header, type_of = {**header, "documents": len(view)}, "<f4"
    if kind.counts == "counts":
        header["count_bytes"], type_of = counts.itemsize, f"<u{counts.itemsize}"
    blocks = {
        "documents": b"\n".join(map(_dump_row, rows)),
        "vocabulary": dumps(list(vocabulary)),
        **(sections or {}),
        "pointers": view.postings.pointers.astype("<i8").tobytes(),
        "postings": view.postings.documents.astype("<i4").tobytes(),
        kind.counts: counts.astype(type_of).tobytes(),
    }
    _write(place, kind, header, blocks)


def _write(path: Path, kind: Kind, header: Mapping[str, Any], sections: Mapping[str, bytes]) -> None:
    places, offset = {}, 0
    for name, data in sections.items():
        places[name] = [offset, len(data)]
        offset += len(data)
    head = dumps({**header, "sections": places})
    blocks = [_FIXED.pack(kind.magic, FORMAT_VERSION, len(head), offset), head, *sections.values()]
    digest = hashlib.blake2b(digest_size=_DIGEST)
    for block in blocks:
        digest.update(block)
    replace_file(path, lambda file: file.writelines([*blocks, digest.digest()]))


def load(path: str | Path, kind: Kind, parse: Callable[[Sections], T]) -> tuple[T, Stored]:
    """Read a file and check all of it.

    Raises:
        IndexMissingError: There is no such file.
        IndexFormatError: It is damaged, of another version or contradictory; the message names it.
    """
    place = _checked_path(path)
    try:
        data = place.read_bytes()
    except FileNotFoundError:
        raise IndexMissingError(
            f"There is no {kind.name} at {path}. Build one and save() it there."
        ) from None
    if len(data) < _FIXED.size or not data.startswith(kind.magic):
        raise IndexFormatError(f"{path} is not a {kind.name} of rag_kit (or its beginning is damaged).")
    _, version, header_size, body_size = _FIXED.unpack_from(data)
    if version != FORMAT_VERSION:
        raise IndexFormatError(
            f"{path} has format version {version}; this rag_kit reads version {FORMAT_VERSION}. "
            "Use the rag_kit that wrote it, or build the index again."
        )
    view, start = memoryview(data), _FIXED.size + header_size
    if (
        len(data) != start + body_size + _DIGEST
        or hashlib.blake2b(view[:-_DIGEST], digest_size=_DIGEST).digest() != data[-_DIGEST:]
    ):
        raise IndexFormatError(
            f"{path} is cut short or damaged: its checksum does not fit. Build the index again."
        )
    try:
        file = Sections(json.loads(data[_FIXED.size : start]), view[start : start + body_size])
        return parse(file), _stored(file, kind)
    except (KeyError, TypeError, ValueError, IndexError, OverflowError, RecursionError) as error:
        why = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise IndexFormatError(f"{path} holds contradictory data ({why}). Build the index again.") from error


def _stored(file: Sections, kind: Kind) -> Stored:
    """The documents and postings of a file."""
    whole = kind.counts == "counts"
    type_of = f"<u{file.header['count_bytes']}" if whole else "<f4"
    counts: NDArray[Any] = np.frombuffer(file.bytes(kind.counts), type_of)
    postings = Postings(
        np.frombuffer(file.bytes("pointers"), "<i8").astype(np.int64),
        np.frombuffer(file.bytes("postings"), "<i4").astype(np.int32),
        counts.astype(np.uint16) if whole else counts.astype(np.float32),
    )
    # one [id, document id, text, metadata, length] a line
    rows = map(json.loads, file.bytes("documents").splitlines())
    ids, document_ids, texts, metadata, lengths = map(list, list(zip(*rows, strict=True)) or [()] * 5)
    columns = Columns(ids, document_ids, texts, metadata, array("q", lengths))
    return Stored(file.header, columns, postings, file.json("vocabulary"))


def settings_of(analyzer: Callable[[str], list[str]]) -> dict[str, Any] | None:
    """What is stored of an analyzer; ``None`` for a function of the user's, which cannot be."""
    if isinstance(analyzer, (Analyzer, CharacterNgrams)) and type(analyzer) in _ANALYZERS.values():
        return analyzer.settings()
    return None


def analyzer_from(settings: Any) -> Analyzer | CharacterNgrams:
    """The analyzer that settings describe."""
    if not isinstance(settings, dict) or settings.get("kind", "words") not in _ANALYZERS:
        raise InvalidInputError(f"{settings!r} are not the settings of an analyzer of this rag_kit.")
    return _ANALYZERS[settings.get("kind", "words")].from_settings(settings)


def _checked_path(path: Any) -> Path:
    """The path of an index file."""
    if not isinstance(path, (str, os.PathLike)) or not str(path):
        raise InvalidInputError(f"path is {path!r} ({type(path).__name__}); give the path of a file.")
    if (found := Path(path)).is_dir():
        raise InvalidInputError(
            f"{found} is a folder; an index is one file, so give a file's path in it: {found / 'index'}"
        )
    return found


def dumps(value: Any) -> bytes:
    """A value as compact JSON; numpy's scalars become plain."""
    return json.dumps(value, separators=(",", ":"), default=_plain).encode("ascii")


def _dump_row(row: tuple[Any, ...]) -> bytes:
    try:
        return dumps(row)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInputError(
            f"The metadata of document {row[0]!r} cannot be saved: {error}. Use plain JSON values "
            "(a date as an ISO string, a set as a list)."
        ) from error


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} is not JSON")
