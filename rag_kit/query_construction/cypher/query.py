"""Text to Cypher: a model writes one statement for a question, which reads a graph database in a process of its own."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig

from rag_kit.concurrency.bridge import blocking, run_in_thread
from rag_kit.errors import ConfigurationError, InvalidInputError, MissingExtraError, StatementError
from rag_kit.indexing.readers.process import child_environment
from rag_kit.query_construction.statements.asking import (
    MAX_COLUMNS,
    MAX_STATEMENT,
    Limits,
    QueryResult,
    RefusalError,
    TextToStatement,
    say_refusal,
    statement_words,
)
from rag_kit.query_construction.statements.uses import StatementRetriever

_CHILD = Path(__file__).with_name("child.py")
_SAMPLE_CHARS = 100
_MAX_ROWS = 500
_TABLES = "CALL show_tables() RETURN name, type ORDER BY type, name"
_START_SECONDS = 30.0


class TextToCypher(TextToStatement):
    """Answer questions from a graph database: a model writes one Cypher statement, which runs under guards.

    The statement is checked against a list of clauses and functions, written anew, and runs on the file opened
    read-only, in a process of its own whose rights, time and memory the operating system bounds (Linux, macOS).

    Args:
        llm: A language model.
        database: File of a Ladybug database, such as one that ``graph_database`` made.
        **settings: ``sample_rows``, ``max_rows``, ``timeout``, ``answer``...: see ``TextToStatement``.

    Raises:
        MissingExtraError: Ladybug is not installed (extra ``graph``).
    """

    kind = "cypher"
    task = "Text to Cypher"
    prompt = "graph_query"

    def _open(self, database: Any, sample_rows: int, seconds: float) -> tuple[Any, str]:
        graph = GraphDatabase(database)
        return graph, graph.describe(sample_rows, seconds)


class CypherRetriever(StatementRetriever):
    """The rows of a graph database that answer a question, as documents: see ``StatementRetriever``."""

    writer = TextToCypher


async def agraph_query(
    question: str,
    database: str | os.PathLike[str],
    llm: Runnable[Any, Any],
    *,
    config: RunnableConfig | None = None,
    **settings: Any,
) -> QueryResult:
    """Answer one question from a graph database; ``TextToCypher`` reads the schema once for many.

    The arguments are those of ``sql_query``, with the file of a Ladybug database, such as ``graph_database`` makes.
    """
    query = await run_in_thread(partial(TextToCypher, llm, database, **settings))
    return await query.ainvoke(question, config)


graph_query = blocking(agraph_query, "graph_query")


class GraphDatabase:
    """Runs statements on a Ladybug database in a file, which is never written to.

    Each runs in a process of its own, which cannot open other files or connections, and whose time and memory
    the operating system bounds: a statement that Ladybug cannot interrupt, or that brings it down, ends there.
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
        one_more = limits._replace(rows=limits.rows + 1)  # to know if there are more
        [result] = self._run_in_child([rewritten], one_more, statement)
        return QueryResult.from_rows(rewritten, result["columns"], result["rows"], limits)

    def describe(self, sample_rows: int, seconds: float) -> str:
        """Describe node and relationship tables for a model: their properties, and a few rows."""
        limits = Limits(_MAX_ROWS, _SAMPLE_CHARS, seconds)
        try:
            [tables] = self._run_in_child([_TABLES], limits)
            queries = [text for table in tables["rows"] for text in _description_queries(sample_rows, *table)]
            answers = (result["rows"] for result in self._run_in_child(queries, limits))
        except StatementError as error:
            raise ConfigurationError(f"The graph database cannot be read: {error}") from error
        texts = []
        # the answers come in the order of _description_queries: properties, rows, and what a relationship connects
        for name, table_kind in tables["rows"]:
            properties = ", ".join(f"{field} {field_type}" for field, field_type in next(answers))
            sample = [" | ".join(map(str, row)) for row in next(answers)]
            patterns = [f"(:{name} {{{properties}}})"]
            if table_kind == "REL":
                ends = next(answers)
                connections = [f"(:{start})-[:{name} {{{properties}}}]->(:{end})" for start, end, *_ in ends]
                patterns = connections or patterns
            texts.append("\n".join([*patterns, *sample]))
        return "\n\n".join(texts)

    def _run_in_child(
        self, statements: Sequence[str], limits: Limits, model_statement: str = ""
    ) -> list[dict[str, Any]]:
        """Run statements in a child process; errors name the statement as the model wrote it."""
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
            is_timeout = process.returncode == -signal.SIGALRM  # the child's own timer ended it
            reason = timed_out if is_timeout else "The statement brought the database down"
            raise StatementError(reason, model_statement) from None
        if "error" in answer:
            error = answer["error"].strip()
            raise StatementError(timed_out if error == "Interrupted." else error, model_statement)
        return list(answer["results"])


def check_installed() -> None:
    """Raise ``MissingExtraError`` where Ladybug is not installed, ``ConfigurationError`` on Windows."""
    if sys.platform == "win32":
        raise ConfigurationError("Text to Cypher needs Linux or macOS: Windows bounds no process as they do.")
    if find_spec("ladybug") is None:
        raise MissingExtraError("graph", "A graph database")


def _description_queries(rows: int, name: str, kind: str) -> list[str]:
    """Make the queries that describe a table: its properties, some rows, and the nodes that a relationship connects."""
    quoted = json.dumps(name, ensure_ascii=False)
    properties = f"CALL table_info({quoted}) RETURN name, type"
    if kind == "NODE":
        return [properties, f"MATCH (a:`{name}`) RETURN a LIMIT {rows}"]
    sample = f"MATCH (a)-[r:`{name}`]->(b) RETURN a, r, b LIMIT {rows}"
    return [properties, sample, f"CALL show_connection({quoted}) RETURN *"]


_ADVICE = (
    "Write one query of MATCH, WHERE, WITH, UNWIND and RETURN, without comments and backslashes; a text with an "
    "apostrophe goes in double quotes."
)
_FIRST = ("MATCH", "OPTIONAL", "RETURN", "UNWIND", "WITH")
_KEYWORDS = statement_words("cypher", "keywords")
_REFUSED = statement_words("cypher", "refused")
FUNCTIONS = frozenset(map(str.lower, statement_words("cypher", "functions")))

_TOKEN = re.compile(
    r"""
    (?P<space>[ \t\r\n]+)
  | (?P<text>'[^'\\\0\ud800-\udfff]*'|"[^"\\\0\ud800-\udfff]*")
  | (?P<name>`[^`\0\ud800-\udfff]+`)
  | (?P<number>(?:0|[1-9][0-9]*)(?:\.[0-9]+)?)
  | (?P<word>[^\W\d]\w*)
  | (?P<mark><>|<=|>=|=~|\.\.(?!\.)|\.(?![0-9.])|/(?![/*])|[()\[\]{},:|=<>+\-*%^])
    """,
    re.VERBOSE,
)


def rewrite_statement(statement: str) -> str:
    """Quote the names of a statement, if it is one query that only reads; else raise `StatementError`."""
    with say_refusal(statement, _ADVICE):
        return _write_anew(statement)


def _write_anew(statement: str) -> str:
    """Write the statement again from its tokens; raise `RefusalError` at the first that is not allowed."""
    text = statement.strip().removesuffix(";").rstrip()
    if len(text) > MAX_STATEMENT:
        raise RefusalError(f"A statement of {len(text)} characters")
    tokens = _tokens(text)
    texts = ["", *(token for _, token, _ in tokens), ""]
    parts: list[str] = []
    open_brackets: list[str] = []
    for number, (kind, token, has_space) in enumerate(tokens, 1):
        before, after = texts[number - 1].upper(), texts[number + 1]
        if kind in ("word", "name"):
            # Person in "(a:Person)", but no value in "{name: true}"
            is_label = before == ":" and open_brackets[-1:] != ["{"]
            must_be_name = kind == "name" or before in (".", "AS") or is_label
            token = _render_word(token, after, must_be_name=must_be_name)
        elif token in ("(", "[", "{"):
            open_brackets.append(token)
        elif token in (")", "]", "}") and open_brackets:
            open_brackets.pop()
        parts.append(f" {token}" if has_space else token)
    if not parts or parts[0] not in _FIRST:
        raise RefusalError("A statement that does not begin with MATCH, UNWIND, WITH or RETURN")
    return "".join(parts)


def _tokens(text: str) -> list[tuple[str, str, bool]]:
    """Return kind and text of each token, and whether there is white space before it."""
    tokens: list[tuple[str, str, bool]] = []
    position, after_space = 0, False
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise RefusalError(f"{text[position : position + 20]!r}")
        kind, position = str(match.lastgroup), match.end()
        if kind != "space":
            previous_kind, previous, _ = tokens[-1] if tokens else ("mark", "", True)
            if not after_space and "mark" not in (kind, previous_kind):
                raise RefusalError(f"{previous + match[0]!r} without a space")
            tokens.append((kind, match[0], after_space))
        after_space = kind == "space"
    return tokens


def _render_word(token: str, after: str, *, must_be_name: bool) -> str:
    """Write a keyword in capitals, a function as it is, any other word as a name in backticks."""
    name = token.strip("`")
    # only ASCII: 'ſ'.upper() is 'S', so another letter could pass as a keyword
    upper = name.upper() if name.isascii() else ""
    if not must_be_name:
        if upper in _KEYWORDS or (upper in ("COUNT", "EXISTS") and after == "{"):
            return upper
        if upper in _REFUSED:
            raise RefusalError(f"{upper} (a name goes in backticks)")
    if after == "(":
        if upper.lower() not in FUNCTIONS:
            raise RefusalError(f"The function {name} (allowed: {', '.join(sorted(FUNCTIONS))})")
        return name
    return f"`{name}`"
