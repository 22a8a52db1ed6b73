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
from rag_kit.query_construction.cypher.checking import checked_statement
from rag_kit.query_construction.statements.result import MAX_COLUMNS, Limits, QueryResult, cut_cell

_CHILD = Path(__file__).with_name("child.py")
_SAMPLE_CHARS = 100
_MOST_TABLES = 500
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
        """Run one statement.

        Raises:
            StatementError: It was refused, or it failed.
        """
        checked = checked_statement(statement)
        [result] = self._results([checked], limits._replace(rows=limits.rows + 1), statement)
        rows = [tuple(cut_cell(cell, limits.chars) for cell in row) for row in result["rows"]]
        return QueryResult(
            checked,
            tuple(result["columns"]),
            tuple(rows[: limits.rows]),
            len(rows) > limits.rows,
            kind="cypher",
        )

    def described(self, sample_rows: int, seconds: float) -> str:
        """Node and relationship tables with their properties, and a few of their values.

        Raises:
            ConfigurationError: They cannot be read.
        """
        limits = Limits(_MOST_TABLES, _SAMPLE_CHARS, seconds)
        try:
            tables = self._results(["CALL show_tables() RETURN name, type ORDER BY type, name"], limits)[0][
                "rows"
            ]
            calls = [f"CALL table_info({_quoted(name)}) RETURN name, type" for name, _ in tables]
            calls += [
                f"CALL show_connection({_quoted(name)}) RETURN *" for name, kind in tables if kind == "REL"
            ]
            found = iter(self._results(calls, limits))
            fields = [next(found)["rows"] for _ in tables]
            ends = {name: next(found)["rows"] for name, kind in tables if kind == "REL"}
            samples = self._results([_sample(name, kind, sample_rows) for name, kind in tables], limits)
        except StatementError as error:
            raise ConfigurationError(f"The graph database cannot be read: {error}") from error
        texts = []
        for (name, kind), properties, sample in zip(tables, fields, samples, strict=True):
            listed = ", ".join(f"{field} {type_}" for field, type_ in properties)
            patterns = [
                f"(:{one})-[:{name} {{{listed}}}]->(:{other})" for one, other, *_ in ends.get(name, ())
            ]
            lines = patterns or [f"(:{name} {{{listed}}})" if kind == "NODE" else f"{kind} {name}"]
            texts.append("\n".join([*lines, *(" | ".join(map(str, row)) for row in sample["rows"])]))
        return "\n\n".join(texts)

    def _results(self, statements: Sequence[str], limits: Limits, shown: str = "") -> list[dict[str, Any]]:
        """Columns and rows of each statement; `shown` is what the model wrote."""
        request = {"file": self._file, "statements": statements, "columns": MAX_COLUMNS, **limits._asdict()}
        try:
            done = subprocess.run(
                [sys.executable, "-P", str(_CHILD)],
                input=json.dumps(request).encode("ascii"),
                capture_output=True,
                env=child_environment(),
                timeout=limits.seconds + _START_SECONDS,
            )
        except subprocess.TimeoutExpired:
            raise StatementError(_too_long(limits), shown) from None
        try:
            answer = json.loads(done.stdout)
        except ValueError:
            late = done.returncode == -signal.SIGALRM
            said = _too_long(limits) if late else "The statement brought the database down"
            raise StatementError(said, shown) from None
        if "error" in answer:
            error = answer["error"].strip()
            raise StatementError(_too_long(limits) if error == "Interrupted." else error, shown)
        results: list[dict[str, Any]] = answer["results"]
        return results


def check_installed() -> None:
    """Raise ``MissingExtraError`` where Ladybug is not installed, ``ConfigurationError`` on Windows."""
    if sys.platform == "win32":
        raise ConfigurationError("Text to Cypher needs Linux or macOS: Windows bounds no process as they do.")
    if find_spec("ladybug") is None:
        raise MissingExtraError("graph", "A graph database")


def _too_long(limits: Limits) -> str:
    return f"The statement took longer than {limits.seconds:g} s"


def _quoted(name: str) -> str:
    escaped = name.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _sample(name: str, kind: str, rows: int) -> str:
    label = f"`{name}`"
    pattern = f"(a:{label}) RETURN a" if kind == "NODE" else f"(a)-[r:{label}]->(b) RETURN a, r, b"
    return f"MATCH {pattern} LIMIT {rows}"
