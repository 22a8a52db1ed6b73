"""Reading and splitting files of odd shapes: the time grows with the file, and so does what comes out."""

from __future__ import annotations

import json
import math
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from harness import Row, at_most

from rag_kit.indexing.readers.child import convert
from rag_kit.indexing.readers.limits import ReadLimits
from rag_kit.indexing.readers.parts import Context
from rag_kit.indexing.splitting.api import split

Shape = Callable[[int], str]


def _lines(line: str) -> Shape:
    return lambda size: (line + "\n") * (size // (len(line) + 1))


def _run(piece: str) -> Shape:
    return lambda size: piece * (size // len(piece))


def _table(size: int) -> str:
    return "| a | b |\n| --- | --- |\n" + "| some cell | 12.5 |\n" * (size // 21)


def _deep_json(size: int) -> str:
    return json.dumps({f"key {number}": {"inner": [number] * 5} for number in range(size // 45)})


def _wide_csv(size: int) -> str:
    columns = int(math.sqrt(size) / 4)
    row = ",".join(["1234567"] * columns)
    return ",".join(f"column{number}" for number in range(columns)) + "\n" + f"{row}\n" * (size // len(row))


#: Suffix and text by name.
SHAPES: dict[str, tuple[str, Shape]] = {
    "prose": ("md", _run("It is deep, and cold. Nobody swims there in winter!\n\n")),
    "Chinese prose": ("md", _run("湖水很深。湖水很冷，没有人敢在冬天游泳。\n\n")),
    "one line without a stop": ("md", _run("word ")),
    "one word": ("txt", _run("x")),
    "Chinese without a stop": ("txt", _run("汉")),
    "full stops": ("md", _run(".")),
    "Chinese full stops": ("txt", _run("。")),
    "ellipses": ("md", _run("…")),
    "stops and closing quotes": ("md", _run('."')),
    "closing brackets": ("md", lambda size: "." + ")" * size),
    "citation marks": ("md", lambda size: "So." + "[1]" * (size // 3)),
    "one long list of citations": ("md", lambda size: "So.[1" + ",2" * (size // 2) + "]"),
    "blank lines": ("md", lambda size: "a\n" + "\n" * size + "b"),
    "lines of spaces": ("md", lambda size: "a\n" + (" " * 99 + "\n") * (size // 100) + "b"),
    "spaces": ("md", lambda size: "a" + " " * size + "b"),
    "tabs and ideographic spaces": ("txt", lambda size: "a" + "\t\u3000" * (size // 2) + "b"),
    "a Markdown table": ("md", _table),
    "rows without a header": ("md", _lines("| a | b |")),
    "a table's wide header": (
        "md",
        lambda size: "| a " * (size // 4) + "|\n" + "|---" * (size // 4) + "|\n| b |",
    ),
    "headings": ("md", _lines("# A heading")),
    "headings with text": ("md", _run("# A heading\n\nText.\n\n")),
    "one long heading": ("md", lambda size: "# " + "word " * (size // 10) + "\n\nText.\n\n" * (size // 14)),
    "headings six deep": ("md", _run("".join("#" * level + " Part\n\nText.\n\n" for level in range(1, 7)))),
    "underlined headings": ("md", _run("Title\n=====\n\nText.\n\n")),
    "rows of equals signs": ("md", _lines("=====")),
    "open fences": ("md", _lines("```")),
    "fences of growing length": ("md", lambda size: "\n".join("`" * (3 + n % 60) for n in range(size // 33))),
    "list items": ("md", _lines("- an item of a list")),
    "items inside items": (
        "md",
        lambda size: "\n".join(" " * (n % 60) + "- item" for n in range(size // 37)),
    ),
    "open book titles": ("md", _run("《书。")),
    "abbreviations": ("md", _run("e.g. Dr. No. etc. ")),
    "combining marks": ("txt", _run("e\u0301")),
    "a narrow CSV": ("csv", _lines("first cell,second cell,12.5")),
    "a wide CSV": ("csv", _wide_csv),
    "a CSV of one row": ("csv", lambda size: ",".join(["cell"] * (size // 5))),
    "JSON": ("json", _deep_json),
    "JSON lines": ("jsonl", _lines('{"title": "A lake", "text": "It is deep."}')),
    "nested HTML": ("html", lambda size: "<div>" * (size // 20) + "text" + "</div>" * (size // 20)),
    "an HTML list": ("html", lambda size: "<ul>" + "<li>item</li>" * (size // 13) + "</ul>"),
    "an HTML table": ("html", lambda size: "<table>" + "<tr><td>a<td>b</tr>" * (size // 19) + "</table>"),
}


def _measure(folder: Path, kind: str, text: str) -> tuple[float, float]:
    """Processor seconds to read and split a file, and characters given out for each one of the file."""
    path = folder / f"shape.{kind}"
    path.write_text(text, encoding="utf-8")
    started = time.process_time()
    parts = list(convert(path, kind, Context(ReadLimits())))
    from langchain_core.documents import Document

    chunks = split(Document(part.text, metadata={"format": kind}) for part in parts)
    seconds = time.process_time() - started
    given = sum(
        len(chunk.page_content) + sum(len(str(value)) for value in chunk.metadata.values())
        for chunk in chunks
    )
    return seconds, given / len(text)


def run(quick: bool = False) -> list[Row]:
    small = 30_000 if quick else 100_000
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for shape, (kind, make) in SHAPES.items():
            before = min(_measure(folder, kind, make(small))[0] for _ in range(3))
            after, growth = _measure(folder, kind, make(10 * small))
            # below 10 ms the fixed costs of a call decide
            ratio = after / max(before, 0.01)
            note = f"{after:.2f} s for {10 * small / 1e6:.1f} MB, {growth:.1f} characters out for one in"
            rows.append(at_most(f"{shape}: time of ten times as much", ratio, 16.0, note))
            rows.append(at_most(f"{shape}: characters out for each one in", growth, 40.0))
    return rows
