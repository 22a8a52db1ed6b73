"""The data in the file: what several pipelines find is there once, and nothing is lost on the way."""

from __future__ import annotations

import json
import re
from typing import Any

from support.report_results import results_of_pipelines

from rag_kit.evaluation.cells import Cell
from rag_kit.evaluation.examples import Example
from rag_kit.evaluation.outputs import Output, Passage
from rag_kit.evaluation.reporting import report_payload
from rag_kit.evaluation.reporting.packing import CELL, QUESTION, RUN, pack
from rag_kit.evaluation.reporting.page import assets, embedded_json
from rag_kit.evaluation.runs import Results, Row


def passage(number: int, score: float = 0.5) -> Passage:
    stage = {
        "stage": "bm25",
        "retriever": "BM25Retriever",
        "rank": number,
        "score": score,
        "query": "another",
    }
    return Passage(f"d{number}", f"Text {number}.", {"file": "a.pdf", "page": number},
                   {"score": score, "rank": number, "stages": [stage]})  # fmt: skip


def results(name: str, **output: Any) -> Results:
    cells = {"mrr": Cell.ok(1.0, missed=["d9"]), "faithfulness": Cell.undefined("nothing")}
    row = Row(Example("q", "Why?"), Output("So.", (passage(1), passage(2, 0.25)), **output), cells)
    return Results(name, [row])


def test_what_several_pipelines_found_is_stored_once() -> None:
    """Id, text and place of a passage, names of stages, reasons and details are in tables."""
    packed = pack(report_payload([results("a"), results("b"), results("c")]))
    tables = packed["tables"]
    assert [head[0] for head in tables["heads"]] == ["d1", "d2"]
    assert tables["details"] == [{"missed": ["d9"]}] and tables["metrics"] == ["mrr", "faithfulness"]
    assert sorted(tables["words"]) == sorted(["bm25", "BM25Retriever", "another", "nothing"])
    first, *others = packed["questions"][0]["runs"]
    assert others == [first, first]
    words = tables["words"].index
    stage = [words("bm25"), words("BM25Retriever"), 1, True, None, words("another")]
    assert first["passages"][0] == [0, 0.5, None, [stage]]
    assert not {"error", "queries", "citations", "calls", "extra"} & first.keys()


def test_the_file_is_much_smaller() -> None:
    """Three pipelines on the same questions: little more than half of the plain data; no text twice."""
    data = report_payload(results_of_pipelines(200))
    plain, packed = embedded_json(data), embedded_json(pack(data))
    assert len(packed) < 0.6 * len(plain)
    assert pack(data)["texts"] == data["texts"] and len(set(data["texts"])) == len(data["texts"])


def test_both_halves_leave_out_the_same() -> None:
    """What Python leaves out, the script of the page puts in again."""
    table = re.search(r"const usual = (\{.*?\n\});", assets("js"), re.DOTALL)
    assert table is not None
    quoted = re.sub(r"(\w+):", r'"\1":', re.sub(r",(\s*\})", r"\1", table[1]))
    assert json.loads(quoted) == {"question": QUESTION, "run": RUN, "cell": CELL}
