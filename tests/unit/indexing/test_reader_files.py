"""The files that readers are compared on hold what is said of them."""

from __future__ import annotations

import re
import zipfile
from html import unescape
from pathlib import Path

import pytest

pytest.importorskip("reportlab", reason="reportlab, of the extra `bench`, makes the PDFs")
BENCHMARKS = str(Path(__file__).resolve().parents[3] / "benchmarks" / "quality")


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The folder of the files, and what is known of them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(BENCHMARKS)
        from reader_files import write_files
    folder = tmp_path_factory.mktemp("files")
    return folder, write_files(folder), write_files(folder / "again")


def raw_text(path: Path) -> str:
    """All characters of a file but white space, taken out by other means than the kit's readers."""
    if path.suffix == ".pdf":
        import pypdfium2

        pages = pypdfium2.PdfDocument(path)
        found = "".join(page.get_textpage().get_text_range() for page in pages)
        fields = re.findall(rb"/V \((.*?)\)", path.read_bytes())  # what is filled in is no text of the page
        found += b" ".join(fields).decode("latin-1")
    elif path.suffix == ".html":
        found = re.sub(r"<[^>]*>", "", path.read_text("utf-8"))
    else:
        with zipfile.ZipFile(path) as archive:
            names = sorted(name for name in archive.namelist() if name.endswith(".xml"))
            xml = "".join(archive.read(name).decode() for name in names)
        found = re.sub(r"<[^>]*>", "", xml) + " ".join(re.findall(r'<sheet [^>]*name="([^"]*)"', xml))
    return re.sub(r"\s", "", unescape(found))


def test_ten_files_hold_the_text_that_is_known_of_them(written):
    """Each block, cell and piece of furniture stands in its file; a formula by its letters."""
    folder, known, _ = written
    assert len(known) == 10
    for one in known:
        raw = raw_text(folder / one.name)
        cells = [cell for rows in one.tables for row in rows for cell in row]
        for text in [*one.texts, *cells, *one.furniture]:
            if "=(" in text:
                continue  # brackets and ^ stand for layout
            for part in re.split(
                r"(?<=:) " if "pair" in {block.kind for block in one.blocks} else r"\0", text
            ):
                assert re.sub(r"\s", "", part).removesuffix(":") in raw, (one.name, part)


def test_two_runs_write_the_same_bytes(written):
    """Nothing in the files depends on the day."""
    folder, known, _ = written
    for one in known:
        assert (folder / one.name).read_bytes() == (folder / "again" / one.name).read_bytes(), one.name


def test_pages_for_other_programs_hold_what_is_known_of_them(monkeypatch, tmp_path):
    """Known text stands in the HTML that is printed; a program that is not installed writes nothing."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    import reader_pages
    import reader_unseen

    for page in reader_pages.pages():
        raw = unescape(page.html)
        cells = [cell for block in page.blocks for row in block.rows for cell in row]
        for part in [*cells, *(part for block in page.blocks for part in block.text.split(": "))]:
            assert part in raw, (page.name, part)
    monkeypatch.setattr(reader_unseen.shutil, "which", lambda name: None)
    monkeypatch.setattr(reader_unseen.importlib.util, "find_spec", lambda name: None)
    assert reader_unseen.missing() == ["chromium", "weasyprint", "libreoffice", "fpdf2"]
    assert reader_unseen.write_files(tmp_path) == []
