"""``make notebooks``: execute every notebook from top to bottom, and compare with the outputs it is committed with.

Each runs in an empty folder, without a key, with the embedded models (no vectors: MiniLM is not installed everywhere).
With ``--write`` the outputs are written into the files. Without, a cell that raises, an output that holds a path of a
machine, and one that is not what a run gives now fail the run. Pictures are only counted: their bytes depend on fonts.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbformat import NotebookNode

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
TIMEOUT = 500  # seconds for a cell

#: What a committed output must not hold -> what it is.
_FOREIGN = {
    "a path of a machine": re.compile(
        r"(?<![\w.:/])/(?:home|Users|root|tmp|var|work|opt|usr|private)/\w|\b[A-Z]:\\\\?\w"
    ),
    "an address in memory": re.compile(r"\b0x[0-9a-fA-F]{8,}"),
    "a key": re.compile(r"\bsk-[\w-]{8,}"),
}
_PICTURES = ("image/png", "image/svg+xml")


def execute(path: Path, folder: str | Path) -> NotebookNode:
    """A copy of a notebook, executed in a folder with the environment of this process.

    Raises:
        CellExecutionError: A cell raised.
    """
    notebook = nbformat.read(path, as_version=4)
    resources = {"metadata": {"path": str(folder)}}
    NotebookClient(notebook, timeout=TIMEOUT, record_timing=False, resources=resources).execute()
    return cleaned(notebook)


def cleaned(notebook: NotebookNode) -> NotebookNode:
    """The notebook without what differs between machines: versions, and the reprs that hold an address."""
    notebook.metadata["language_info"] = {"name": "python"}
    for cell in code_cells(notebook):
        cell.metadata.pop("execution", None)
        for output in cell.outputs:
            data = output.get("data", {})
            if re.fullmatch(r"<.* at 0x[0-9a-f]+>", data.get("text/plain", "")) and len(data) > 1:
                del data["text/plain"]
    return notebook


def code_cells(notebook: NotebookNode) -> list[NotebookNode]:
    """The cells that are run."""
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def texts(output: NotebookNode) -> list[str]:
    """Everything of an output that is no picture, and for each picture its type."""
    data: dict[str, Any] = output.get("data", {})
    shown = [output.get("text", "")]
    return [
        text
        for text in [*shown, *(kind if kind in _PICTURES else data[kind] for kind in sorted(data))]
        if text
    ]


def foreign(notebook: NotebookNode) -> list[str]:
    """Find what outputs must not hold: paths, addresses, keys, warnings, failures."""
    found = []
    for number, cell in enumerate(code_cells(notebook), start=1):
        for output in cell.outputs:
            if output.output_type == "error" or output.get("name") == "stderr":
                found.append(f"cell {number}: {output.output_type} {output.get('name', '')}")
            for text in texts(output):
                found += [
                    f"cell {number}: {what}: {match[0]!r}"
                    for what, pattern in _FOREIGN.items()
                    if (match := pattern.search(text))
                ]
    return found


def stale(committed: NotebookNode, fresh: NotebookNode) -> list[str]:
    """Find where the outputs of two runs differ; nothing in them may depend on time or machine."""
    found = []
    pairs = zip(code_cells(committed), code_cells(fresh), strict=True)
    for number, (old, new) in enumerate(pairs, start=1):
        before, after = (_texts_of(cell) for cell in (old, new))
        if before != after:
            first = next((pair for pair in zip(before, after, strict=False) if pair[0] != pair[1]), None)
            found.append(
                f"cell {number}: {_difference(*first) if first else f'{len(before)} and {len(after)} outputs'}"
            )
    return found


def _texts_of(cell: NotebookNode) -> list[str]:
    """The texts of a cell; what it prints is one, however many pieces the kernel sent it in."""
    found: list[str] = []
    last = None
    for output in cell.outputs:
        stream = output.get("name") if output.output_type == "stream" else None
        if stream is not None and stream == last:
            found[-1] += "".join(texts(output))
        else:
            found += texts(output)
        last = stream
    return found


def _difference(before: str, after: str) -> str:
    at = next((n for n, pair in enumerate(zip(before, after, strict=False)) if pair[0] != pair[1]), 0)
    start = max(0, at - 40)
    return f"committed ...{before[start : at + 60]!r}, now ...{after[start : at + 60]!r}"


def main() -> int:
    """Execute and compare, or execute and write."""
    parser = argparse.ArgumentParser(
        description="Execute the notebooks and compare with their committed outputs."
    )
    parser.add_argument("--write", action="store_true", help="write the outputs into the notebooks")
    parser.add_argument("names", nargs="*", help="only these, such as graphs_compared")
    arguments = parser.parse_args()
    for name in [name for name in os.environ if name.startswith("RAG_KIT_")]:
        del os.environ[name]
    os.environ["RAG_KIT_EMBEDDING_MODEL"] = "none"
    failed = 0
    for path in [path for path in NOTEBOOKS if not arguments.names or path.stem in arguments.names]:
        committed = nbformat.read(path, as_version=4)
        try:
            with tempfile.TemporaryDirectory() as folder:
                fresh = execute(path, folder)
        except CellExecutionError as error:
            problems = [f"{error.ename}: {error.evalue}", *str(error).splitlines()[1:12]]
        else:
            problems = foreign(fresh) if arguments.write else foreign(committed) + stale(committed, fresh)
            if arguments.write and not problems:
                nbformat.write(fresh, path)
        for problem in problems:
            print(f"{path.name}: {problem}")
        failed += bool(problems)
        result = "FAILED" if problems else "written" if arguments.write else "ok"
        print(f"{path.name}: {len(committed.cells)} cells, {result}")
    if failed and not arguments.write:
        print("new outputs: python scripts/run_notebooks.py --write")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
