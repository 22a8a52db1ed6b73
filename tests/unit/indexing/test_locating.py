"""`locate`: the page of a quote in a PDF, and its rectangles."""

from __future__ import annotations

from pathlib import Path

import pytest
from langchain_core.documents import Document
from support import documents as make

from rag_kit.errors import InvalidInputError, ReadError
from rag_kit.indexing import DocumentIndex, ingest, locate, read
from rag_kit.indexing.readers.ocr import page_picture

FIRST = [(72, 700, 12, "The pump starts at 40 degrees and it"), (72, 684, 12, "stops at 65 degrees.")]
SECOND = [
    (100, 500, 12, "港口管理人员可以登船检查证件，船长"),
    (100, 480, 12, "应当予以配合。"),
    (72, 300, 12, "Dike 7.25 m"),
]


@pytest.fixture
def manual(tmp_path: Path) -> Path:
    """A PDF of two pages."""
    path = tmp_path / "docs" / "manual.pdf"
    path.parent.mkdir()
    path.write_bytes(make.pdf([FIRST, SECOND]))
    return path


@pytest.mark.parametrize(
    ("quote", "page", "left", "bottoms"),
    [
        ("The pump starts at 40 degrees", 1, 72, [700]),
        ("degrees and it stops at **65** degrees", 1, None, [700, 684]),
        ("船长应当予以配合", 2, None, [500, 480]),
        ("| Dike | 7.25 m |", 2, 72, [300]),
    ],
)
def test_a_quote_has_its_page_and_a_rectangle_a_line(manual, quote, page, left, bottoms):
    """Over ends of lines, in both languages, with the signs of markdown."""
    found = locate(quote, manual)
    assert found is not None and found.page == page
    assert [round(box[1] / 10) for box in found.rectangles] == [round(bottom / 10) for bottom in bottoms]
    assert all(box[0] < box[2] and 5 < box[3] - box[1] < 20 for box in found.rectangles)
    assert left is None or abs(found.rectangles[0][0] - left) < 3
    assert locate(quote, Document("", metadata={"source": str(manual), "page": page})) == found
    assert locate(quote, Document("", metadata={"source": str(manual), "page": 3 - page})) is None


@pytest.mark.parametrize(
    ("quote", "page", "bottom"),
    [
        ("210 EUR", 2, 660),
        ("210", 2, 660),
        ("charges 1210", 1, 700),
        ("harges 12", 1, 700),
        ("Zürich charges", 1, 700),
        ("cafe", 2, 640),
    ],
)
def test_whole_words_and_numbers_are_preferred(tmp_path, quote, page, bottom):
    """To a part of a longer one, which is found where there is nothing else; an accent may be a character."""
    lines = ["Zu\u0308rich charges 1210 EUR", "It was 1.210 EUR", "and 210,50 EUR cafe\u0301s"]
    first = [(72, 700 - 20 * n, 12, line) for n, line in enumerate(lines)]
    second = [(72, 680, 12, "It is 210.5 EUR"), (72, 660, 12, "or 210 EUR a year."), (72, 640, 12, "A café.")]
    (tmp_path / "fees.pdf").write_bytes(make.pdf([first, second]))
    found = locate(quote, tmp_path / "fees.pdf")
    assert found is not None and found.page == page
    assert [round(box[1] / 10) for box in found.rectangles] == [round(bottom / 10)]


def test_passages_of_an_index_are_found_below_the_folder_that_was_ingested(manual, tmp_path):
    """Their source is a path below it; nothing outside of it is opened."""
    ingest(manual.parent, tmp_path / "index")
    with DocumentIndex.open(tmp_path / "index") as index:
        passage = next(one for one in index.get(index.ids()) if "40 degrees" in one.page_content)
    found = locate("starts at 40 degrees", passage, root=manual.parent)
    assert found is not None and found.page == 1
    (tmp_path / "other.pdf").write_bytes(make.pdf([FIRST]))
    with pytest.raises(ReadError, match="outside of its folder"):
        locate("40 degrees", Document("", metadata={"source": "../other.pdf"}), root=manual.parent)


def test_what_cannot_be_looked_for_is_named(manual):
    """No words, no PDF, no page, no file, a broken file."""
    for quote, document, message in (
        (" - ", manual, "give words"),
        ("pump", manual.with_suffix(".md"), "no PDF"),
        ("pump", Document("pump"), "source"),
        ("pump", Document("", metadata={"source": str(manual), "page": "iv"}), "first page of a PDF is 1"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            locate(quote, document)
    with pytest.raises(ReadError, match="no such file"):
        locate("pump", manual.with_name("lost.pdf"))
    manual.write_bytes(b"%PDF-1.4 broken")
    with pytest.raises(ReadError, match="damaged"):
        locate("pump", manual)


@pytest.mark.parametrize("turn", [pytest.param(0, marks=pytest.mark.slow), 90])
def test_quotes_of_scans_are_found_by_ocr(manual, tmp_path, turn):
    """At the place where the text of the same page is; also on a page that was scanned on its side."""
    pytest.importorskip("rapidocr", reason="rapidocr, of the extra `ocr`, is not installed")
    import pypdfium2

    picture, _ = page_picture(pypdfium2.PdfDocument(manual.read_bytes())[0])
    picture.rotate(turn, expand=True).save(tmp_path / "scan.pdf", resolution=200)
    (page,) = read(tmp_path / "scan.pdf", ocr=True)
    found = locate("stops at 65 degrees", page)
    assert found is not None and found.page == 1
    (box,) = found.rectangles
    (left, bottom, right, top) = locate("stops at 65 degrees", manual).rectangles[0]
    wanted = (left, bottom, right, top) if not turn else (842 - top, left, 842 - bottom, right)
    assert all(abs(a - b) < 8 for a, b in zip(box, wanted, strict=True))
    assert locate("stops at 66 degrees", page) is None
