"""Zipped documents (docx, pptx, xlsx, epub): unpacked under a cap, hostile XML refused."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Iterator

from rag_kit.indexing.readers.limits import ReadLimits
from rag_kit.indexing.readers.parts import Unreadable, over_limit

_STEP = 1 << 16
_DAMAGED = "Open it in the program that made it and save it again"
# Never needed for text; the libraries get them empty, so that no image or embedded program is ever parsed.
_BLOBS = tuple(
    ".png .jpg .jpeg .gif .bmp .tif .tiff .emf .wmf .svg .wdp .webp .bin .vml .odttf .ttf .otf .fntdata .mp3 .mp4 "  # noqa: SIM905
    ".wav .avi .mov .m4a .m4v .wmv .ole .exe .zip".split()
)


class Package:
    """The entries of a zipped document, read under the caps of `ReadLimits`.

    The declared sizes are checked first; then the bytes that really come out are counted, since a central
    directory can lie. Names are only looked up, never written to a disk.
    """

    def __init__(self, data: bytes, limits: ReadLimits) -> None:
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(data))
            entries = self._zip.infolist()
        except (zipfile.BadZipFile, ValueError, EOFError, OSError, NotImplementedError) as error:
            raise Unreadable(f"its zip container is damaged ({error})", _DAMAGED) from error
        self._limits = limits
        self._unpacked = 0
        if len(entries) > limits.max_entries:
            raise over_limit(f"it holds {len(entries)} entries", "max_entries", limits.max_entries)
        declared = sum(entry.file_size for entry in entries)
        if declared > limits.max_unpacked:
            raise over_limit(f"it unpacks to {declared} bytes", "max_unpacked", limits.max_unpacked)
        if any(entry.flag_bits & 1 for entry in entries):
            raise Unreadable("it is encrypted with a password", "Save it without the password")
        self._entries = {entry.filename: entry for entry in entries if not entry.is_dir()}

    def names(self) -> list[str]:
        """Names of all entries that are files, in the order of the archive."""
        return list(self._entries)

    def __contains__(self, name: str) -> bool:
        return name in self._entries

    def read(self, name: str) -> bytes:
        """One entry's bytes.

        Raises:
            Unreadable: It is missing, damaged, or the caps are used up.
        """
        entry = self._entries.get(name)
        if entry is None:
            raise Unreadable(f"it lacks the part {name!r}", _DAMAGED)
        pieces = []
        try:
            with self._zip.open(entry) as stream:
                while piece := stream.read(_STEP):
                    self._unpacked += len(piece)
                    if self._unpacked > self._limits.max_unpacked:
                        raise over_limit(
                            f"it unpacks to over {self._unpacked} bytes",
                            "max_unpacked",
                            self._limits.max_unpacked,
                        )
                    pieces.append(piece)
        except (
            zipfile.BadZipFile,
            zlib.error,
            EOFError,
            OSError,
            NotImplementedError,
            RuntimeError,
        ) as error:
            raise Unreadable(f"its part {name!r} is damaged ({error})", _DAMAGED) from error
        return b"".join(pieces)

    def _clean(self) -> Iterator[tuple[str, bytes]]:
        for name in self._entries:
            if name.lower().endswith(_BLOBS):
                yield name, b""
                continue
            data = self.read(name)
            refuse_dtd(name, data)
            yield name, data

    def repacked(self, changes: dict[str, bytes] | None = None) -> io.BytesIO:
        """The package again, for a library to open: media emptied, every byte counted, no DTD inside.

        Args:
            changes: New contents of some entries.
        """
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as out:
            for name, data in self._clean():
                out.writestr(zipfile.ZipInfo(name), (changes or {}).get(name, data))
        buffer.seek(0)
        return buffer


def refuse_dtd(name: str, data: bytes) -> None:
    """Refuse XML that declares entities: Office files never do, attacks (XXE, billion laughs) do.

    Raises:
        Unreadable: There is a document type declaration.
    """
    if not name.lower().endswith((".xml", ".rels")):
        return
    head = data.replace(b"\x00", b"") if b"\x00" in data[:64] else data
    if b"<!DOCTYPE" in head or b"<!ENTITY" in head:
        raise Unreadable(
            f"its part {name!r} declares XML entities, which Office files never do (an attack?)",
            "Do not open it; ask whoever made it",
        )
