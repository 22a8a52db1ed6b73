"""The process that runs statements on a graph database: opens the file, gives up its rights, answers, ends.

Run as a file, so that it imports little but Ladybug. In: ``{"file", "statements", "rows", "chars", "columns",
"seconds"}`` as JSON on standard input. Out: ``{"results": [{"columns", "rows"}]}`` or ``{"error"}``. Whatever a
statement does, this process opens no other file and no connection, writes nothing, and has little memory and time.
"""

from __future__ import annotations

import json
import math
import resource
import signal
import sys
from typing import Any

from rag_kit.indexing.readers.limits import limit_memory

_MEMORY = 1 << 30  # bytes beside the address space that Ladybug reserves
_POOL = 1 << 28  # bytes of Ladybug's buffer
_GRACE = 0.5  # seconds after the time limit: Ladybug interrupts most statements itself


def main() -> None:
    """Answer one request."""
    request = json.load(sys.stdin)
    answer: dict[str, Any]
    try:
        answer = {"results": _run_statements(request)}
    except Exception as error:  # noqa: BLE001 - whatever fails is the answer
        answer = {"error": str(error) or "out of memory"}
    json.dump(answer, sys.stdout)


def _run_statements(request: dict[str, Any]) -> list[dict[str, Any]]:
    """Open the database, give up the rights of the process, then run the statements; return the rows of each."""
    import ladybug

    with open(request["file"], "rb") as file:
        size = file.seek(0, 2)
    # Ladybug reserves addresses, which take no memory: a power of two, here at least 1 GB (1 << 30), and more than
    # four times the size of the file
    reserved = 1 << max(30, (4 * size).bit_length())
    limit_memory(reserved + _MEMORY)
    options: Any = {"buffer_pool_size": _POOL, "max_num_threads": 1, "max_db_size": reserved}
    database = ladybug.Database(request["file"], read_only=True, **options)
    connection = ladybug.Connection(database, num_threads=1)
    connection.set_query_timeout(int(request["seconds"] * 1000) + 1)  # milliseconds
    # from now on the process can open no other file or connection; the database stays open
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))
    signal.setitimer(signal.ITIMER_REAL, request["seconds"] + _GRACE)  # its signal ends the process
    return [_read_rows(connection.execute(statement), request) for statement in request["statements"]]


def _read_rows(result: Any, request: dict[str, Any]) -> dict[str, Any]:
    """Read columns and rows of a result as plain JSON, as many rows as the request allows."""
    if isinstance(result, list):
        raise RuntimeError("More than one statement; write one.")
    columns = result.get_column_names()
    if len(columns) > request["columns"]:
        raise RuntimeError(f"There are {len(columns)} columns; return at most {request['columns']}.")
    rows: list[list[Any]] = []
    while result.has_next() and len(rows) < request["rows"]:
        rows.append([_cell_value(cell, request["chars"]) for cell in result.get_next()])
    return {"columns": columns, "rows": rows}


def _cell_value(cell: Any, chars: int) -> Any:
    """Return a cell as plain JSON: a node or a list as a JSON text, cut as any other text."""
    if cell is None or isinstance(cell, (bool, int)) or (isinstance(cell, float) and math.isfinite(cell)):
        return cell
    if isinstance(cell, (dict, list)):
        cell = json.dumps(_plain(cell), ensure_ascii=False, default=str)
    return str(cell)[: chars + 1]


def _plain(cell: Any) -> Any:
    """Copy a node or relationship without Ladybug's own fields."""
    if isinstance(cell, dict):
        return {key: _plain(value) for key, value in cell.items() if key not in ("_ID", "_SRC", "_DST")}
    return [_plain(item) for item in cell] if isinstance(cell, list) else cell


if __name__ == "__main__":
    main()
