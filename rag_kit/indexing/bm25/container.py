"""The file around an index: a header in JSON, raw sections and a checksum, written atomically.

Layout, little-endian: 8 bytes that name the kind of index, format version (uint32), length of the header (uint32),
length of the body (uint64), the header (JSON), the body (sections at the offsets that the header names), and
32 bytes BLAKE2b over all before. Nothing in it is executed when it is read. The checksum finds damage, not
forgery, so what reads a section checks what it says.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from rag_kit.documents.atomic_file import replace_file
from rag_kit.errors import IndexFormatError, IndexMissingError, InvalidInputError

T = TypeVar("T")
_FIXED = struct.Struct("<8sIIQ")
_DIGEST = 32


@dataclass(frozen=True)
class Kind:
    """A kind of index file.

    Attributes:
        magic: Its first 8 bytes.
        version: The format version that is written and read.
        name: What it is called in messages, e.g. ``"BM25 index"``.
    """

    magic: bytes
    version: int
    name: str


class Sections:
    """What a file holds: the header, and the sections that it names."""

    def __init__(self, header: Mapping[str, Any], body: memoryview) -> None:
        self.header = header
        self._body = body

    def raw(self, name: str) -> memoryview:
        """The bytes of a section.

        Raises:
            ValueError: It is not there, or reaches beyond the file.
        """
        place = self.header["sections"][name]
        if not (isinstance(place, list) and len(place) == 2 and all(type(part) is int for part in place)):
            raise ValueError(f"the place of {name} is {place!r}")
        offset, size = place
        if not (0 <= offset <= offset + size <= len(self._body)):
            raise ValueError(f"{name} lies outside of the file")
        return self._body[offset : offset + size]

    def json(self, name: str) -> Any:
        """A section of JSON."""
        return json.loads(bytes(self.raw(name)))

    def lines(self, name: str) -> list[Any]:
        """A section with one JSON value a line."""
        data = bytes(self.raw(name))
        return [json.loads(line) for line in data.split(b"\n")] if data else []


def check_path(path: Any) -> Path:
    """The path of an index file.

    Raises:
        InvalidInputError: It is no path, or that of a folder.

    Example:
        >>> check_path("index.bm25").name
        'index.bm25'
    """
    if not isinstance(path, (str, os.PathLike)) or not isinstance(os.fspath(path), str) or not str(path):
        raise InvalidInputError(
            f"path is {path!r} ({type(path).__name__}); give the path of a file as str or Path."
        )
    if (found := Path(path)).is_dir():
        raise InvalidInputError(
            f"{found} is a folder; an index is one file, so give a file's path in it: {found / 'index'}"
        )
    return found


def save(path: Path, kind: Kind, header: Mapping[str, Any], sections: Mapping[str, bytes]) -> None:
    """Write a file.

    Raises:
        InvalidInputError: Its folder is not there, or it is a pipe or a device.
        OSError: It cannot be written.
    """
    if not path.parent.is_dir():
        raise InvalidInputError(f"The folder {path.parent} is not there; create it, or give another path.")
    if path.exists() and not path.is_file():
        raise InvalidInputError(
            f"{str(path)!r} is no ordinary file; an index cannot be saved there. Name another place."
        )
    places, offset = {}, 0
    for name, data in sections.items():
        places[name] = [offset, len(data)]
        offset += len(data)
    head = dumps({**header, "sections": places})
    blocks = [_FIXED.pack(kind.magic, kind.version, len(head), offset), head, *sections.values()]
    digest = hashlib.blake2b(digest_size=_DIGEST)
    for block in blocks:
        digest.update(block)
    replace_file(path, lambda file: file.writelines([*blocks, digest.digest()]))


def load(path: Path, kind: Kind, parse: Callable[[Sections], T]) -> T:
    """Read a file, check all of it, and have its sections parsed.

    Raises:
        IndexMissingError: There is no such file.
        IndexFormatError: It is damaged, of another version or contradictory; the message names it.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise IndexMissingError(
            f"There is no {kind.name} at {path}. Build one and save() it there."
        ) from None
    if len(data) < _FIXED.size or not data.startswith(kind.magic):
        raise IndexFormatError(f"{path} is not a {kind.name} of rag_kit (or its beginning is damaged).")
    _, version, header_size, body_size = _FIXED.unpack_from(data)
    if version != kind.version:
        raise IndexFormatError(
            f"{path} has format version {version}; this rag_kit reads version {kind.version}. "
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
    start = _FIXED.size + header_size
    try:
        header = json.loads(bytes(view[_FIXED.size : start]))
        return parse(Sections(header, view[start : start + body_size]))
    except (KeyError, TypeError, ValueError, IndexError, OverflowError, RecursionError) as error:
        why = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise IndexFormatError(f"{path} holds contradictory data ({why}). Build the index again.") from error


def dumps(value: Any) -> bytes:
    """A value as compact JSON; numpy's scalars become plain."""
    return json.dumps(value, separators=(",", ":"), default=_plain).encode("ascii")


def dump_rows(rows: Sequence[tuple[Any, ...]]) -> bytes:
    """One JSON array a line.

    Raises:
        InvalidInputError: A row is not JSON; the message names its first value, the id.
    """
    return b"\n".join(_dump_row(row) for row in rows)


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
