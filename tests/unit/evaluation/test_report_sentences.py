"""Every sentence that the kit writes into results has Chinese words on the page."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import rag_kit.evaluation
from rag_kit.evaluation.wording import texts
from rag_kit.graphs import build_crag
from rag_kit.graphs.crag.nodes import _REASONS as REASONS
from rag_kit.graphs.evaluators.lexical import LexicalEvaluator
from rag_kit.models import chat_model
from rag_kit.retrieval import BM25Retriever

FOLDER = Path(rag_kit.evaluation.__file__).parent
TEXTS = texts()["en"]
PATTERNS = [
    re.compile(".+?".join(map(re.escape, re.split(r"\{\w+\}", text))), re.DOTALL)
    for key, text in TEXTS.items()
    if key.startswith("reason_")
]
# Calls whose argument is a reason or a note, and names of tables that hold reasons.
CALLS = {"undefined", "not_applicable", "append", "note", "_note"}
LISTS = {"missing", "notes"}
TABLES = {"_NEITHER", "_REASONS"}


def spoken(node: ast.AST | None) -> str | None:
    """A text in the source, with something at the place of each value; ``None`` for what is none."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(part.value if isinstance(part, ast.Constant) else "X7" for part in node.values)  # type: ignore[misc]
    return None


def told_by(path: Path) -> Iterator[str]:
    """Reasons and notes in a file: arguments of the calls, entries of the lists and tables."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            owner = node.func.value.id if isinstance(node.func.value, ast.Name) else ""
            if node.func.attr in CALLS - {"append"} or (node.func.attr == "append" and owner in LISTS):
                ways = node.args[0].values if isinstance(node.args[0], ast.BoolOp) else [node.args[0]]
                yield from filter(None, map(spoken, ways))
            if node.func.attr == "ok" and len(node.args) > 1:
                yield from filter(None, [spoken(node.args[1])])
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            if node.targets[0].id in TABLES and isinstance(node.value, ast.Dict):
                yield from filter(None, map(spoken, node.value.values))
            elif node.targets[0].id == "reason":
                yield from filter(None, [spoken(node.value)])
        elif isinstance(node, ast.FunctionDef) and node.name == "reason":
            for each in ast.walk(node):
                if isinstance(each, ast.Return):
                    yield from filter(None, [spoken(each.value)])


FOUND = sorted(
    {
        (path.relative_to(FOLDER).as_posix(), text)
        for part in ("ours/*", "ranking/metrics", "judge/*", "comparison*", "reporting/*", "metric")
        for path in sorted(FOLDER.glob(f"{part}.py"))
        for text in told_by(path)
        if re.search("[a-z]{2}", text.replace("X7", ""))
    }
)


def test_the_sources_are_read() -> None:
    """The walk finds what the metrics say."""
    assert len(FOUND) > 25
    assert ("judge/ragas_table.py", "the tables have no column in common") in FOUND


def test_what_the_kit_says_of_a_value_has_chinese_words() -> None:
    """Each reason and note is one of the page's sentences."""
    for where, text in FOUND:
        ways = [text.replace("X7", word) for word in ("X7", "answer", "reference")]
        assert any(pattern.fullmatch(way) for way in ways for pattern in PATTERNS), (
            f"{where}: {text!r} has no key in texts.json"
        )


def test_notes_of_retrievers_and_graphs_have_them_too() -> None:
    """A run whose notes are English is read on a Chinese page."""
    notes = [
        "degraded: multi_query failed: ConnectionError: refused",
        "degraded: keyword search only, for the index has no vectors",
        "degraded: hyde: the model gave no usable passage",
        "degraded: MultiQuery did not answer in time: 3 s",
        "dropped 3 that the model wrote: 2 empty, 1 another script",
    ]
    notes += [f"grade: {said.format(lower=-0.5, upper=0.7)}" for said in REASONS.values()] + [
        *(f"grade: {action}: the evaluator calls for it, whatever the confidences" for action in REASONS),
        "grade: incorrect: the retriever found nothing",
        "refine: 5 of 21 strips kept",
        "web: could not look outside, no web search was given; nothing to use",
        "web: could not look outside, no web search was given; answered from what was retrieved",
        "select_external: 2 of 5 strips of the web kept",
        "finish: no passage gave a part of an answer",
    ]
    for note in notes:
        assert any(pattern.fullmatch(note) for pattern in PATTERNS), note


@pytest.mark.parametrize("period", ["1990 to 1994", "1970 to 1975"])
def test_what_a_run_of_crag_notes_has_them(period: str) -> None:
    """The notes of a real run are among those that the report knows."""
    graph = build_crag(
        BM25Retriever.from_texts(["Ann Lee was the coach of Hull from 1990 to 1994."]),
        chat_model("extractive"),
        evaluator=LexicalEvaluator(),
    )
    notes = graph.invoke({"question": f"Who was the coach of Hull from {period}?"})["notes"]
    assert notes
    for note in notes:
        assert any(pattern.fullmatch(note) for pattern in PATTERNS), note
