"""Zipped documents (docx, pptx, xlsx, epub): unpacked under a cap, hostile XML refused."""

from __future__ import annotations

import io
import zipfile
from typing import Any

from rag_kit.indexing.readers.limits import ReadLimits
from rag_kit.indexing.readers.parts import Unreadable, over_limit

_PROGRAM_TITLES = ("powerpoint presentation", "presentation", "document", "word document")


class Package:
    """The entries of a zipped document, read under the caps of `ReadLimits`.

    The declared sizes are checked; `zipfile` gives out no more of an entry. Its name is never written to a disk.
    """

    def __init__(self, data: bytes, limits: ReadLimits) -> None:
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(data))
        except zipfile.BadZipFile as error:
            raise Unreadable(f"its zip container is damaged ({error})") from error
        entries = self._zip.infolist()
        if (size := sum(entry.file_size for entry in entries)) > limits.max_unpacked:
            raise over_limit(f"it unpacks to {size} bytes", "max_unpacked", limits.max_unpacked)
        if any(entry.flag_bits & 1 for entry in entries):
            raise Unreadable("it is encrypted with a password", "Save it without the password")
        self.names = [entry.filename for entry in entries if not entry.is_dir()]

    def __contains__(self, name: str) -> bool:
        return name in self.names

    def read(self, name: str) -> bytes:
        """One entry's bytes; raises `Unreadable` where it is missing."""
        if name not in self.names:
            raise Unreadable(f"it lacks the part {name!r}")
        return self._zip.read(name)

    def xml(self, name: str) -> Any:
        """The root of an XML part, as `parse_xml` gives it."""
        return parse_xml(self.read(name), name)

    def title(self) -> str:
        """The title in an Office file's properties; empty where there is none, or a program put it there by itself."""
        name = "docProps/core.xml"
        titles = self.xml(name).xpath("//*[local-name()='title']/text()") if name in self else []
        title = " ".join(str(titles[0]).split())[:300] if titles else ""
        return "" if title.lower() in _PROGRAM_TITLES else title

    def repacked(self, changes: dict[str, bytes] | None = None) -> io.BytesIO:
        """The package again, for a library to open: its XML with ``changes``, all else (media, programs) emptied.

        Raises `Unreadable` for a document type declaration: Office files have none, attacks (XXE, billion laughs) do.
        """
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as out:
            for name in self.names:
                data = self.read(name) if name.lower().endswith((".xml", ".rels")) else b""
                head = data.replace(b"\x00", b"") if b"\x00" in data[:64] else data  # UTF-16
                if b"<!DOCTYPE" in head or b"<!ENTITY" in head:
                    raise Unreadable(
                        f"its part {name!r} declares XML entities, which Office files never do (an attack?)",
                        "Do not open it; ask whoever made it",
                    )
                out.writestr(zipfile.ZipInfo(name), (changes or {}).get(name, data))
        buffer.seek(0)
        return buffer


def parse_xml(data: bytes, name: str, *, recover: bool = True) -> Any:
    """The root of an XML text; nothing that it points to is loaded.

    Raises `Unreadable` where it is no XML, or without ``recover`` a damaged one.
    """
    from lxml import etree

    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, recover=recover)
    try:
        root = etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        raise Unreadable(f"its part {name!r} is damaged XML ({error})") from error
    if root is None:
        raise Unreadable(f"its part {name!r} is no XML")
    return root
