"""A model writes a statement, the database runs it under limits, and on an error the model writes another."""

from __future__ import annotations

import tomllib
from abc import abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from itertools import chain, count, islice
from pathlib import Path
from string import ascii_lowercase, ascii_uppercase
from typing import Any, ClassVar, NamedTuple, Self

from langchain_core.documents import Document
from langchain_core.runnables import Runnable, RunnableConfig

from rag_kit.concurrency.bridge import blocking, run_in_thread
from rag_kit.concurrency.budget import check_seconds
from rag_kit.documents import PROVENANCE_KEY, with_provenance
from rag_kit.documents.identity import to_plain
from rag_kit.errors import ConfigurationError, InvalidInputError, StatementError
from rag_kit.models import astructured_call, atext_call
from rag_kit.models.model_call import is_extractive
from rag_kit.prompts import render_passages
from rag_kit.prompts.rendering import Markup, escape_tags
from rag_kit.retrieval.asking import LanguagePrompts
from rag_kit.retrieval.fields import check_count, check_model
from rag_kit.text import check_question

MAX_COLUMNS = 100
MAX_STATEMENT = 20_000
_TO_LOWER = str.maketrans(ascii_uppercase, ascii_lowercase)
# keys of the metadata by which citations and prompts say where a passage is from: a row is from its database
_PLACES = "source file title heading page slide sheet url picture"
_TAKEN_KEYS = (PROVENANCE_KEY, *_PLACES.split())
_WORDS = tomllib.loads(Path(__file__).with_name("words.toml").read_text("utf-8"))


def statement_words(database: str, *lists: str) -> frozenset[str]:
    """Return the words of some lists in ``words.toml``, such as the functions that a statement for SQLite may call."""
    return frozenset(word for name in lists for word in _WORDS[database][name].split())


class RefusalError(Exception):
    """A statement is refused; the text names what is not allowed in it."""


@contextmanager
def say_refusal(statement: str, advice: str) -> Iterator[None]:
    """Turn a `RefusalError` into the error for the model and the caller, with what to write instead."""
    try:
        yield
    except RefusalError as refusal:
        raise StatementError(f"{refusal} is not allowed. {advice}", statement, refused=True) from None


class Limits(NamedTuple):
    """Most rows to fetch, most characters of a cell, most seconds of a statement."""

    rows: int
    chars: int
    seconds: float


@dataclass(frozen=True)
class QueryResult:
    """A question, the statement that a model wrote for it, and the rows that the database returned.

    Attributes:
        statement: The statement as it ran; empty where the model found that the tables cannot answer.
        columns: Names of the columns; a second ``name`` is ``name_2``.
        rows: One tuple a row: numbers, truth values, ``None`` and texts.
        truncated: There are more rows than ``max_rows``.
        question: The question as it was asked.
        reason: What the model says about its statement.
        attempts: Statements that were refused or failed before, each with the error.
        answer: The answer in words, whose ``[n]`` cites row n; ``None`` where none was asked for.
        kind: ``"sql"`` or ``"cypher"``.
    """

    statement: str
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[Any, ...], ...] = ()
    truncated: bool = False
    question: str = ""
    reason: str = ""
    attempts: tuple[tuple[str, str], ...] = ()
    answer: str | None = None
    kind: str = "sql"

    @classmethod
    def from_rows(cls, statement: str, columns: Iterable[Any], rows: Iterable[Any], limits: Limits) -> Self:
        """Make a result of the first rows, long cells cut; one row more is read, to know if there are more."""
        read = [tuple(cut_cell(cell, limits.chars) for cell in row) for row in islice(rows, limits.rows + 1)]
        names = tuple(_free_names(str(name)[: limits.chars] for name in columns))
        return cls(statement, names, tuple(read[: limits.rows]), len(read) > limits.rows)

    @property
    def documents(self) -> list[Document]:
        """Make a document of each row: its columns as text and as metadata; a column ``source`` is ``source_2`` there.

        Example:
            >>> result = QueryResult('SELECT count(*) AS "Tracks" FROM t', columns=("Tracks",), rows=((3,),))
            >>> result.documents[0].page_content
            'Tracks: 3'
        """
        notes = [f"{self.kind}: {self.statement}"]
        if self.truncated:
            notes.append(f"{self.kind}: only the first {len(self.rows)} rows were fetched")
        stage: dict[str, Any] = {"stage": self.kind, "retriever": self.kind, "query": self.question}
        stage |= {"score": None, "statement": self.statement, "notes": notes}
        return [
            with_provenance(self._row_document(row), rank=number, row=number, **stage)
            for number, row in enumerate(self.rows, start=1)
        ]

    def _row_document(self, row: tuple[Any, ...]) -> Document:
        """Make a document of a row: a line and a metadata field for each column, renamed if the kit uses its name."""
        lines: list[str] = []
        metadata: dict[str, Any] = {"source": self.kind}
        for name, key, cell in zip(self.columns, _free_names(self.columns, _TAKEN_KEYS), row, strict=True):
            lines.append(f"{name}: {'NULL' if cell is None else cell}")
            metadata[key] = float(cell) if isinstance(cell, Decimal) else to_plain(cell)
        return Document(page_content="\n".join(lines), metadata=metadata)


def _free_names(names: Iterable[str], taken: Iterable[str] = ()) -> Iterator[str]:
    """Yield names; one that is taken, or was yielded before, gets a number: ``name_2``."""
    used = set(taken)
    for name in names:
        candidates = chain([name], (f"{name}_{number}" for number in count(2)))
        free = next(each for each in candidates if each not in used)
        used.add(free)
        yield free


def fold_name(name: str) -> str:
    """Fold a name as databases compare names: only A to Z equal a to z, so that ``Été`` is another table."""
    return name.translate(_TO_LOWER)


def cut_cell(cell: Any, chars: int) -> Any:
    """Return a number, a truth value or ``None`` as it is, any other cell as a text of at most `chars` characters."""
    if cell is None or isinstance(cell, (bool, int, float)):
        return cell
    if isinstance(cell, (bytes, memoryview)):
        return f"{len(cell)} bytes"
    text = str(cell)
    if len(text) > chars:
        return text[:chars] + "…"
    return cell if isinstance(cell, Decimal) else text


_MAX_PASSAGE_CHARS = 20_000
_NO_ROWS = {"en": "No row matches.", "zh": "没有符合条件的行。"}


class TextToStatement(Runnable[str, QueryResult]):
    """Answer questions from a database: a model writes one statement, which runs under guards.

    Whatever a question, a value or the model says, a statement can only read: the database refuses all else.

    Args:
        llm: A language model.
        database: The database, in a form that the subclass takes.
        sample_rows: Rows of each table that the model sees; read once, with the schema: for a new schema, a new object.
        max_rows: Most rows to fetch.
        max_cell_chars: Most characters of one cell; longer ones are cut.
        timeout: Seconds that one statement may take.
        max_repairs: How often the model may write a new statement after an error.
        answer: Whether the model also puts the rows into words.
        language: ``"en"`` or ``"zh"`` for the prompts; ``"auto"`` goes by the question.
        **opening: Further arguments of the subclass.

    Raises:
        InvalidInputError: An argument is not allowed.
        ConfigurationError: The model is ``extractive`` (not a language model), or the database cannot be reached.
        StatementError, ModelError: On call: each statement was refused or failed, or the model gave no usable answer.
    """

    kind: ClassVar[str]
    task: ClassVar[str]
    prompt: ClassVar[str]

    def __init__(
        self,
        llm: Runnable[Any, Any],
        database: Any,
        *,
        sample_rows: int = 3,
        max_rows: int = 100,
        max_cell_chars: int = 1_000,
        timeout: float = 5.0,
        max_repairs: int = 2,
        answer: bool = False,
        language: str = "auto",
        **opening: Any,
    ) -> None:
        if is_extractive(llm):
            raise ConfigurationError(
                f"{self.task} needs a language model, and 'extractive' is none: give e.g. "
                "chat_model('openai:gpt-5.5')."
            )
        self.llm = check_model(llm)
        for name, value in {"sample_rows": sample_rows, "max_repairs": max_repairs}.items():
            if value != 0:
                check_count(name, value)
        seconds = check_seconds("timeout", timeout)
        if seconds is None:
            raise InvalidInputError("timeout is None; give the seconds that one statement may take.")
        chars = check_count("max_cell_chars", max_cell_chars)
        self.limits = Limits(check_count("max_rows", max_rows), chars, seconds)
        self.max_repairs = max_repairs
        self.answer = answer
        self._prompts = LanguagePrompts(self.prompt, None, ("question",), language)
        self._answers = LanguagePrompts("answer_from_rows", None, ("question",), language)
        self.database, self.schema = self._open(database, sample_rows, seconds, **opening)

    @abstractmethod
    def _open(self, database: Any, sample_rows: int, seconds: float) -> tuple[Any, str]:
        """Open the database, and describe it for the model."""

    def invoke(self, input: str, config: RunnableConfig | None = None, **kwargs: Any) -> QueryResult:
        """Answer one question."""
        return self._call_with_config(blocking(self._ask, "ask"), input, config, run_type="chain", **kwargs)

    async def ainvoke(self, input: str, config: RunnableConfig | None = None, **kwargs: Any) -> QueryResult:
        """Answer one question without blocking the event loop; statements run on a thread."""
        return await self._acall_with_config(self._ask, input, config, run_type="chain", **kwargs)

    async def _ask(self, question: str, run_manager: Any, config: RunnableConfig) -> QueryResult:
        """Let the model write statements until one runs, at most `max_repairs` after the first, and run it."""
        check_question(question)
        prompt = self._prompts.choose(question)
        values = {
            "question": question,
            "dialect": self.database.dialect,
            "schema": self.schema,
            "max_rows": str(self.limits.rows),
            "today": date.today().isoformat(),
        }
        attempts: list[tuple[str, str]] = []
        while True:
            earlier = [
                f"<statement>{escape_tags(statement)}</statement>\n<error>{escape_tags(error)}</error>"
                for statement, error in attempts
            ]
            values["attempts"] = Markup("\n".join(earlier))
            reply = await astructured_call(self.llm, prompt, values, config=config)
            statement, details = reply.statement, {"question": question, "reason": reply.reason}
            details |= {"kind": self.kind, "attempts": tuple(attempts)}
            if not statement:  # the model found that the database cannot answer
                return QueryResult("", **details)
            try:
                result: QueryResult = await run_in_thread(self.database.run, statement, self.limits)
                break
            except StatementError as error:
                attempts.append((statement, str(error)))
                if len(attempts) > self.max_repairs:
                    last = f"the last of {len(attempts)} statements, see max_repairs: {statement:.300}"
                    raise StatementError(f"{error} ({last})", statement, refused=error.refused) from error
        result = replace(result, **details)
        return replace(result, answer=await self._answer(result, config)) if self.answer else result

    async def _answer(self, result: QueryResult, config: RunnableConfig) -> str:
        """Answer in words from the rows."""
        prompt = self._answers.choose(result.question)
        if not result.rows:
            return _NO_ROWS[prompt.metadata["language"]]
        passages = render_passages(result.documents, max_chars=_MAX_PASSAGE_CHARS)
        values = {"question": result.question, "statement": result.statement, "passages": passages}
        return await atext_call(self.llm, prompt, values, config=config)
