"""Six PDFs with known text, made with reportlab: positions are set by hand, as typesetting programs do."""

from __future__ import annotations

import io
from collections.abc import Callable

from reader_known import Block, KnownFile, Rows, heading, table, text
from reportlab.lib.pagesizes import A4
from reportlab.lib.utils import simpleSplit
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.cidfonts import UnicodeCIDFont
from reportlab.pdfgen.canvas import Canvas

_WIDTH, _HEIGHT = A4
_LEFT, _TOP = 60.0, _HEIGHT - 70
_CHINESE = "STSong-Light"

Made = tuple[bytes, KnownFile]


class _Sheet:
    """A PDF that is written line by line from the top of a page."""

    def __init__(self, font: str = "Helvetica", title: str = "") -> None:
        self.buffer = io.BytesIO()
        self.canvas = Canvas(self.buffer, pagesize=A4, invariant=1)
        self.canvas.setTitle(title)
        self.font = font
        self.x, self.y, self.width = _LEFT, _TOP, _WIDTH - 2 * _LEFT

    def line(self, words: str, *, x: float | None = None, y: float | None = None, size: float = 10) -> None:
        self.canvas.setFont(self.font, size)
        self.canvas.drawString(self.x if x is None else x, self.y if y is None else y, words)

    def heading(self, words: str, size: float = 16) -> None:
        self.y -= 12
        font, self.font = self.font, "Helvetica-Bold" if self.font == "Helvetica" else self.font
        self.line(words, size=size)
        self.font = font
        self.y -= size + 6

    def paragraph(self, words: str, *, size: float = 10) -> None:
        if self.font == _CHINESE:  # characters are as wide as high
            most = int(self.width / size)
            lines = [words[at : at + most] for at in range(0, len(words), most)]
        else:
            lines = simpleSplit(words, self.font, size, self.width)
        for line in lines:
            self.line(line, size=size)
            self.y -= size * 1.3
        self.y -= 8

    def rows(
        self, rows: Rows, widths: list[float], *, ruled: bool, size: float = 9, height: float = 18
    ) -> None:
        for row in rows:
            x = self.x
            for cell, width in zip(row, widths, strict=True):
                self.line(cell, x=x + 4, y=self.y + 5, size=size)
                if ruled:
                    self.canvas.rect(x, self.y, width, height)
                x += width
            self.y -= height
        self.y -= 10

    def page(self) -> None:
        self.canvas.showPage()
        self.y = _TOP

    def bytes(self) -> bytes:
        self.canvas.save()
        return self.buffer.getvalue()


def letter() -> Made:
    """A letter whose letterhead stands at the right and comes last in the file; keys and values at two tab stops."""
    sheet = _Sheet(title="")
    head = ["Halvorsen Marine Supplies", "14 Quayside Road, Portree", "office@halvorsen.example"]
    pairs = [
        ("Invoice number", "HM-20417"),
        ("Order date", "3 March 2026"),
        ("Payment due", "2 April 2026"),
        ("Amount due", "1,284.50 EUR"),
    ]
    body = [
        "Dear Ms Okonkwo,",
        "Thank you for your order of two anchor winches and forty metres of galvanised chain. Both winches left our "
        "warehouse on 5 March and should reach the harbour office within four working days.",
        "Please note that the warranty of the winches begins on the day of delivery and lasts thirty-six months. "
        "Keep this letter together with the delivery note, as both are needed for a claim.",
        "Yours sincerely,",
        "Ingrid Halvorsen",
    ]
    sheet.y = _HEIGHT - 190
    for key, value in pairs:
        sheet.line(f"{key}:")
        sheet.line(value, x=_LEFT + 130)
        sheet.y -= 16
    sheet.y -= 18
    for words in body:
        sheet.paragraph(words)
    for number, words in enumerate(head):
        sheet.line(words, x=_WIDTH - 230, y=_HEIGHT - 60 - 14 * number, size=12 if number == 0 else 9)
    blocks = [*map(text, head), *(text(f"{key}: {value}", "pair") for key, value in pairs), *map(text, body)]
    return sheet.bytes(), KnownFile("letter.pdf", tuple(blocks))


_ARTICLE = [
    (
        "Tidal mixing in narrow fjords",
        "Narrow fjords exchange their deep water only a few times in a decade. Between two exchanges the oxygen near "
        "the bottom falls slowly, and the tide is the main source of energy that mixes the layers above the sill.",
        "We followed three fjords over six winters with moored instruments. Temperature, salinity and oxygen were "
        "recorded every ten minutes at eleven depths, which gives about three hundred thousand profiles in all.",
    ),
    (
        "Instruments and moorings",
        "Each mooring carried a chain of sensors between the surface buoy and an anchor of two tonnes. The sensors "
        "were calibrated before and after each season, and the drift stayed below two hundredths of a degree.",
        "Gaps of up to one hour were filled by linear interpolation. Longer gaps, most of them caused by trawlers, "
        "were left open and do not enter the averages that are reported below.",
    ),
    (
        "What the oxygen shows",
        "Oxygen below the sill fell by a third of a millilitre a month in the innermost basin and by half of that in "
        "the two outer basins. After the storm of February the outer basins were renewed within nine days.",
        "The inner basin was not reached by the new water. Its oxygen fell for another fourteen months, until the "
        "density of the bottom water had become low enough for the next inflow to pass beneath it.",
    ),
]


def article() -> Made:
    """Two columns on three pages; the running head is the section's name and the page, another on each page."""
    sheet = _Sheet(title="Tidal mixing in narrow fjords")
    sheet.width = 225
    blocks: list[Block] = []
    furniture = []
    for number, (name, *paragraphs) in enumerate(_ARTICLE, 1):
        running = f"{name.upper()}   {210 + number}"
        footer = f"Journal of Coastal Waters 41 ({2020 + number}) {210 + number}"
        furniture += [running, footer]
        sheet.line(running, y=_HEIGHT - 40, size=8)
        sheet.line(footer, y=34, size=8)
        sheet.heading(name, 13)
        blocks.append(heading(name))
        top = sheet.y
        for column, words in enumerate(paragraphs):
            sheet.x, sheet.y = (_LEFT, top) if column == 0 else (_LEFT + 255, top)
            sentences = words.split(". ")
            parts = [f"{sentences[0]}.", ". ".join(sentences[1:])]
            for part in parts:
                sheet.paragraph(part)
                blocks.append(text(part))
        sheet.x = _LEFT
        sheet.page()
    return sheet.bytes(), KnownFile("article.pdf", tuple(blocks), tuple(furniture))


def tables() -> Made:
    """A ruled table; then one without rules that goes on, under its header, on the second page."""
    sheet = _Sheet(title="Harbour dues")
    ruled = [
        ["Vessel class", "Length (m)", "Dues per day", "Reduced"],
        ["Dinghy", "under 5", "4.00 EUR", "2.00 EUR"],
        ["Yacht", "5 to 12", "18.50 EUR", "9.25 EUR"],
        ["Trawler", "12 to 30", "46.00 EUR", "31.00 EUR"],
        ["Freighter", "over 30", "210.00 EUR", "none"],
    ]
    header = ["Berth", "Depth", "Water", "Power", "Keeper"]
    names = ["Aasen", "Brandt", "Castellan", "Drummond", "Eriksen", "Fontaine", "Gallagher", "Hjelm"]
    berths = [
        [f"B{n:02d}", f"{2 + n * 0.3:.1f} m", "yes" if n % 3 else "no", f"{(n % 4 + 1) * 8} A", names[n % 8]]
        for n in range(1, 33)
    ]
    sheet.heading("Harbour dues")
    intro = "The dues below hold from the first of January; the reduced rate is for residents of the parish."
    second = "Berths and what they offer, from the inner basin outwards."
    sheet.paragraph(intro)
    sheet.y -= 10
    sheet.rows(ruled, [120, 90, 100, 90], ruled=True)
    sheet.heading("Berths", 13)
    sheet.paragraph(second)
    cut = 20
    sheet.rows([header, *berths[:cut]], [70, 80, 80, 80, 120], ruled=False, height=16)
    sheet.page()
    sheet.rows([header, *berths[cut:]], [70, 80, 80, 80, 120], ruled=False, height=16)
    end = "A berth that is not taken by noon is given to the next vessel on the list."
    sheet.paragraph(end)
    blocks = (
        heading("Harbour dues"),
        text(intro),
        table(ruled),
        heading("Berths", 2),
        text(second),
        table([header, *berths[:cut]]),
        table([header, *berths[cut:]]),
        text(end),
    )
    return sheet.bytes(), KnownFile("tables.pdf", blocks)


_CODE = '''def tide(height, hours):
    """Height of the water after some hours."""
    if hours < 0:
        raise ValueError("hours must not be negative")
    for step in range(hours):
        if step % 6 == 0:
            height = -height
        height += 0.1
    return height'''


def code() -> Made:
    """Source code in a font of fixed width between two paragraphs; its indents are positions."""
    sheet = _Sheet(title="A model of the tide")
    before = "The function below turns the tide every six hours and adds a tenth of a metre each hour."
    after = "It is called once for each gauge, and its result is compared with what the gauge measured."
    sheet.heading("A model of the tide")
    sheet.paragraph(before)
    sheet.font = "Courier"
    for line in _CODE.split("\n"):
        indent = len(line) - len(line.lstrip())
        sheet.line(line.lstrip(), x=_LEFT + 10 + indent * 5.4, size=9)
        sheet.y -= 12
    sheet.font = "Helvetica"
    sheet.y -= 12
    sheet.paragraph(after)
    blocks = (heading("A model of the tide"), text(before), text(_CODE, "code"), text(after))
    return sheet.bytes(), KnownFile("code.pdf", blocks)


def chinese() -> Made:
    """A Chinese page with a title, two sections and a ruled table."""
    pdfmetrics.registerFont(UnicodeCIDFont(_CHINESE))
    sheet = _Sheet(_CHINESE, title="港口管理办法")
    sections = [
        (
            "一、泊位的申请",
            "船舶进港前应当提前二十四小时向港口办公室提出申请，写明船名、长度、吃水和预计停留的天数。"
            "办公室在收到申请后四小时内答复；没有答复的，视为同意。",
        ),
        (
            "二、费用与减免",
            "停泊费按船舶的长度和停留的天数计算。本地居民的小艇减半收费，因天气原因不能离港的船舶免收当日费用。"
            "逾期不缴的，每日加收千分之五的滞纳金。",
        ),
    ]
    rows = [
        ["船型", "长度", "每日费用"],
        ["小艇", "五米以下", "三十元"],
        ["渔船", "五至十二米", "一百二十元"],
    ]
    sheet.heading("港口管理办法", 18)
    blocks: list[Block] = [heading("港口管理办法")]
    for name, words in sections:
        sheet.heading(name, 14)
        sheet.paragraph(words, size=11)
        blocks += [heading(name, 2), text(words)]
    sheet.y -= 12
    sheet.rows(rows, [120, 120, 120], ruled=True, size=11, height=22)
    return sheet.bytes(), KnownFile("chinese.pdf", (*blocks, table(rows)))


def form() -> Made:
    """A form: printed labels, two values that were typed in and two that are form fields."""
    sheet = _Sheet(title="Application for a berth")
    sheet.heading("Application for a berth")
    intro = "Fill in all fields and hand the form to the harbour office."
    sheet.paragraph(intro)
    pairs = [
        ("Name of vessel", "Fulmar"),
        ("Home port", "Stornoway"),
        ("Length", "11.4 m"),
        ("Owner", "R. Macleod"),
    ]
    for number, (key, value) in enumerate(pairs):
        sheet.line(key)
        if number < 2:
            sheet.canvas.rect(_LEFT + 116, sheet.y - 5, 180, 18)
            sheet.line(value, x=_LEFT + 120)
        else:
            sheet.canvas.acroForm.textfield(
                name=key, value=value, x=_LEFT + 116, y=sheet.y - 5, width=180, height=18, fontSize=10
            )
        sheet.y -= 28
    blocks = (heading("Application for a berth"), text(intro), *(text(f"{k}: {v}", "pair") for k, v in pairs))
    return sheet.bytes(), KnownFile("form.pdf", blocks)


MAKERS: list[Callable[[], Made]] = [letter, article, tables, code, chinese, form]
