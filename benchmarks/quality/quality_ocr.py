"""Text recognition: character errors of `read(picture, ocr=True)` beside tesseract, on pages that this draws.

python benchmarks/quality/quality_ocr.py [--kind KIND ...] [--show]

Needs the extras ``ocr`` and ``eval``, the fonts DejaVu and Noto CJK (Debian: fonts-dejavu-core, fonts-noto-cjk), and to
compare ``pip install tesserocr`` with tesseract's data for eng, chi_sim, osd. Pages are 1654 by 1240 pixels, a half of
A4 at 200 dpi; tesseract gets them at 300 dpi, at which it reads best.

Measures: ``errors`` is the edit distance of all characters but white space and the signs of
markdown, by the length of the text, at most 1; ``cells`` the share of cells of tables in a row with their row's name.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from PIL import Image, ImageDraw, ImageFilter, ImageFont
from rapidfuzz.distance import Levenshtein

from rag_kit.indexing.readers.api import Reader

RESULT = Path(__file__).resolve().parent.parent / "results" / "ocr.json"
SIZE = (1654, 1240)
FONTS = {
    "en": ["DejaVuSans.ttf", "DejaVuSerif.ttf"],
    "zh": [
        "/usr/share/fonts/opentype/noto/NotoSansCJK-Regular.ttc",
        "/usr/share/fonts/opentype/noto/NotoSerifCJK-Regular.ttc",
    ],
}
SENTENCES = {
    "en": [
        "The keeper of the inner basin writes the name of each vessel into the harbour book.",
        "Vessels of more than thirty metres pay 210.50 EUR a day.",
        "Pilots are on duty from six in the morning until 22:30.",
        "Nobody may moor at the northern quay between October and March.",
        "Model KX-4471 of the pump starts at 40 degrees and stops at 65.",
        "Members of the club have the use of the crane on Saturdays.",
        "A written notice reaches the office at least fourteen days before.",
        "In 2019 the basin was dredged to a depth of 7.2 metres.",
        "Whoever finds a lost buoy brings it to the shed behind the light.",
        "The fee is returned if the weather closes the passage for a week.",
    ],
    "zh": [
        "船舶进港前应当提前二十四小时向港口办公室提出申请。",
        "长度超过三十米的船舶每天缴费210.50元。",
        "引航员从早上六点到晚上22:30值班。",
        "十月至次年三月期间，任何人不得在北码头停泊。",
        "KX-4471型水泵在40度时启动，在65度时停止。",
        "俱乐部成员可以在星期六使用起重机。",
        "书面通知应当至少提前十四天送达办公室。",
        "2019年港池疏浚至7.2米深。",
        "拾到浮标的人应当把它送到灯塔后面的仓库。",
        "因天气原因封航一周的，退还全部费用。",
    ],
}
TABLES = {
    "en": [
        ["Station", "City", "Height", "Since"],
        ["Harbour light", "Bremen", "38.5 m", "1854"],
        ["Old mill", "Emden", "12.0 m", "1701"],
        ["North dike", "Husum", "7.25 m", "1963"],
        ["Pilot house", "Wismar", "21.4 m", "1888"],
    ],
    "zh": [
        ["站点", "城市", "高度", "年份"],
        ["港口灯塔", "宁波", "38.5米", "1954"],
        ["老磨坊", "绍兴", "12.0米", "1901"],
        ["北堤", "嘉兴", "7.25米", "1963"],
        ["引航站", "温州", "21.4米", "1988"],
    ],
}
Lines = list[str]


class Page(NamedTuple):
    """A drawn page, and what is on it."""

    kind: str
    language: str
    image: Image.Image
    text: str
    table: list[list[str]]


def wrapped(text: str, font: ImageFont.FreeTypeFont, width: float, language: str) -> Lines:
    """The lines of a paragraph that is set in a width; Chinese breaks anywhere, but not before a stop."""
    units = re.findall(r"[A-Za-z0-9.:-]+[，。]?|.[，。]?", text) if language == "zh" else text.split()
    lines, glue = [""], "" if language == "zh" else " "
    for unit in units:
        longer = f"{lines[-1]}{glue if lines[-1] else ''}{unit}"
        if font.getlength(longer) > width and lines[-1]:
            lines.append(unit)
        else:
            lines[-1] = longer
    return lines


def font_of(language: str, name: str, size: int) -> ImageFont.FreeTypeFont:
    return ImageFont.truetype(name, size, index=2 if name.endswith(".ttc") else 0)


def draw_text(
    image: Image.Image, box: tuple[int, int, int], text: str, font: ImageFont.FreeTypeFont, language: str
) -> None:
    """Draw a paragraph at a place with a width."""
    left, top, width = box
    draw = ImageDraw.Draw(image)
    for number, line in enumerate(wrapped(text, font, width, language)):
        draw.text((left, top + number * int(1.45 * font.size)), line, fill=20, font=font)


def prose(language: str, rng: random.Random, count: int) -> str:
    return ("" if language == "zh" else " ").join(rng.sample(SENTENCES[language], count))


def plain_page(language: str, name: str, size: int, rng: random.Random) -> tuple[Image.Image, str]:
    image, text = Image.new("L", SIZE, 255), prose(language, rng, 4)
    draw_text(image, (150, 120, 1350), text, font_of(language, name, size), language)
    return image, text


def column_page(language: str, name: str, rng: random.Random) -> tuple[Image.Image, str]:
    image, font = Image.new("L", SIZE, 255), font_of(language, name, 28)
    left, right = prose(language, rng, 4), prose(language, rng, 4)
    draw_text(image, (130, 150, 640), left, font, language)
    draw_text(image, (880, 150, 640), right, font, language)
    return image, left + right


def table_page(
    language: str, name: str, ruled: bool, rng: random.Random
) -> tuple[Image.Image, list[list[str]]]:
    image, font = Image.new("L", SIZE, 255), font_of(language, name, 30)
    head, *rows = TABLES[language]
    table = [head, *rng.sample(rows, len(rows))]
    draw, wide, high = ImageDraw.Draw(image), 300, 70
    for n, row in enumerate(table):
        for m, cell in enumerate(row):
            left, top = 180 + m * wide, 200 + n * high
            draw.text((left + 14, top + 14), cell, fill=20, font=font)
            if ruled:
                draw.rectangle((left, top, left + wide, top + high), outline=30, width=2)
    return image, table


def noisy(image: Image.Image, rng: random.Random) -> Image.Image:
    """A copy of a copy: blurred, with specks."""
    dirty = image.filter(ImageFilter.GaussianBlur(1.2))
    draw = ImageDraw.Draw(dirty)
    for _ in range(2500):
        x, y, grey = rng.randrange(SIZE[0]), rng.randrange(SIZE[1]), rng.randrange(256)
        draw.ellipse((x, y, x + 2, y + 2), fill=grey)
    return dirty


def shaded(image: Image.Image) -> Image.Image:
    """A photograph in bad light: grey, darker to one side, of little contrast."""
    light = Image.linear_gradient("L").rotate(90).resize(SIZE).point(lambda value: 90 + value // 2)
    return Image.blend(light, image, 0.45).filter(ImageFilter.GaussianBlur(0.8))


def turned(image: Image.Image, degrees: float) -> Image.Image:
    return image.rotate(degrees, expand=degrees % 90 == 0, fillcolor=255, resample=Image.Resampling.BICUBIC)


def pages() -> Iterator[Page]:
    """Two pages of each kind, one a language; the same ones each time, the fonts by turns."""
    changes: dict[str, tuple[int, Callable[[Image.Image, random.Random], Image.Image]]] = {
        **{f"size {size}": (size, lambda image, _: image) for size in (20, 28, 44)},
        **{f"turned {by}": (30, lambda image, _, by=by: turned(image, by)) for by in (0.8, -2.5, 90, 180)},
        "blurred, specks": (28, noisy),
        "blurred, specks, turned 0.8": (28, lambda image, rng: turned(noisy(image, rng), 0.8)),
        "bad light": (28, lambda image, _: shaded(image)),
    }
    for language in ("en", "zh"):
        fonts = itertools.cycle(FONTS[language])
        for kind, (size, change) in changes.items():
            rng = random.Random(f"{kind} {language}")
            image, text = plain_page(language, next(fonts), size, rng)
            yield Page(kind, language, change(image, rng), text, [])
        rng = random.Random(language)
        image, text = column_page(language, next(fonts), rng)
        yield Page("two columns", language, image, text, [])
        for ruled, degrees in itertools.product((True, False), (0, 0.8)):
            image, table = table_page(language, next(fonts), ruled, rng)
            kind = f"table{', ruled' if ruled else ''}{', turned 0.8' if degrees else ''}"
            text = "".join(cell for row in table for cell in row)
            yield Page(kind, language, turned(image, degrees) if degrees else image, text, table)


def squeezed(text: str) -> str:
    return re.sub(r"[\s|#*\\`]|-{3,}", "", text.replace("-\n", ""))


def cells_found(table: list[list[str]], output: str) -> float:
    """The share of cells that are, as cells, in a row of a markdown table that has their row's name."""
    rows = [
        [squeezed(cell) for cell in line.strip("|").split("|")] for line in output.split("\n") if "|" in line
    ]
    found = [
        any(squeezed(cell) in row[1:] and squeezed(name) == row[0] for row in rows)
        for name, *cells in table
        for cell in cells
    ]
    return fmean(found)


def tesseract() -> Callable[[Image.Image], str] | None:
    """Tesseract in both languages, with the settings that the kit had; ``None`` where it is not installed."""
    try:
        from tesserocr import PSM, PyTessBaseAPI
    except ImportError:
        return None
    folder = sorted(Path("/usr/share/tesseract-ocr").glob("*/tessdata"))[-1]
    engine = PyTessBaseAPI(path=f"{folder}/", lang="chi_sim+eng", psm=PSM.AUTO_OSD)

    def text_of(image: Image.Image) -> str:
        engine.SetImage(image.resize([side * 3 // 2 for side in image.size], Image.Resampling.BICUBIC))
        engine.SetSourceResolution(300)
        return str(engine.GetUTF8Text())

    return text_of


def main() -> None:
    """Draw, read, compare, and write the result file where all kinds were measured."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--kind", action="append", help="only kinds that begin so; no result file")
    parser.add_argument("--show", action="store_true", help="print what came out wrong")
    arguments = parser.parse_args()
    reader, folder = Reader(ocr=True), Path(tempfile.mkdtemp())

    def ours(image: Image.Image) -> str:
        image.save(folder / "page.png")
        try:
            return reader.read(folder / "page.png")[0].page_content
        except Exception as error:  # noqa: BLE001 - a page without text counts as all wrong
            print("failed:", error)
            return ""

    engines = {"rapidocr": ours, "tesseract": tesseract()}
    table: dict[str, dict[str, float]] = {}
    for page in pages():
        if arguments.kind and not any(page.kind.startswith(kind) for kind in arguments.kind):
            continue
        measures = table[f"{page.kind}, {page.language}"] = {}
        for name, engine in engines.items():
            if engine is None:
                continue
            started = time.monotonic()
            output, known = engine(page.image), squeezed(page.text)
            measures[f"{name} seconds"] = round(time.monotonic() - started, 1)
            wrong = min(1.0, Levenshtein.distance(squeezed(output), known) / len(known))
            measures[f"{name} errors"] = round(wrong, 4)
            if page.table:
                measures[f"{name} cells"] = round(cells_found(page.table, output), 3)
            if arguments.show and name == "rapidocr" and wrong > 0.01:
                print(f"--- {wrong:.3f}\n{output}\n")
        print(f"{page.kind}, {page.language}:", measures, flush=True)
    if not arguments.kind:
        RESULT.write_text(json.dumps(table, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
