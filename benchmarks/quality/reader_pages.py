"""Made-up pages in HTML, with what is known of them, for other programs to print: see reader_unseen.py."""

from __future__ import annotations

import html

from reader_known import Block, Rows, heading, table, text

EN = """The council met on Tuesday evening to hear the report of the bridge inspectors and to set a date for repairs.
Most of the damage lies below the waterline, where the old timber piles have been eaten by shipworm for decades.
A temporary speed limit of thirty kilometres an hour will stay in force until the new piles have been driven.
Residents of the east bank asked for a footbridge, which would cost less than half of what a road bridge costs.
The treasurer warned that the reserve fund would be empty by the autumn if the grant from the province is refused.
Two firms have sent offers, and both of them promise to finish the main span before the first frost of November.
Farmers need the crossing for their harvest and would rather see the work put off by a month than begun in August.
An engineer from the university explained how sensors in the deck can tell a cracked weld from a loose bolt.
Nobody objected to the plan to keep the iron railings, which were cast in the village foundry a century ago.
The minutes will be sent to every household together with a map of the diversion and the times of the ferry.
Children who live across the river will be taken to school by boat, weather permitting, until the works are over.
Last year the same stretch was closed for nine weeks because of flooding, and traders lost a fifth of their sales.
The ferry takes twelve cars at a time and runs every twenty minutes between six in the morning and ten at night.
A second meeting is planned for the spring, when the results of the underwater survey should be known to all.
Each offer has to name a person who answers the telephone on site, also at weekends and on public holidays."""
ZH = """市政府决定在今年秋季对旧城区的供水管道进行全面更换，工程预计持续八个月。
施工期间每天上午九点到下午四点停水，居民可以在街口的临时取水点取水。
专家指出，使用超过四十年的铸铁管道漏损率高达三成，更换之后每年可以节约大量用水。
工程费用由市财政和自来水公司共同承担，不向住户收取任何费用。
如果在施工中发现文物，必须立即停工并报告文物保护部门处理。
沿街商户可以申请减免施工期间的部分租金，申请表在街道办事处领取。
监理单位应当每周提交一份书面报告，说明进度、质量和安全方面的情况。
学校和医院周围的路段安排在假期施工，以减少对教学和就诊的影响。"""
LEDGER = '''class Ledger:
    """Adds up what came in and went out."""

    def __init__(self, start=0):
        self.total = start

    def book(self, amount, *, note=""):
        if amount == 0:
            raise ValueError("nothing to book")
        self.total += amount
        return {"total": self.total, "note": note}'''
SORT = """for name in *.csv; do
    sort "$name" > "$name.sorted"
    if [ $? -ne 0 ]; then
        echo "failed: $name"
    fi
done"""


def rows(lines: str) -> Rows:
    """Cells that bars divide, a row a line."""
    return [[cell.strip() for cell in line.split("|")] for line in lines.split("\n")]


WORKS = rows("""Task | Who | What has to be done
Survey | Office of works | Divers look at every pile below the waterline and write down its diameter and its cracks.
Closure | Police | The road is closed on both sides; signs show the way to the ferry and its times.
Piling | | Forty steel piles are driven between two tides, none of them at night.
Opening | Mayor | A ribbon is cut.""")
STOCK = rows("""Product | Stock | Reorder at | Supplier
Rope 12 mm | 140 | 50 | Lind
Shackle | 35 | 40 |
Paint, white | 9 | 12 | Coatings Ltd
Winch handle | 4 | 2 | Lind""")
_INVOICE = rows("""Item | Qty | Unit price | Amount
Oak boards, planed | 24 | 18.40 | 441.60
Brass hinges | 12 | 3.75 | 45.00
Wood glue, 5 l | 2 | 31.00 | 62.00
Delivery | 1 | 25.00 | 25.00""")
_HARBOUR = rows("""Region | 2019 | 2020 | 2021 | 2022 | 2023 | Change
North | 1,204 | 1,198 | 1,310 | 1,402 | 1,377 | +14.4%
South and islands | 803 | 799 | | 850 | 861 | +7.2%
East | 2,410 | 2,288 | 2,395 | 2,501 | 2,640 | +9.5%
West coast | 96 | 101 | 88 | | 120 | +25.0%
Total | 4,513 | 4,386 | 3,793 | 4,753 | 4,998 | +10.7%""")
_FERRY = rows("""Quay | Weekdays | Weekdays | Weekend
East bank | 06:00 | 22:00 | 08:20
West bank | 06:10 | 22:10 | 08:30
Island | 07:00 | 19:00 | none""")
_CARS = rows("Month | Cars\nJanuary | 4,120\nApril | 5,870\nJuly | 9,415\nOctober | 6,002")
_SPANS = rows("Span | Length\nFirst | 18 m\nMain | 64 m\nLast | 22 m")
_POOL = rows("Day | Opens | Closes\nMonday | closed |\nTuesday | 9:00 | 20:30\nSunday | 10:00 | 18:00")
_COSTS = rows("Part | Cost\nPiles | 1.2 m\nDeck | 2.9 m\nFerry | 0.4 m")
_TRIAL = rows("""Method | Precision | Recall | F1
Lexical search | 0.71 | 0.64 | 0.67
Dense search | 0.69 | 0.73 | 0.71
Both, fused | 0.78 | 0.77 | 0.77""")
_GOODS = rows("""品名 | 数量 | 单价 | 金额
课桌 | 120 | 85.00 | 10,200.00
黑板 | 6 | 320.00 | 1,920.00
白色粉笔（盒） | 200 | 4.50 | 900.00""")
_DUTIES = rows("""单位 | 职责 | 期限
自来水公司 | 负责旧管道的拆除和新管道的安装，并在每段完工之后进行压力试验。 | 十月
街道办事处 | 通知沿街住户停水时间，安排临时取水点。 |
监理单位 | 每周提交书面报告。 | 全程""")
_LESSONS = rows("""时间 | 星期一 | 星期二 | 星期三
八点 | 语文 | 数学 | 英语
九点 | 数学 | | 体育
十点 | 物理 | 化学 | 语文
十一点 | 自习 | 音乐 |""")
_WORDS = rows("""Bollard | A short post on a quay to which ropes are made fast.
Fender | Something soft between a ship and a quay.
Sill | The shallow place at the mouth of a fjord.""")
_VESSEL = rows("Vessel | MS Aurora\nCall sign | LKJP\nGross tonnage | 2,304\nPort of registry | Bergen")
_GRID = "td, th {border: 1px solid #444}"
_COLUMNS = ".c {columns: 2; column-gap: 18pt; text-align: justify; hyphens: auto}"
_STYLE = """body {font-family: 'DejaVu Serif', 'Noto Sans CJK SC', serif; font-size: 10.5pt}
pre {font-family: 'DejaVu Sans Mono', monospace} table {border-collapse: collapse}
td, th {padding: 3pt 6pt; text-align: left; vertical-align: top} .r {text-align: right}"""


class Page:
    """A page that is written block by block: its HTML, and what is known of it."""

    def __init__(self, name: str, title: str, css: str = "", *, office: bool = False) -> None:
        self.name, self.title, self.css = name, title, css
        self.office = office  # without style sheets it looks alike, so that LibreOffice prints it too
        self.body: list[str] = []
        self.blocks: list[Block] = []
        self.heading(title)

    def add(self, markup: str, *blocks: Block) -> Page:
        self.body.append(markup)
        self.blocks += blocks
        return self

    def heading(self, words: str, level: int = 1) -> Page:
        return self.add(f"<h{level}>{words}</h{level}>", heading(words, level))

    def text(self, words: str) -> Page:
        return self.add(f"<p>{html.escape(words)}</p>", text(words))

    def prose(self, first: int, end: int) -> Page:
        """A paragraph of these sentences."""
        return self.text(" ".join(EN.split("\n")[first:end]))

    def chinese(self, first: int, end: int) -> Page:
        return self.text("".join(ZH.split("\n")[first:end]))

    def items(self, *items: str) -> Page:
        listed = "".join(f"<li>{item}</li>" for item in items)
        return self.add(f"<ul>{listed}</ul>", *(text(item, "item") for item in items))

    def lines(self, *lines: str) -> Page:
        return self.add(f"<p>{'<br>'.join(lines)}</p>", *map(text, lines))

    def code(self, code: str) -> Page:
        return self.add(f"<pre>{html.escape(code)}</pre>", Block("code", code))

    def table(self, cells: Rows, attributes: str = "", numbers: int = 0) -> Page:
        """A table; its last columns, as many as there are numbers, stand at the right."""
        written = []
        for tag, row in zip(["th", *["td"] * len(cells)], cells, strict=False):
            left = len(row) - numbers
            kinds = [" class=r align=right" if n >= left else " align=left" for n in range(len(row))]
            columns = (
                f"<{tag}{kind}>{html.escape(cell) or '&nbsp;'}</{tag}>"
                for kind, cell in zip(kinds, row, strict=True)
            )
            written.append(f"<tr>{''.join(columns)}</tr>")
        body = f"<thead>{written[0]}</thead><tbody>{''.join(written[1:])}</tbody>"
        return self.add(f"<table {attributes}>{body}</table>", table(cells))

    @property
    def html(self) -> str:
        head = f"<meta charset=utf-8><title>{self.title}</title><style>{_STYLE} {self.css}</style>"
        return f"<!doctype html><html><head>{head}</head><body>{''.join(self.body)}</body></html>"


def pages() -> list[Page]:
    """Pages that other programs print."""
    ruled = "border=1 cellpadding=4 cellspacing=0"
    names = ("Marlow & Sons", "Okafor", "Lindqvist", "Baptiste", "Yamada", "Petrov", "Silva")
    booked = [
        [
            f"{7000 + 13 * n}",
            f"{1 + n % 28:02d}.03.2026",
            names[n % 7],
            f"{n * 37 % 900 + 10}.{n % 10}0",
            "paid",
        ]
        for n in range(60)
    ]
    booked.insert(0, ["No.", "Date", "Customer", "Amount", "State"])
    seller = ["Kestrel Joinery Ltd", "3 Mill Lane", "Ashford TN24 0QZ"]
    buyer = ["Bill to", "Thornbury Parish Hall", "High Street 40, Thornbury"]
    sides = f"<div class=two><div>{'<br>'.join(seller)}</div><div>{'<br>'.join(buyer)}</div></div>"
    spanned = "<tr><th rowspan=2>Quay</th><th colspan=2>Weekdays</th><th>Weekend</th></tr>"
    spanned += "<tr><th>First</th><th>Last</th><th>First</th></tr>"
    spanned += "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in _FERRY[1:])
    terms = "".join(f"<dt>{word}</dt><dd>{meaning}</dd>" for word, meaning in _WORDS)
    pairs = "".join(f"<dt>{key}:</dt><dd>{value}</dd>" for key, value in _VESSEL)
    note = "Table 1: Means of five runs on the harbour questions."
    apart = "justify-content: space-between"
    return [
        Page(
            "invoice", "Invoice 2207", f"tr {{border-bottom: 1px solid #999}} .two {{display: flex; {apart}}}"
        )
        .add(sides, *map(text, seller + buyer))
        .table(_INVOICE, "width=100%", 3)
        .text("Payment is due within fourteen days of the date of this invoice; please quote its number.")
        .prose(2, 4),
        Page("ferry", "Timetable of the ferry", _GRID + "tr:nth-child(even) {background: #eee}")
        .prose(12, 13)
        .add(f"<table>{spanned}</table>", table(_FERRY))
        .prose(10, 11),
        Page("report", "Works on the bridge", _GRID, office=True)
        .prose(0, 3)
        .heading("What is planned", 2)
        .table(WORKS, f"{ruled} width=100%")
        .heading("Open questions", 2)
        .items("Who pays for the ferry in winter?", "Which quay is used when the water is low?")
        .prose(5, 8),
        Page(
            "beside",
            "Crossings in a year",
            "table {float: right; margin-left: 16pt} td {border-top: 1px solid}",
        )
        .table(_CARS, numbers=1)
        .prose(0, 4)
        .prose(4, 8),
        Page("ledger", "Ledger", "td, th {padding: 2.4pt 8pt}")
        .prose(9, 10)
        .table(booked)
        .text("All amounts are in euros and hold the tax."),
        Page("ledger_ruled", "Ledger of March", office=True)
        .prose(9, 10)
        .table(booked, ruled)
        .text("All amounts are in euros and hold the tax."),
        Page("columns", "News of the bridge", _COLUMNS)
        .add("<div class=c>")
        .heading("The meeting", 2)
        .prose(0, 5)
        .prose(5, 8)
        .table(_SPANS)
        .heading("The ferry", 2)
        .prose(8, 12)
        .prose(12, 15)
        .add("</div>"),
        Page(
            "newsletter",
            "Newsletter",
            ".c {columns: 3; column-gap: 12pt} body {font-size: 9pt} h2 {font-size: 11pt}",
        )
        .add("<div class=c>")
        .heading("Piles", 2)
        .prose(0, 4)
        .heading("Money", 2)
        .prose(4, 7)
        .prose(7, 9)
        .heading("Harvest", 2)
        .prose(9, 12)
        .items("Bring boots", "Bring a lamp", "Leave dogs at home")
        .prose(12, 15)
        .add("</div>"),
        Page("harbour", "Harbour statistics", "body {font-size: 7.5pt} td, th {padding: 1pt 5pt}")
        .prose(0, 4)
        .table(_HARBOUR, numbers=6)
        .prose(10, 13),
        Page("pool", "Rules of the swimming pool", "body {font-size: 18pt}", office=True)
        .items("Shower before you swim.", "Do not run on the wet tiles.")
        .table(_POOL, ruled)
        .prose(13, 14),
        Page("letter", "Dear Tomas", office=True)
        .prose(12, 14)
        .lines("The river takes the bridge", "and gives us back the boat;", "and keeps us all afloat.")
        .text("Your friend,")
        .lines("Anna Bergström", "Lilla Vägen 9", "211 20 Malmö"),
        Page("narrow", "Narrow and justified", "p {width: 150pt; text-align: justify}")
        .prose(0, 5)
        .prose(5, 9),
        Page("ledger_class", "The ledger class", "pre {background: #f2f2f2; padding: 8pt}", office=True)
        .text("The class below keeps one number and refuses to book nothing.")
        .code(LEDGER)
        .text("It is used from the shell, once for each file:")
        .code(SORT)
        .prose(14, 15),
        Page(
            "vessel",
            "Vessel data",
            "dl {display: grid; grid-template-columns: 120pt auto} dt {font-weight: bold}",
        )
        .add(f"<dl>{pairs}</dl>", *(text(f"{key}: {value}", "pair") for key, value in _VESSEL))
        .prose(12, 14),
        Page("glossary", "Words of the harbour", office=True)
        .add(f"<dl>{terms}</dl>", *(text(cell) for row in _WORDS for cell in row))
        .prose(0, 2),
        Page(
            "trial", "Results of the trial", "table {border-top: 2px solid} thead {border-bottom: 1px solid}"
        )
        .prose(5, 7)
        .table(_TRIAL, numbers=3)
        .add(f"<p><i>{note}</i></p>", text(note))
        .prose(7, 9),
        Page("slides", "Costs", "@page {size: 254mm 143mm; margin: 12mm} body {font-size: 20pt}").table(
            _COSTS
        ),
        Page("goods", "送货单", "tr {border-bottom: 1px solid #999}")
        .lines("收货单位：青山县第二中学", "送货日期：2026年3月18日")
        .table(_GOODS, "width=100%", 3)
        .chinese(3, 4),
        Page("pipes", "管道更换工程", office=True)
        .chinese(0, 3)
        .heading("一、分工", 2)
        .table(_DUTIES, f"{ruled} width=100%")
        .heading("二、其他事项", 2)
        .chinese(3, 6)
        .items("保持路面清洁", "夜间不得使用大型机械"),
        Page("water", "水务简报", _COLUMNS)
        .add("<div class=c>")
        .heading("工程进展", 2)
        .chinese(0, 4)
        .chinese(4, 6)
        .heading("居民须知", 2)
        .chinese(6, 8)
        .add("</div>"),
        Page("lessons", "课程表", "td, th {padding: 3pt 14pt}").chinese(7, 8).table(_LESSONS),
    ]
