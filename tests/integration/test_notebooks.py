"""Notebooks promise what their cells show; "Which retriever suits my documents?" runs without an embedding model."""

from __future__ import annotations

import base64
import html
import importlib.util
import re
import struct
from pathlib import Path
from types import ModuleType

import pytest

nbformat = pytest.importorskip("nbformat", reason="the notebooks need the extra jupyter")

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
WHICH = ROOT / "notebooks" / "which_retriever.ipynb"


@pytest.fixture(scope="module")
def runner() -> ModuleType:
    """``scripts/run_notebooks.py``, which ``make notebooks`` runs."""
    pytest.importorskip("nbclient", reason="the notebooks need the extra jupyter")
    spec = importlib.util.spec_from_file_location("run_notebooks", ROOT / "scripts" / "run_notebooks.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def code_cells(path: Path) -> list[nbformat.NotebookNode]:
    """The cells that are run."""
    return [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=[path.stem for path in NOTEBOOKS])
def test_notebooks_are_committed_without_outputs(path: Path) -> None:
    """Outputs would go stale; what they must hold stands in the cells, or is asserted there."""
    cells = code_cells(path)
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in cells)
    assert any(line.startswith(("# -> ", "assert ")) for cell in cells for line in cell.source.splitlines())


def test_from_a_folder_to_a_diagnosis_in_ten_cells() -> None:
    """Ten cells, each of which promises an output; the folder is one line of the first."""
    cells = code_cells(WHICH)
    assert len(cells) == 10
    assert len(re.findall(r"^FOLDER = ", cells[0].source, re.MULTILINE)) == 1
    assert not any("notebooks/" in cell.source for cell in cells[1:])
    for cell in cells:
        assert re.search(r"^# [-=]> ", cell.source, re.MULTILINE), cell.source


@pytest.mark.parametrize(
    ("source", "outputs", "missing"),
    [
        ("# -> bm25", [{"text": "bm25 0.9"}], []),
        ("# -> bm25", [{"data": {"text/html": "<td>bm25</td>"}}], []),
        ("# -> bm25", [{"data": {"text/html": "<td>dense</td>"}}], ["bm25"]),
        ("# => 2 image/png", [{"data": {"image/png": "aaaa"}}], ["2 image/png"]),
        ("# => 2 image/png", [{"data": {"image/png": "aaaa"}}] * 2, []),
        ("# => 1 image/png", [{"data": {"image/png": ""}}], ["1 image/png"]),
        ("# => 1 image/svg+xml", [{"text": "image/svg+xml"}], ["1 image/svg+xml"]),
    ],
)
def test_a_promise_that_is_not_kept_is_found(
    runner: ModuleType, source: str, outputs: list[dict[str, object]], missing: list[str]
) -> None:
    """Texts are looked for in what is shown, images are counted."""
    cell = nbformat.v4.new_code_cell(source)
    cell["outputs"] = [nbformat.from_dict(output) for output in outputs]
    assert runner.missing_outputs(cell) == missing


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_which_retriever_without_an_embedding_model(
    runner: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tables, plots and the diagnosis are there; ``make notebooks`` runs the same with vectors."""
    from nbclient import NotebookClient

    for name in ("RAG_KIT_CHAT_MODEL", "RAG_KIT_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("RAG_KIT_EMBEDDING_MODEL", "none")
    notebook = nbformat.read(WHICH, as_version=4)
    NotebookClient(notebook, timeout=500, resources={"metadata": {"path": str(ROOT)}}).execute()
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [text for cell in cells for text in runner.missing_outputs(cell)] == []
    assert not any(output.get("name") == "stderr" for cell in cells for output in cell.outputs)

    rows = _rows(cells[5], "Scores")
    pipelines = ["bm25", "rm3", "words + letters"]
    assert [row[1] for row in rows if row[0] == "map@4"] == pipelines
    means = {(row[0], row[1]): float(row[2]) for row in rows}
    assert len(means) == 15 and all(0 < mean <= 1 for mean in means.values())
    assert means["map@4", "bm25"] == pytest.approx(0.826, abs=0.002)
    images = [
        base64.b64decode(out.data["image/png"])
        for out in cells[6].outputs
        if "image/png" in out.get("data", {})
    ]
    assert len(images) == 3
    for image in images:
        width, height = struct.unpack(">II", image[16:24])
        assert width > 500 and height > 300 and len(image) > 8_000  # an empty one is a third of that

    shown = "".join(output.get("text", "") for output in cells[8].outputs)
    counts = re.search(r"\{(.*?)\} (\d+)", shown)
    assert counts is not None
    diagnosed = dict(re.findall(r"'(\w+)': (\d+)", counts[1]))
    assert sum(map(int, diagnosed.values())) + int(counts[2]) == 45
    assert diagnosed["right"] == "25" and diagnosed["retrieval"] == "4"


def _rows(cell: nbformat.NotebookNode, caption: str) -> list[list[str]]:
    """The cells of the HTML table of a caption."""
    page = "".join(output.get("data", {}).get("text/html", "") for output in cell.outputs)
    table = next(part for part in page.split("<table>") if f">{caption}</caption>" in part).split("</table>")[
        0
    ]
    found = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in table.split("<tr>")[2:]]
    return [[html.unescape(re.sub(r"<[^>]+>", "", text)).strip() for text in row] for row in found]
