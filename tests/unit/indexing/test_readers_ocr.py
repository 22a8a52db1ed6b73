"""Text in pictures and on scanned pages: recognised where it is asked for, within the reader's caps."""

from __future__ import annotations

import re
import struct
import sys
import zlib
from pathlib import Path

import pytest
from support import documents as make

from rag_kit.cli.main import main
from rag_kit.errors import ConfigurationError, InvalidInputError, MissingExtraError, ReadError
from rag_kit.indexing import DocumentIndex, IngestOptions, ingest, read
from rag_kit.indexing.readers.api import Reader
from rag_kit.indexing.readers.limits import ReadLimits
from rag_kit.indexing.readers.ocr import ocr_languages

FONTS = {
    "eng": ("DejaVuSans.ttf", 0),
    "chi_sim": ("/usr/share/fonts/opentype/noto/NotoSansCJK-Regular.ttc", 2),
}
TEXTS = {
    "eng": "The keeper of the inner basin writes the name of each vessel, its length and its draught into the\n"
    "harbour book. Vessels of more than thirty metres pay 210.50 EUR a day and must announce\n"
    "themselves by radio on channel 12 at least twenty-four hours before they pass the northern light.\n"
    "Pilots are on duty from six in the morning; the crane may be used by members only.",
    "chi_sim": "船舶进港前应当提前二十四小时向港口办公室提出申请，写明船名、长度、吃水和\n"
    "预计停留的天数。办公室在收到申请后四小时内答复；没有答复的，视为同意。\n"
    "本地居民的小艇减半收费，因天气原因不能离港的船舶免收当日费用。港口管理人\n"
    "员可以登船检查证件，船长应当予以配合，并在登记簿上签字确认。",
}


@pytest.fixture(scope="module")
def scan():
    """A function that makes a scan, as wide as A4 at 300 dpi, of the text of a language."""
    pytest.importorskip("tesserocr", reason="tesserocr, of the extra `ocr`, is not installed")
    from PIL import Image, ImageDraw, ImageFont

    def page(language: str, size: int = 46) -> Image.Image:
        try:
            ocr_languages(language)
        except ConfigurationError as error:
            pytest.skip(str(error))
        name, number = FONTS[language]
        try:
            font = ImageFont.truetype(name, size, index=number)
        except OSError:
            pytest.skip(f"the font {Path(name).name} is not installed")
        image = Image.new("L", (2480, 900), 255)
        ImageDraw.Draw(image).multiline_text((200, 300), TEXTS[language], fill=0, font=font, spacing=24)
        return image

    return page


def wrong(found: str, language: str) -> float:
    """The share of characters that are wrong, white space aside."""
    from rapidfuzz.distance import Levenshtein

    known = re.sub(r"\s", "", TEXTS[language])
    return Levenshtein.distance(re.sub(r"\s", "", found), known) / len(known)


@pytest.mark.parametrize(
    ("language", "suffix"),
    [
        *(("eng", suffix) for suffix in ("pdf", "jpg", "bmp")),
        *(("chi_sim", suffix) for suffix in ("pdf", "png", "tif", "webp")),
    ],
)
def test_a_scanned_page_has_at_most_three_percent_of_characters_wrong(tmp_path, scan, language, suffix):
    """With both languages asked for, as a scanned PDF and as pictures; lines are paragraphs, also of Chinese."""
    path = tmp_path / f"scan.{suffix}"
    scan(language).save(path, **({"resolution": 300} if suffix == "pdf" else {}))
    (page,) = read(path, ocr="eng+chi_sim")
    assert wrong(page.page_content, language) <= 0.03
    assert page.metadata["ocr"] is True and page.metadata.get("page", 1) == 1
    joined = {"eng": "into the harbour book", "chi_sim": "港口管理人员可以"}[language]
    assert joined in page.page_content
    with pytest.raises(ReadError, match=r"OCR is off\. .*ocr='eng'.*rag-kit\[ocr\].*apt-get"):
        read(path)


def test_pages_that_lie_on_their_side_or_head_are_turned(tmp_path, scan):
    """Where tesseract's data for that is there."""
    for angle in (90, 180):
        scan("eng").rotate(angle, expand=True).save(tmp_path / f"{angle}.png")
    try:
        ocr_languages("osd")
    except ConfigurationError as error:
        pytest.skip(str(error))
    assert all(wrong(read(path, ocr="eng")[0].page_content, "eng") <= 0.03 for path in tmp_path.iterdir())


def test_pages_keep_their_numbers_and_the_report_says_which_were_recognised(tmp_path, scan, capsys):
    """A PDF with text keeps its own; the setting stays with the index, and another one reads the files again."""
    pages = [scan("eng"), scan("eng").copy()]
    (tmp_path / "docs").mkdir()
    pages[0].save(tmp_path / "docs" / "scan.pdf", save_all=True, append_images=pages[1:], resolution=300)
    upper = scan("eng").crop(
        (0, 0, 2480, 460)
    )  # another text than that of the PDF, which would be a duplicate
    upper.save(tmp_path / "docs" / "two.tif", save_all=True, append_images=[upper])
    (tmp_path / "docs" / "typed.pdf").write_bytes(make.pdf([[(50, 700, 12, "The crane is closed.")]]))
    pages[0].save(tmp_path / "docs" / "photo.png")
    index = tmp_path / "index"
    report = ingest(tmp_path / "docs", index, options=IngestOptions(ocr="eng"))
    assert report.failed == [] and report.added == 4
    assert "read by OCR (eng): photo.png, scan.pdf, two.tif" in report.notes
    with DocumentIndex.open(index) as opened:
        found = [
            (d.metadata["file"], d.metadata.get("page"), d.metadata.get("ocr"))
            for d in opened.get(opened.ids())
        ]
    assert sorted(found, key=str) == [
        ("photo.png", None, True),
        ("scan.pdf", 1, True),
        ("scan.pdf", 2, True),
        ("two.tif", 1, True),
        ("two.tif", 2, True),
        ("typed.pdf", 1, None),
    ]
    assert ingest(tmp_path / "docs", index).unchanged == 4
    assert (
        main(
            [
                "ingest",
                str(tmp_path / "docs"),
                "--index",
                str(index),
                "--ocr",
                "none",
                "--embedding-model",
                "none",
                "--quiet",
            ]
        )
        == 7
    )
    out = capsys.readouterr()
    assert "ocr changed from 'eng' to ''" in out.err + out.out and "not read: photo.png" in out.err


def test_what_ocr_needs_is_named(tmp_path, monkeypatch):
    """Without the package, without a language's data, and with a list of languages that is none."""
    path = tmp_path / "a.png"
    path.write_bytes(b"\x89PNG")
    for ocr in ("eng+", "../eng", "eng chi_sim", 3):
        with pytest.raises(InvalidInputError, match=r"eng\+chi_sim"):
            read(path, ocr=ocr)
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "tesserocr", None)
        with pytest.raises(MissingExtraError, match=r"rag-kit\[ocr\]"):
            ingest(tmp_path, tmp_path / "index", options=IngestOptions(ocr="eng"))
    pytest.importorskip("tesserocr", reason="tesserocr, of the extra `ocr`, is not installed")
    monkeypatch.setenv("TESSDATA_PREFIX", str(tmp_path))
    with pytest.raises(ConfigurationError, match="apt-get install tesseract-ocr-chi-sim tesseract-ocr-eng"):
        Reader(ocr="eng+chi_sim")


def png(width: int, height: int, rows: bytes = b"") -> bytes:
    """A grey PNG with any size in its header."""
    chunks = [
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)),
        (b"IDAT", zlib.compress(rows)),
    ]
    pieces = [struct.pack(">I", len(d)) + k + d + struct.pack(">I", zlib.crc32(k + d)) for k, d in chunks]
    return b"\x89PNG\r\n\x1a\n" + b"".join(pieces)


def test_hostile_pictures_are_refused(tmp_path, scan):
    """Too large, broken, no picture, blank; and the time cap ends tesseract, too."""
    scan("eng").save(tmp_path / "good.png")
    hostile = {
        "huge.png": (png(60_000, 60_000), "DecompressionBomb"),
        "short.png": (png(1000, 1000, bytes(50)), "truncated.*damaged"),
        "noise.jpg": (b"\xff\xd8\xff" + bytes(range(256)), "damaged"),
        "script.tif": (b"%!PS-Adobe-3.0 EPSF-3.0\n", "damaged"),
        "blank.png": (png(400, 400, (b"\0" + b"\xff" * 400) * 400), "no text found"),
        "page.pdf": (make.pdf([[]]).replace(b"595 842", b"9999999 9"), "also not by OCR"),
    }
    with Reader(ocr="eng") as reader:
        for name, (data, reason) in hostile.items():
            (tmp_path / name).write_bytes(data)
            with pytest.raises(ReadError, match=reason):
                reader.read(tmp_path / name)
        with pytest.raises(ReadError, match="max_seconds"):
            reader.read(tmp_path / "good.png", limits=ReadLimits(max_seconds=0.01))
        assert reader.process_id is None
        assert wrong(reader.read(tmp_path / "good.png")[0].page_content, "eng") < 0.03
