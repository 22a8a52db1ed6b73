"""Notebooks run from any folder, with the embedded and with an OpenAI-type model, and give what is committed."""

from __future__ import annotations

import base64
import importlib.util
import json
import struct
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from langchain_core.messages import HumanMessage, SystemMessage
from support.openai_server import OpenAIServer, Recorded

from rag_kit.models.extractive.model import ExtractiveChatModel

nbformat = pytest.importorskip("nbformat", reason="the notebooks need the extra jupyter")

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
each = pytest.mark.parametrize("path", NOTEBOOKS, ids=[path.stem for path in NOTEBOOKS])

#: Notebook -> what has to hold after its last cell; run in its kernel.
ASSERTS = {
    "ask_a_folder": """
assert all(spans) and len(chunks) == 9
assert all(passage.metadata["file"].startswith("trails/") for passage in trails)
assert stats[0] == stats[1]
assert check_citations(answer, [p.page_content for p in passages]).status == "grounded"
wrong = answer.replace("one", "seven").replace("One", "Seven")
assert wrong != answer and check_citations(wrong, [p.page_content for p in passages]).status == "flagged"
assert [state["status"] for state in states] == ["grounded"] * 3 + ["declined"]
""",
    "ask_a_folder.zh": """
assert all(spans) and stats[0] == stats[1]
assert [state["status"] for state in states] == ["grounded"] * 2 + ["declined"]
assert "163" in answer and check_citations(answer, texts).status == "grounded"
""",
    "five_retrievers": """
assert queries == [question, "cooling pump fuse", "pump stays off"]
assert ranks.loc["note-2", "multi-query"] == 1 and ranks.loc["note-10", "step-back"] == 1
assert rest < 1e-9  # nothing is missing from the fused score, nothing is made up
assert any("check fuse F3" in doc.page_content for doc in compressed.invoke(question))
assert [doc.id for doc in rows] == ["note-5"]
assert {doc.metadata["kind"] for doc in rules} == {"rule"}
""",
    "good_index": """
assert [file for file, _ in report.failed] == ["broken.pdf", "scan.pdf"] and checked.ok
assert {chunk.metadata["page"] for chunk in handbook} == {1, 2, 3}
assert not any(chunk.page_content.startswith("The pilot handbook - ") for chunk in chunks)
assert all(int(row["answers found"].split()[0]) >= 10 for row in rows_of.values())
assert (table["hybrid"].isna() <= table["bm25"].isna()).all()
assert built.passages == len(chunks) and any(one.metadata.get("level") for one in top)
assert again.added == 1 and len(again.failed) == 1
""",
    "graphs_compared": """
answers = {key: state["answer"] for key, (state, path) in runs.items()}
assert all("first Monday of a month" in answers[questions[0], name] for name in graphs)
assert "16 amperes" in answers[questions[1], "crag"]
assert answers[questions[2], "crag"] == "The answer is not in the documents."
assert [runs[question, "crag"][0]["action"] for question in questions] == ["correct", "ambiguous", "incorrect"]
assert {"web"} <= set(strips["origin"]) and trace["won"].any()
""",
    "which_retriever": """
assert all(example.relevant and example.spans for example in questions)
assert done["asked"] == done["scored"] == 0
assert all(len(each) == len(questions) == 65 for each in results.values())
assert comparison.pipelines == tuple(results)
assert all(0 <= row.low <= row.mean <= row.high <= 1 for row in comparison.table if row.low is not None)
assert item.best_single <= item.union
assert sum(diagnosis.counts.values()) + diagnosis.unknown == len(questions)
assert abs(means["bm25"]["map@4"] - 0.892) < 0.002
assert path.stat().st_size > 100_000
""",
    "which_retriever.zh": """
counted = outcomes(results)
assert (counted.sum(axis=1) - counted["declined_rightly"] == len(questions)).all() and not counted["invented"].any()
assert comparison.pipelines == tuple(results) and diagnosis.counts["right_declined"] == 1
assert path.stat().st_size > 100_000
""",
}
#: With another model: whatever it writes, the notebook comes to its end, and questions were kept.
ANY_MODEL = {"which_retriever": "assert len(generated) > 0 and not extractive and 'multi-query' in results"}


@pytest.fixture(scope="module")
def runner() -> ModuleType:
    """``scripts/run_notebooks.py``, which ``make notebooks`` runs."""
    pytest.importorskip("nbclient", reason="the notebooks need the extra jupyter")
    spec = importlib.util.spec_from_file_location("run_notebooks", ROOT / "scripts" / "run_notebooks.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@each
def test_notebooks_are_committed_with_their_outputs(runner: ModuleType, path: Path) -> None:
    """Every cell was run, in order; no path, no address, no key, no warning; tests are in this file."""
    notebook = nbformat.read(path, as_version=4)
    cells = runner.code_cells(notebook)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert runner.foreign(notebook) == []
    assert not any(line.startswith("assert ") for cell in cells for line in cell.source.splitlines())
    shown = [data for cell in cells for output in cell.outputs if (data := output.get("data"))]
    assert sum("text/html" in data for data in shown) >= 3
    pictures = [base64.b64decode(data["image/png"]) for data in shown if "image/png" in data]
    drawings = [data["image/svg+xml"] for data in shown if "image/svg+xml" in data]
    assert len(pictures) + len(drawings) >= {
        "five_retrievers": 2,
        "good_index": 5,
        "graphs_compared": 5,
        "which_retriever": 2,
        "which_retriever.zh": 1,
    }.get(path.stem, 0)
    for picture in pictures:
        width, height = struct.unpack(">II", picture[16:24])
        assert width > 400 and height > 150 and len(picture) > 4_000
    assert all(drawing.startswith("<svg") and drawing.count("<text") > 5 for drawing in drawings)


def test_one_line_is_to_be_changed() -> None:
    """The folder; nothing below names the island."""
    cells = [
        cell.source
        for cell in nbformat.read(ROOT / "notebooks" / "which_retriever.ipynb", as_version=4).cells
    ]
    assert [
        line.split("#")[0].strip()
        for cell in cells
        for line in cell.splitlines()
        if line.startswith("FOLDER")
    ] == ["FOLDER = ISLAND"]


@pytest.mark.parametrize(
    ("before", "after", "wrong"),
    [
        ({"data": {"text/plain": "a 0.9"}}, {"data": {"text/plain": "a 0.9"}}, 0),
        ({"data": {"text/plain": "a 0.9"}}, {"data": {"text/plain": "a 0.8"}}, 1),
        ({"data": {"image/png": "abc"}}, {"data": {"image/png": "xyz"}}, 0),
        ({"data": {"image/png": "abc"}}, {"data": {"text/html": "xyz"}}, 1),
    ],
)
def test_stale_outputs_are_found(runner: ModuleType, before: Any, after: Any, wrong: int) -> None:
    """Texts are compared, pictures counted."""
    pair = []
    for output in (before, after):
        cell = nbformat.v4.new_code_cell("x")
        cell["outputs"] = [nbformat.v4.new_output("display_data", **output)]
        pair.append(nbformat.v4.new_notebook(cells=[cell]))
    assert len(runner.stale(*pair)) == wrong


def test_what_a_cell_prints_may_come_in_pieces(runner: ModuleType) -> None:
    """How the kernel cuts a cell's prints into messages depends on the moment and is not compared."""
    notebooks = []
    for pieces in (["one\n", "two\n"], ["one\ntwo\n"], ["one\n"]):
        cell = nbformat.v4.new_code_cell("x")
        cell["outputs"] = [nbformat.v4.new_output("stream", name="stdout", text=piece) for piece in pieces]
        notebooks.append(nbformat.v4.new_notebook(cells=[cell]))
    assert runner.stale(notebooks[0], notebooks[1]) == []
    assert len(runner.stale(notebooks[0], notebooks[2])) == 1


@pytest.mark.parametrize(
    "text",
    [
        "written to /home/ada/x.json",
        "C:\\Users\\ada",
        "<A at 0x7f00aa11bb22>",
        "sk-abcdefgh12345678",
        "/tmp/x",
    ],
)
def test_what_must_not_be_committed_is_found(runner: ModuleType, text: str) -> None:
    """Paths, addresses in memory, keys; addresses of web pages are none."""
    for shown, count in ((text, 1), ("https://maker.example/tmp/f3 and a/b/tmp/x, 3/4", 0)):
        cell = nbformat.v4.new_code_cell("x")
        cell["outputs"] = [nbformat.v4.new_output("stream", text=shown)]
        assert len(runner.foreign(nbformat.v4.new_notebook(cells=[cell]))) == count


def run(runner: ModuleType, path: Path, folder: Path, asserts: str) -> Any:
    """The notebook executed in a folder, with one more cell: the asserts."""
    copy = folder / path.name
    notebook = nbformat.read(path, as_version=4)
    notebook.cells.append(nbformat.v4.new_code_cell(asserts))
    nbformat.write(notebook, copy)
    fresh = runner.execute(copy, folder)
    fresh.cells.pop()
    return fresh


@pytest.mark.slow
@pytest.mark.timeout(600)
@each
def test_a_run_gives_what_is_committed(
    runner: ModuleType, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From an empty folder, with the embedded model; what the notebook claims holds."""
    for name in ("RAG_KIT_CHAT_MODEL", "RAG_KIT_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("RAG_KIT_EMBEDDING_MODEL", "none")
    fresh = run(runner, path, tmp_path, ASSERTS[path.stem])
    assert runner.stale(nbformat.read(path, as_version=4), fresh) == []
    assert [file.name for file in tmp_path.iterdir()] == [path.name]  # it leaves nothing where it was run


def extractive(request: Recorded) -> Any:
    """The embedded model's reply, as a server's that keeps connections alive."""
    kinds = {"system": SystemMessage, "user": HumanMessage}
    messages = [
        kinds[each["role"]](each["content"]) for each in request.body["messages"] if each["role"] in kinds
    ]
    text = str(ExtractiveChatModel().invoke(messages).content)
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, dict) else text


@pytest.mark.slow
@pytest.mark.timeout(600)
@each
def test_notebooks_run_with_a_model_behind_http(
    runner: ModuleType, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An OpenAI-compatible server on loopback, in a kernel whose event loop is running."""
    with OpenAIServer([extractive]) as server:
        monkeypatch.setenv("RAG_KIT_CHAT_MODEL", "openai:test")
        monkeypatch.setenv("RAG_KIT_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789")
        monkeypatch.setenv("RAG_KIT_EMBEDDING_MODEL", "none")
        fresh = run(runner, path, tmp_path, ANY_MODEL.get(path.stem, "pass"))
        assert bool(server.chats) == (path.stem != "five_retrievers")
    assert [found for found in runner.foreign(fresh) if "a key" in found] == []
