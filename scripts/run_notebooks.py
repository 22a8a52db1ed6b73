"""``make notebooks``: execute every notebook from top to bottom in a copy; a cell that raises fails the run.

A line ``# -> text`` in a cell says what its output must hold, ``# => 3 image/png`` how many outputs of a type there
must be at least.
"""

from __future__ import annotations

import re
import sys
import time
from collections import Counter
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbformat import NotebookNode

ROOT = Path(__file__).resolve().parent.parent
EXPECTED = "# -> "
COUNTED = re.compile(r"^# => (\d+) (\w+/[\w.+-]+)$", re.MULTILINE)


def missing_outputs(cell: NotebookNode) -> list[str]:
    """What a cell promises and its outputs do not hold: texts, and outputs of a type such as ``image/png``."""
    promised = [line.removeprefix(EXPECTED) for line in cell.source.splitlines() if line.startswith(EXPECTED)]
    shown = ""
    types: Counter[str] = Counter()
    for output in cell.get("outputs", []):
        data = output.get("data", {})
        shown += "\n".join([output.get("text", ""), data.get("text/plain", ""), data.get("text/html", "")])
        types.update(kind for kind, content in data.items() if content)
    missing = [text for text in promised if text not in shown]
    for least, kind in COUNTED.findall(cell.source):
        if types[kind] < int(least):
            missing.append(f"{least} {kind}")
    return missing


def main() -> int:
    """Execute the notebooks; the files themselves stay as committed, without outputs."""
    failed = 0
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        if any(cell.get("outputs") for cell in notebook.cells):
            print(f"{path.name}: holds outputs; commit it without them")
            failed += 1
            continue
        start = time.perf_counter()
        try:
            NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(ROOT)}}).execute()
        except CellExecutionError as error:
            print(f"{path.name}: {error}")
            failed += 1
        else:
            code = [cell for cell in notebook.cells if cell.cell_type == "code"]
            for text in [text for cell in code for text in missing_outputs(cell)]:
                print(f"{path.name}: no output holds {text!r}")
                failed += 1
            print(f"{path.name}: {len(notebook.cells)} cells, {time.perf_counter() - start:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
