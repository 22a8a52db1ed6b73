"""Ten files with known text, for comparing readers: `write_files` makes them, the same bytes each time, and returns
what is known of each.

Usage: python benchmarks/quality/reader_files.py FOLDER   (needs reportlab, of the extra `bench`)
"""

from __future__ import annotations

import io
import re
import sys
import zipfile
from pathlib import Path

import reader_office
import reader_pdfs
from reader_known import KnownFile

_SAVED = re.compile(rb"(<dcterms:(?:created|modified)[^>]*>)[^<]*")


def write_files(folder: str | Path) -> list[KnownFile]:
    """Write the ten files into a folder, which is made, and return what is known of each."""
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    known = []
    for make in (*reader_pdfs.MAKERS, *reader_office.MAKERS):
        data, one = make()
        (target / one.name).write_bytes(without_dates(data))
        known.append(one)
    return known


def without_dates(data: bytes) -> bytes:
    """An Office file whose entries have one date and order, as two runs on two days would differ otherwise."""
    if not data.startswith(b"PK"):
        return data
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
        for entry in sorted(old.namelist(), key=lambda name: (name != "[Content_Types].xml", name)):
            data = _SAVED.sub(rb"\g<1>2026-01-01T00:00:00Z", old.read(entry))
            new.writestr(zipfile.ZipInfo(entry, (2026, 1, 1, 0, 0, 0)), data)
    return out.getvalue()


if __name__ == "__main__":
    for written in write_files(sys.argv[1]):
        counts = (
            f"{len(written.blocks)} blocks, {len(written.headings)} headings, {len(written.tables)} tables"
        )
        print(f"{written.name}: {counts}")
