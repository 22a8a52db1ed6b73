"""``rag-kit ask --graph``: every graph answers from the command line."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from support.command_line import ingest_pages

from rag_kit import graphs
from rag_kit.cli import exits
from rag_kit.cli.main import main
from rag_kit.cli.options import GRAPHS
from rag_kit.indexing import DocumentIndex
from rag_kit.models import chat_model
from rag_kit.retrieval import index_retriever

every_graph = pytest.mark.parametrize("graph", sorted(GRAPHS))


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index over two pages."""
    pages = {"pump.md": "# Pump\n\nThe pump starts at 40 degrees. It is blue.\n"}
    pages["fan.md"] = "# 风扇\n\n风扇在六十度时启动，噪音很大。\n"
    return ingest_pages(tmp_path_factory.mktemp("graphs"), pages)


@every_graph
def test_answers_in_both_languages(graph: str, index: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The answer is printed once, with its source and quote below a heading in its language."""
    for question, said, file, heading in (
        ("At how many degrees does the pump start?", "40 degrees", "pump.md", "Sources"),
        ("风扇什么时候启动？", "六十度", "fan.md", "来源"),
    ):
        capsys.readouterr()
        assert main(["ask", question, "--index", str(index), "--graph", graph]) == exits.OK
        out, _ = capsys.readouterr()
        answer, sources = out.split(f"\n{heading}")
        assert answer.count(said) == 1 and file in sources and said in sources


def test_a_source_in_a_spreadsheet_is_a_sheet(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In every graph the place of a quote is told as that of its passage, and not as a page."""
    book = openpyxl.Workbook()
    book.worksheets[0].title = "价目"
    for row in (["产品", "保修期"], ["天枢水泵", "两年"]):
        book.worksheets[0].append(row)
    (tmp_path / "docs").mkdir()
    book.save(tmp_path / "docs" / "价目表.xlsx")
    index = ("--index", str(tmp_path / "index"))
    assert main(["ingest", str(tmp_path / "docs"), *index, "--embedding-model", "none"]) == exits.OK
    for graph in GRAPHS:
        capsys.readouterr()
        assert main(["ask", "天枢水泵的保修期是多长？", *index, "--graph", graph]) == exits.OK
        assert "价目表.xlsx · 工作表 价目" in (said := capsys.readouterr().out) and "page" not in said


@every_graph
def test_declines_and_json(graph: str, index: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An answer that is not in the documents is declined; --json prints nothing but JSON."""
    capsys.readouterr()
    question = "Who won the chess championship of Norway?"
    assert main(["ask", question, "--index", str(index), "--graph", graph, "--json"]) == exits.OK
    result = json.loads(capsys.readouterr().out)
    assert result["status"] == "declined" and result["question"] == question
    assert result["usage"]["seconds"] > 0


@pytest.mark.parametrize(
    ("graph", "pipeline"), [*((graph, "hybrid") for graph in sorted(GRAPHS)), ("plain", "bm25")]
)
def test_notes_are_those_of_the_graph(
    graph: str, pipeline: Any, index: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without vectors `hybrid` is degraded, and says so in Python, sync and async, as in --json; `bm25` is a choice."""
    question = "At how many degrees does the pump start?"
    capsys.readouterr()
    arguments = ["--index", str(index), "--graph", graph, "--pipeline", pipeline, "--json"]
    assert main(["ask", question, *arguments]) == exits.OK
    said = json.loads(capsys.readouterr().out)["notes"]
    with DocumentIndex.open(index) as opened:
        made = getattr(graphs, GRAPHS[graph])(index_retriever(opened, pipeline), chat_model("extractive"))
        notes = made.invoke({"question": question})["notes"]
        assert asyncio.run(made.ainvoke({"question": question}))["notes"] == notes == said
    assert sum("keyword search only" in note for note in notes) == (pipeline == "hybrid")


@every_graph
def test_explanation_and_answer_stand_on_lines_of_their_own(
    graph: str, index: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With --explain the passages come after the answer, also where a graph runs inside a graph; no step is JSON."""
    capsys.readouterr()
    arguments = ["--index", str(index), "--graph", graph, "--explain"]
    assert main(["ask", "At how many degrees does the pump start?", *arguments]) == exits.OK
    out, err = capsys.readouterr()
    lines = out.splitlines()
    found = [number for number, line in enumerate(lines) if "bm25 · rank" in line]
    assert found and min(found) > lines.index("The pump starts at 40 degrees.[1]")
    assert not any(mark in err for mark in "{}")
