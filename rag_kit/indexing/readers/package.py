"""Zipped documents (docx, pptx, xlsx, epub): unpacked under a cap, hostile XML refused."""

from __future__ import annotations

import io
import posixpath
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from rag_kit.concurrency.notes import write_note
from rag_kit.indexing.readers.limits import ReadLimits
from rag_kit.indexing.readers.parts import LEFT_OUT, OverCap, Unreadable, leave_out

T = TypeVar("T")
# namespaces of the XML in Office files
A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
MC = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
# the same namespaces in files that are saved as "Strict Open XML", which libraries do not know; not in a text
_STRICT = re.compile(rb"(?<=[\"'])http://purl\.oclc\.org/ooxml/(\w+)/")
_USUAL = rb"http://schemas.openxmlformats.org/\1/2006/"
_PROGRAM_TITLES = ("powerpoint presentation", "presentation", "document", "word document")


class Package:
    """The entries of a zipped document, read under the caps of `ReadLimits`, and never written to a disk."""

    def __init__(self, data: bytes, limits: ReadLimits) -> None:
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(data))
        except zipfile.BadZipFile as error:
            raise Unreadable(f"its zip container is damaged ({error})") from error
        entries = self._zip.infolist()  # `zipfile` never unpacks more of an entry than its declared size
        if (size := sum(entry.file_size for entry in entries)) > limits.max_unpacked:
            raise OverCap(f"it unpacks to {size} bytes", "max_unpacked", limits.max_unpacked)
        if any(entry.flag_bits & 1 for entry in entries):
            raise Unreadable("it is encrypted with a password", "Save it without the password")
        self.names = [entry.filename for entry in entries if not entry.is_dir()]

    def read(self, name: str) -> bytes:
        """Read one entry's bytes; raises `Unreadable` if it is missing or damaged."""
        if name not in self.names:
            raise Unreadable(f"it lacks the part {name!r}")
        try:
            data = self._zip.read(name)
            return _STRICT.sub(_USUAL, data) if _is_xml(name) else data
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
            raise Unreadable(f"its part {name!r} is damaged ({error})") from error

    def xml(self, name: str) -> Any:
        """Return the root of an XML part, as `parse_xml` gives it."""
        return parse_xml(self.read(name), name)

    def _relations(self, source: str) -> Iterator[tuple[str, str, str]]:
        """Yield id, type and target of each relationship of a part; the target is "" if it is not in the package."""
        folder, name = posixpath.split(source)
        relations = posixpath.join(folder, "_rels", f"{name}.rels")
        for node in self.xml(relations).iter("{*}Relationship") if relations in self.names else ():
            target = beside(source, node.get("Target") or "")
            is_inside = target in self.names and node.get("TargetMode") != "External"
            yield str(node.get("Id")), str(node.get("Type")), target if is_inside else ""

    def targets(self, source: str) -> dict[str, str]:
        """Map the id of each relationship of a part to the name of its target, "" if that is not in the package."""
        return {relation_id: target for relation_id, _, target in self._relations(source)}

    def related(self, kind: str, source: str = "") -> str:
        """Return the name of the first target of a part (or the package) by a kind such as ``styles``, else ""."""
        return next(self.all_related(kind, source), "")

    def all_related(self, kind: str, source: str = "") -> Iterator[str]:
        """Yield the names of all targets of a part (or the package) by a kind such as ``header``."""
        for _, relation_type, target in self._relations(source):
            if target and relation_type.endswith(f"/{kind}"):
                yield target

    def open(self, library: Callable[[io.BytesIO], T], changes: Mapping[str, bytes]) -> T:
        """Open the package with changes by a library; where that fails, leave damaged XML out, and write notes."""
        try:
            return library(self.repacked(changes))
        except (OverCap, MemoryError):
            raise
        except Exception:  # whatever the library raises over a damaged part
            mended = self._mend_parts()
            if not mended:
                raise
            return library(self.repacked({**mended, **changes}))

    def _mend_parts(self) -> dict[str, bytes]:
        """Return changes that mend damaged XML parts: for each, what can be read of it, or nothing; write notes."""
        mended: dict[str, bytes] = {}
        for name in filter(_is_xml, self.names):
            try:
                parse_xml(self.read(name), name, recover=False)
            except Unreadable as error:
                try:
                    mended[name] = xml_bytes(self.xml(name))
                except Unreadable:
                    mended[name] = b""
                    write_note(f"part {name}{LEFT_OUT}{error.__cause__}"[:300])
        return mended

    def title(self) -> str:
        """Return the title in an Office file's properties; "" if there is none, or a program made it up."""
        name, title = "docProps/core.xml", ""
        if name in self.names:
            with leave_out(name):  # a properties file that is broken is noted, and there is no title
                titles = self.xml(name).xpath("//*[local-name()='title']/text()")
                title = " ".join(str(titles[0]).split())[:300] if titles else ""
        return "" if title.lower() in _PROGRAM_TITLES else title

    def repacked(self, changes: Mapping[str, bytes]) -> io.BytesIO:
        """Zip the package again for a library: its XML with ``changes``, all else (media, programs) emptied.

        A part that is changed to nothing is left out, with relationships to it. XML that declares entities is refused.
        """
        removed = [posixpath.basename(name) for name, data in changes.items() if not data]
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as out:
            for name in self.names:
                if changes.get(name) == b"":
                    continue
                data = changes.get(name) or (self.read(name) if _is_xml(name) else b"")
                ascii_only = data.replace(b"\x00", b"") if b"\x00" in data[:64] else data  # UTF-16 as ASCII
                if b"<!DOCTYPE" in ascii_only or b"<!ENTITY" in ascii_only:  # as XXE and a billion laughs
                    reason = f"its part {name!r} declares XML entities, as no Office file does (an attack?)"
                    raise Unreadable(reason, "Do not open it; ask whoever made it")
                # no relationship may lead to a part that is left out; but openpyxl needs those of its sheets
                if removed and name.endswith(".rels") and not name.startswith("xl/_rels/"):
                    targets = "|".join(map(re.escape, removed)).encode()
                    pattern = rb'<Relationship\b(?=[^>]*Target="(?:[^"]*/)?(?:%s)")[^>]*/>' % targets
                    data = re.sub(pattern, b"", data)
                out.writestr(zipfile.ZipInfo(name), data)
        buffer.seek(0)
        return buffer


def beside(source: str, name: str) -> str:
    """Return the full name of a part that another one (the source) names: relative to itself, or from the root."""
    return posixpath.normpath(posixpath.join("/", posixpath.dirname(source), name)).lstrip("/")


def _is_xml(name: str) -> bool:
    return name.lower().endswith((".xml", ".rels"))


def xml_bytes(root: Any) -> bytes:
    """Return a tree as the file of a part."""
    from lxml import etree

    return bytes(etree.tostring(root, xml_declaration=True, encoding="UTF-8", standalone=True))


def parse_xml(data: bytes, name: str, *, recover: bool = True) -> Any:
    """Parse an XML text and load nothing else; damage is noted or, without ``recover``, raises `Unreadable`."""
    from lxml import etree

    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, recover=recover)
    try:
        root = etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        raise Unreadable(f"its part {name!r} is damaged XML ({error})") from error
    if root is None or re.match(r"\w+:", root.tag):  # a prefix without its namespace, which the damage took
        raise Unreadable(f"its part {name!r} is no XML")
    for damage in parser.error_log.filter_from_errors()[:1]:
        write_note(f"what is damaged of the part {name}{LEFT_OUT}{damage.message}, line {damage.line}"[:300])
    return root
