"""A graph database in a file: its description for the model, and statements in a process of their own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rag_kit.errors import ConfigurationError, InvalidInputError, MissingExtraError, StatementError
from rag_kit.indexing.readers.process import child_environment
from rag_kit.query_construction.cypher.checking import rewrite_statement
from rag_kit.query_construction.statements.result import MAX_COLUMNS, Limits, QueryResult

_CHILD = Path(__file__).with_name("child.py")
_SAMPLE_CHARS = 100
_MAX_ROWS = 500
_TABLES = "CALL show_tables() RETURN name, type ORDER BY type, name"
_START_SECONDS = 30.0


class GraphDatabase:
    """Runs statements on a Ladybug database in a file, which is never written to.

    Each runs in a process of its own, which cannot open other files or connections, and whose time and memory
    the operating system bounds: a statement that Ladybug cannot interrupt, or that brings it down, ends there.

    Raises:
        InvalidInputError: There is no such file.
        MissingExtraError: Ladybug is not installed.
        ConfigurationError: The file is no database that can be read.
    """

    dialect = "Cypher (Ladybug)"

    def __init__(self, file: str | os.PathLike[str]) -> None:
        if not isinstance(file, (str, os.PathLike)):
            raise InvalidInputError(
                f"database is a {type(file).__name__}; give the path of a graph database."
            )
        check_installed()
        self._file = os.path.abspath(file)
        if not os.path.isfile(self._file):
            raise InvalidInputError(
                f"There is no graph database {os.fspath(file)!r}; graph_database() makes one."
            )

    def run(self, statement: str, limits: Limits) -> QueryResult:
        """Run one statement; raises ``StatementError`` where it was refused, or failed."""
        rewritten = rewrite_statement(statement)
        [result] = self._run_in_child([rewritten], limits._replace(rows=limits.rows + 1), statement)
        return QueryResult.from_rows(rewritten, result["columns"], result["rows"], limits)

    def describe(self, sample_rows: int, seconds: float) -> str:
        """Node and relationship tables with their properties, and a few of their values."""
        limits = Limits(_MAX_ROWS, _SAMPLE_CHARS, seconds)
        try:
            [tables] = self._run_in_child([_TABLES], limits)
            queries = [
                query
                for name, kind in tables["rows"]
                for query in _description_queries(name, kind, sample_rows)
            ]
            answers = (result["rows"] for result in self._run_in_child(queries, limits))
        except StatementError as error:
            raise ConfigurationError(f"The graph database cannot be read: {error}") from error
        texts = []
        for name, kind in tables["rows"]:
            fields = ", ".join(f"{field} {kind_}" for field, kind_ in next(answers))
            sample = [" | ".join(map(str, row)) for row in next(answers)]
            ends = next(answers) if kind == "REL" else ()
            lines = [f"(:{start})-[:{name} {{{fields}}}]->(:{end})" for start, end, *_ in ends]
            texts.append("\n".join([*(lines or [f"(:{name} {{{fields}}})"]), *sample]))
        return "\n\n".join(texts)

    def _run_in_child(
        self, statements: Sequence[str], limits: Limits, model_statement: str = ""
    ) -> list[dict[str, Any]]:
        """Columns and rows of each statement; errors name the statement as the model wrote it."""
        timed_out = f"The statement took longer than {limits.seconds:g} s"
        request = {"file": self._file, "statements": statements, "columns": MAX_COLUMNS, **limits._asdict()}
        try:
            process = subprocess.run(
                [sys.executable, "-P", str(_CHILD)],
                input=json.dumps(request).encode("ascii"),
                capture_output=True,
                env=child_environment(),
                timeout=limits.seconds + _START_SECONDS,
            )
        except subprocess.TimeoutExpired:
            raise StatementError(timed_out, model_statement) from None
        try:
            answer = json.loads(process.stdout)
        except ValueError:
            down = process.returncode != -signal.SIGALRM
            raise StatementError(
                "The statement brought the database down" if down else timed_out, model_statement
            ) from None
        if "error" in answer:
            error = answer["error"].strip()
            raise StatementError(timed_out if error == "Interrupted." else error, model_statement)
        results: list[dict[str, Any]] = answer["results"]
        return results


def check_installed() -> None:
    """Raise ``MissingExtraError`` where Ladybug is not installed, ``ConfigurationError`` on Windows."""
    if sys.platform == "win32":
        raise ConfigurationError("Text to Cypher needs Linux or macOS: Windows bounds no process as they do.")
    if find_spec("ladybug") is None:
        raise MissingExtraError("graph", "A graph database")


def _description_queries(name: str, kind: str, rows: int) -> list[str]:
    """Queries for the properties of a table, some of its rows and, of a relationship, the tables it connects."""
    text, label = json.dumps(name, ensure_ascii=False), f"`{name}`"
    info = f"CALL table_info({text}) RETURN name, type"
    if kind == "NODE":
        return [info, f"MATCH (a:{label}) RETURN a LIMIT {rows}"]
    sample = f"MATCH (a)-[r:{label}]->(b) RETURN a, r, b LIMIT {rows}"
    return [info, sample, f"CALL show_connection({text}) RETURN *"]
