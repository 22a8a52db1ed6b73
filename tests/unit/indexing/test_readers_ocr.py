"""Text in pictures and on scanned pages: recognised where it is asked for, within the reader's caps."""

from __future__ import annotations

import re
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import pytest
from support import documents as make

from rag_kit.cli.main import main
from rag_kit.errors import InvalidInputError, MissingExtraError, ReadError
from rag_kit.indexing import DocumentIndex, IngestOptions, ingest, locate, read
from rag_kit.indexing.readers import ocr
from rag_kit.indexing.readers.api import Reader
from rag_kit.indexing.readers.limits import ReadLimits
from rag_kit.indexing.readers.ocr import to_rgb

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
def font():
    """A function that gives the font of a language in a size."""
    pytest.importorskip("rapidocr", reason="rapidocr, of the extra `ocr`, is not installed")
    from PIL import ImageFont

    def of(language: str, size: int) -> ImageFont.FreeTypeFont:
        name, number = FONTS[language]
        try:
            return ImageFont.truetype(name, size, index=number)
        except OSError:
            pytest.skip(f"the font {Path(name).name} is not installed")

    return of


@pytest.fixture(scope="module")
def scan(font):
    """A function that makes a scan, as wide as A4 at 200 dpi, of the text of a language."""
    from PIL import Image, ImageDraw

    def page(language: str, size: int = 31) -> Image.Image:
        image = Image.new("L", (1654, 560), 255)
        draw = ImageDraw.Draw(image)
        draw.multiline_text((130, 150), TEXTS[language], fill=0, font=font(language, size), spacing=16)
        return image

    return page


@pytest.fixture(scope="module")
def line(scan):
    """A function that makes a scan of one line of the English text: it is read in a fifth of the time."""
    return lambda number: scan("eng").crop((0, 140 + 47 * number, 1654, 200 + 47 * number))


def wrong(found: str, language: str) -> float:
    """The share of characters that are wrong, white space aside."""
    from rapidfuzz.distance import Levenshtein

    known = re.sub(r"\s", "", TEXTS[language])
    return Levenshtein.distance(re.sub(r"\s", "", found), known) / len(known)


@pytest.mark.parametrize(
    ("language", "suffix"),
    [
        ("eng", "pdf"),
        ("chi_sim", "png"),
        *(
            pytest.param("chi_sim", suffix, marks=pytest.mark.slow)
            for suffix in ("pdf", "jpg", "tif", "webp")
        ),
        pytest.param("eng", "bmp", marks=pytest.mark.slow),
    ],
)
def test_a_scanned_page_has_at_most_one_percent_of_characters_wrong(tmp_path, scan, language, suffix):
    """As a scanned PDF and as pictures, a little aslant; lines are paragraphs, also of Chinese."""
    path = tmp_path / f"scan.{suffix}"
    aslant = scan(language).rotate(0.8, fillcolor=255, resample=3)
    aslant.save(path, **({"resolution": 200} if suffix == "pdf" else {}))
    (page,) = read(path, ocr=True)
    assert wrong(page.page_content, language) <= 0.01
    assert page.metadata["ocr"] is True and page.metadata.get("page", 1) == 1
    joined = {"eng": "into the harbour book", "chi_sim": "港口管理人员可以"}[language]
    assert joined in page.page_content and "#" not in page.page_content
    with pytest.raises(ReadError, match=r"OCR is off\. .*ocr=True.*rag-kit\[ocr\]"):
        read(path)


@pytest.mark.parametrize(
    ("language", "angle"),
    [
        ("eng", 90),
        ("chi_sim", 180),
        *(
            pytest.param(*pair, marks=pytest.mark.slow)
            for pair in (("eng", 180), ("eng", 270), ("chi_sim", 90), ("chi_sim", 270))
        ),
    ],
)
def test_pages_that_lie_on_their_side_or_head_are_turned(tmp_path, scan, language, angle):
    """Whichever way they lie."""
    scan(language).rotate(angle, expand=True).save(tmp_path / "page.png")
    assert wrong(read(tmp_path / "page.png", ocr="eng+chi_sim")[0].page_content, language) <= 0.01


@pytest.mark.parametrize("mode", ["I;16", "I;16B", "I", "F"])
def test_pictures_of_16_bits_are_made_lighter_or_darker(mode):
    """To what 8 bits hold, in both orders of bytes."""
    image = pytest.importorskip("PIL.Image").new(mode, (3, 1), 1_000)
    image.putpixel((0, 0), 0)
    image.putpixel((1, 0), 4_000)
    assert [to_rgb(image).getpixel((x, 0)) for x in range(3)] == [(n, n, n) for n in (0, 255, 63)]


@pytest.mark.parametrize(
    ("transparent", "expected"), [(4_000, (0, 255, 63)), (0, (255, 255, 63)), (9_000, (0, 255, 63))]
)
def test_a_transparent_value_of_16_bits_becomes_white(transparent, expected):
    """The others keep what 8 bits hold of them."""
    image = pytest.importorskip("PIL.Image").new("I;16", (3, 1), 1_000)
    image.putpixel((0, 0), 0)
    image.putpixel((1, 0), 4_000)
    image.info["transparency"] = transparent
    assert [to_rgb(image).getpixel((x, 0)) for x in range(3)] == [(n, n, n) for n in expected]


@pytest.mark.parametrize("wide", [False, True])
def test_a_strip_keeps_its_size_and_is_cut_between_lines(wide):
    """A page is made smaller to the side that is worked on, a strip only so far that its short side fits."""
    pytest.importorskip("cv2", reason="opencv comes with the extra `ocr`")
    np = pytest.importorskip("numpy")
    assert ocr._scale_down(3_000, 4_000) == 0.6 and ocr._scale_down(900, 6_000) == 1.0
    strip = np.full((4_000, 300, 3), 255, np.uint8)
    strip[:, ::7] = 0
    strip[100::100] = 255  # a blank row between lines of type
    cuts = ocr._cuts(strip.swapaxes(0, 1) if wide else strip, wide=wide)
    assert cuts[0] == 0 and cuts[-1] == 4_000 and len(cuts) == 4
    assert all(cut % 100 == 0 for cut in cuts)


@pytest.mark.parametrize("turn", [0, 90])
def test_long_narrow_pictures_are_read(tmp_path, font, turn):
    """A line across or upwards, in a picture that is not much higher than it."""
    from PIL import Image, ImageDraw

    image = Image.new("RGB", (2400, 48), "white")
    ImageDraw.Draw(image).text((5, 2), "The fee is 210 EUR a year", fill="black", font=font("eng", 36))
    image.rotate(turn, expand=True).save(tmp_path / "line.png")
    assert read(tmp_path / "line.png", ocr=True)[0].page_content == "The fee is 210 EUR a year"


def table(font, language: str, *, ruled: bool):
    """A picture of a table, and its rows."""
    from PIL import Image, ImageDraw

    rows = {
        "eng": [["Station", "City", "Height"], ["Old mill", "Emden", "12.0 m"], ["Dike", "Husum", "7.25 m"]],
        "chi_sim": [["站点", "城市", "高度"], ["老磨坊", "绍兴", "12.0米"], ["北堤", "嘉兴", "7.25米"]],
    }[language]
    image = Image.new("L", (1200, 500), 255)
    draw = ImageDraw.Draw(image)
    for n, row in enumerate(rows):
        for m, cell in enumerate(row):
            left, top = 120 + 300 * m, 100 + 70 * n
            draw.text((left + 15, top + 15), cell, fill=0, font=font(language, 30))
            if ruled:
                draw.rectangle((left, top, left + 300, top + 70), outline=0, width=2)
    return image, rows


@pytest.mark.parametrize(
    ("language", "ruled", "angle"),
    [
        ("eng", True, -1.0),
        ("chi_sim", False, 0),
        *(pytest.param("eng", ruled, 0, marks=pytest.mark.slow) for ruled in (True, False)),
        *(pytest.param("chi_sim", ruled, -1.0, marks=pytest.mark.slow) for ruled in (True, False)),
    ],
)
def test_tables_of_scans_are_tables(tmp_path, font, language, ruled, angle):
    """With rules and without, level and aslant."""
    image, rows = table(font, language, ruled=ruled)
    image.rotate(angle, fillcolor=255, resample=3).save(tmp_path / "table.png")
    text = read(tmp_path / "table.png", ocr=True)[0].page_content
    found = [[cell.replace(" ", "") for cell in line.strip("|").split("|")] for line in text.split("\n")]
    assert [[cell.replace(" ", "") for cell in row] for row in rows] == [found[0], *found[2:]]


@pytest.mark.parametrize("lower", [0, 20])
def test_columns_of_a_scan_are_read_one_after_the_other(tmp_path, font, lower):
    """Below a heading that goes over both; also where the lines of one stand between those of the other."""
    from PIL import Image, ImageDraw

    image = Image.new("L", (1654, 700), 255)
    draw, columns = ImageDraw.Draw(image), TEXTS["eng"].split("\n")
    draw.text((500, 60), "Rules of the harbour", fill=0, font=font("eng", 52))
    for column in (0, 1):
        words = columns[2 * column] + " " + columns[2 * column + 1]
        cut = [words[at : at + 40] for at in range(0, len(words), 40)]
        for n, line in enumerate(cut):
            place = (120 + 770 * column, 200 + 42 * n + lower * column)
            draw.text(place, line, fill=0, font=font("eng", 28))
    image.save(tmp_path / "columns.png")
    text = read(tmp_path / "columns.png", ocr=True)[0].page_content
    order = ["# Rules of the harbour", "The keeper", "must announce", "themselves by radio", "members only"]
    places = [text.find(words) for words in order]
    assert -1 not in places and places == sorted(places)


def test_reading_needs_no_network(tmp_path, line):
    """The models come with the package: a process without a network device reads a scan."""
    probe = ["unshare", "-rn", "true"]
    if subprocess.run(probe, capture_output=True, check=False).returncode:
        pytest.skip("unshare cannot take the network away here")
    line(1).save(tmp_path / "scan.png")
    code = "import sys; from rag_kit.indexing import read; print(read(sys.argv[1], ocr=True)[0].page_content)"
    command = ["unshare", "-rn", sys.executable, "-c", code, str(tmp_path / "scan.png")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "210.50 EUR a day" in done.stdout, done.stderr


def test_pages_keep_their_numbers_and_the_report_says_which_were_recognised(tmp_path, line, capsys):
    """A PDF with text keeps its own; the setting stays with the index, and another one reads the files again."""
    (tmp_path / "docs").mkdir()
    line(0).save(tmp_path / "docs" / "scan.pdf", save_all=True, append_images=[line(1)], resolution=200)
    line(2).save(tmp_path / "docs" / "two.tif", save_all=True, append_images=[line(3)])
    (tmp_path / "docs" / "typed.pdf").write_bytes(make.pdf([[(50, 700, 12, "The crane is closed.")]]))
    line(3).save(tmp_path / "docs" / "photo.png")
    index = tmp_path / "index"
    report = ingest(tmp_path / "docs", index, options=IngestOptions(ocr=True))
    assert report.failed == [] and report.added == 4
    assert "read by OCR: photo.png, scan.pdf, two.tif" in report.notes
    with DocumentIndex.open(index) as opened:
        fields = [document.metadata for document in opened.get(opened.ids())]
    found = {(each["file"], each.get("page")) for each in fields if each.get("ocr")}
    pages_of = {("scan.pdf", 1), ("scan.pdf", 2), ("two.tif", 1), ("two.tif", 2)}
    assert found == {("photo.png", None), *pages_of} and len(fields) == 6
    assert ingest(tmp_path / "docs", index).unchanged == 4
    command = ["ingest", str(tmp_path / "docs"), "--index", str(index), "--ocr", "none", "--quiet"]
    assert main([*command, "--embedding-model", "none"]) == 7
    out = capsys.readouterr()
    assert "ocr changed from True to False" in out.err + out.out and "not read: photo.png" in out.err


def test_a_scan_with_a_stamp_is_a_page_without_text(tmp_path, scan):
    """It is recognised, and a quote is looked for in the picture; without OCR the page is counted, and its text stays.

    What stands at the edge may be a title over a picture. Where all pages share it, the file is refused.
    """
    from PIL import Image
    from reportlab.lib.utils import ImageReader
    from reportlab.pdfgen.canvas import Canvas

    whole = Image.new("L", (1654, 2339), 255)
    whole.paste(scan("eng"))
    for name in ("scan", "letter", "scans"):
        canvas = Canvas(str(tmp_path / f"{name}.pdf"), pagesize=(595, 842))
        if name == "letter":
            canvas.drawString(72, 500, "The letter.")
            canvas.showPage()
        for _ in range(1 + (name == "scans")):
            canvas.drawImage(ImageReader(whole), 0, 0, 595, 842)
            canvas.drawString(240, 12, "Scanned by Snap")
            canvas.showPage()
        canvas.save()
    (page,) = read(tmp_path / "scan.pdf", ocr=True)
    assert page.metadata["ocr"] is True and "The keeper" in page.page_content
    place = locate("The keeper", page)
    assert place is not None and place.rectangles[0][3] > 400
    with pytest.raises(ReadError, match="OCR is off"):
        read(tmp_path / "scans.pdf")
    (page,) = read(tmp_path / "scan.pdf")
    assert page.page_content == "Scanned by Snap" and page.metadata["pages_without_text"] == 1
    assert read(tmp_path / "letter.pdf")[0].metadata["pages_without_text"] == 1


def test_what_ocr_needs_is_named(tmp_path, monkeypatch):
    """Without the package, and for languages that are not read."""
    path = tmp_path / "a.png"
    path.write_bytes(b"\x89PNG")
    for wrong in ("eng+", "../eng", "eng chi_sim", "rus", 3):
        with pytest.raises(InvalidInputError, match=r"ocr.*True.*chi_sim"):
            read(path, ocr=wrong)
    monkeypatch.setitem(sys.modules, "rapidocr", None)
    with pytest.raises(MissingExtraError, match=r"rag-kit\[ocr\]"):
        ingest(tmp_path, tmp_path / "index", options=IngestOptions(ocr=True))


def png(width: int, height: int, rows: bytes = b"") -> bytes:
    """A grey PNG with any size in its header."""
    chunks = [
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)),
        (b"IDAT", zlib.compress(rows)),
    ]
    pieces = [struct.pack(">I", len(d)) + k + d + struct.pack(">I", zlib.crc32(k + d)) for k, d in chunks]
    return b"\x89PNG\r\n\x1a\n" + b"".join(pieces)


def test_hostile_pictures_are_refused(tmp_path, line):
    """Too large, broken, no picture, blank; and the time cap ends OCR, too."""
    line(1).save(tmp_path / "good.png")
    hostile = {
        "huge.png": (png(60_000, 60_000), "DecompressionBomb"),
        "short.png": (png(1000, 1000, bytes(50)), "truncated.*damaged"),
        "noise.jpg": (b"\xff\xd8\xff" + bytes(range(256)), "damaged"),
        "script.tif": (b"%!PS-Adobe-3.0 EPSF-3.0\n", "damaged"),
        "blank.png": (png(400, 400, (b"\0" + b"\xff" * 400) * 400), "no text found"),
        "page.pdf": (make.pdf([[]]).replace(b"595 842", b"9999999 9"), "also not by OCR"),
    }
    with Reader(ocr=True) as reader:
        for name, (data, reason) in hostile.items():
            (tmp_path / name).write_bytes(data)
            with pytest.raises(ReadError, match=reason):
                reader.read(tmp_path / name)
        with pytest.raises(ReadError, match="max_seconds"):
            reader.read(tmp_path / "good.png", limits=ReadLimits(max_seconds=0.01))
        assert make.process_id(reader) is None
        assert "210.50 EUR a day" in reader.read(tmp_path / "good.png")[0].page_content
