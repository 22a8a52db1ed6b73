"""Text to SQL: a model writes a statement, the database runs it, and on an error the model writes another."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator
from dataclasses import replace
from datetime import date
from functools import partial
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig

from rag_kit.concurrency import check_seconds, run_in_thread
from rag_kit.concurrency.steps import adrive, drive
from rag_kit.errors import ConfigurationError, InvalidInputError, StatementError
from rag_kit.models import astructured_call, atext_call, structured_call, text_call
from rag_kit.models.chat import is_extractive
from rag_kit.prompts import LANGUAGES, load_prompt, render_passages
from rag_kit.prompts.tags import Markup, escape_tags
from rag_kit.query_construction.sql.database import open_database
from rag_kit.query_construction.sql.result import Limits, SqlResult
from rag_kit.retrieval.base import check_count
from rag_kit.text import check_question, detect_language

MAX_PASSAGE_CHARS = 20_000
_NO_ROWS = {"en": "No row matches.", "zh": "没有符合条件的行。"}

#: One call of the model or the database: the blocking function, and the asynchronous one.
_Step = tuple[Callable[[RunnableConfig], Any], Callable[[RunnableConfig], Any]]


class TextToSql(Runnable[str, SqlResult]):
    """Answer questions from a database: a model writes one SELECT statement, which runs under guards.

    SQLite: a connection of its own, opened read-only, whose authorizer permits these tables and a list of functions.
    PostgreSQL: the statement is parsed, checked and written anew, and runs in a read-only transaction. Both bound time
    and size. What a question, a value or a model says cannot change that.

    Args:
        llm: A language model.
        database: An ``SQLDatabase`` of langchain-community, a SQLAlchemy engine or URL; SQLite or PostgreSQL.
        tables: The tables and views that may be read; ``None``: those of the ``SQLDatabase``, else all.
        sample_rows: How many rows of each table the model sees. They and the schema are read once, now; make a new
            object when the tables have changed.
        max_rows: Most rows to fetch.
        max_cell_chars: Most characters of one cell; longer ones are cut.
        timeout: Seconds that one statement may take.
        max_repairs: How often the model may write a new statement after an error.
        answer: Whether the model also puts the rows into words.
        language: ``"en"`` or ``"zh"`` for the prompts; ``"auto"`` goes by the question.

    Raises:
        InvalidInputError: For arguments that are not allowed.
        ConfigurationError: The model is ``extractive``, which is no language model; or the database cannot be reached.
        MissingExtraError: For PostgreSQL, where sqlglot is not installed (extra ``sql``).
        StatementError: On call: each statement was refused or failed.
        ModelError: On call: the model could not be reached or gave no usable answer.
    """

    def __init__(
        self,
        llm: Runnable[Any, Any],
        database: Any,
        *,
        tables: Collection[str] | None = None,
        sample_rows: int = 3,
        max_rows: int = 100,
        max_cell_chars: int = 1_000,
        timeout: float = 5.0,
        max_repairs: int = 2,
        answer: bool = False,
        language: str = "auto",
    ) -> None:
        if is_extractive(llm):
            raise ConfigurationError(
                "Text to SQL needs a language model, and 'extractive' is none: give e.g. chat_model('openai:gpt-5.5')."
            )
        if not isinstance(llm, Runnable):
            raise InvalidInputError(f"llm is a {type(llm).__name__}; give a LangChain chat model.")
        if language not in ("auto", *LANGUAGES):
            raise InvalidInputError(f"language is {language!r}; allowed: auto, {', '.join(LANGUAGES)}.")
        for name, value in {"sample_rows": sample_rows, "max_repairs": max_repairs}.items():
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise InvalidInputError(f"{name} is {value!r}; give a whole number of 0 or more.")
        seconds = check_seconds("timeout", timeout)
        if seconds is None:
            raise InvalidInputError("timeout is None; give the seconds that one statement may take.")
        chars = check_count("max_cell_chars", max_cell_chars)
        self.limits = Limits(check_count("max_rows", max_rows), chars, seconds)
        self.llm = llm
        self.max_repairs = max_repairs
        self.answer = answer
        self.language = language
        self.database, self.schema = open_database(database, tables, sample_rows, seconds)
        prompts = [(name, code) for name in ("sql_query", "sql_answer") for code in LANGUAGES]
        self._prompts = {(name, code): load_prompt(name, language=code) for name, code in prompts}

    def invoke(self, input: str, config: RunnableConfig | None = None, **kwargs: Any) -> SqlResult:
        """Answer one question."""
        return self._call_with_config(self._answer, input, config, run_type="chain", **kwargs)

    async def ainvoke(self, input: str, config: RunnableConfig | None = None, **kwargs: Any) -> SqlResult:
        """As ``invoke``, without blocking the event loop; statements run on a thread."""
        return await self._acall_with_config(self._aanswer, input, config, run_type="chain", **kwargs)

    def _answer(self, question: str, run_manager: Any, config: RunnableConfig) -> SqlResult:
        return drive(self._steps(question), lambda step: step[0](config))

    async def _aanswer(self, question: str, run_manager: Any, config: RunnableConfig) -> SqlResult:
        return await adrive(self._steps(question), lambda step: step[1](config))

    def _steps(self, question: str) -> Generator[_Step, Any, SqlResult]:
        check_question(question)
        language = detect_language(question) if self.language == "auto" else self.language
        values = {
            "question": question,
            "dialect": self.database.dialect,
            "schema": self.schema,
            "max_rows": str(self.limits.rows),
            "today": date.today().isoformat(),
        }
        failed: list[tuple[str, str]] = []
        while True:
            values["attempts"] = Markup("\n".join(_block(*each) for each in failed))
            written = yield self._call(structured_call, astructured_call, ("sql_query", language), values)
            details: Any = {"question": question, "reason": written.reason, "attempts": tuple(failed)}
            if not written.statement:
                return SqlResult("", **details)
            result = yield self._execute(written.statement)
            if isinstance(result, SqlResult):
                break
            failed.append((written.statement, str(result)))
            if len(failed) > self.max_repairs:
                last = f"{result} (the last of {len(failed)} statements, see max_repairs: {written.statement:.300})"
                raise StatementError(last, written.statement, refused=result.refused) from result
        result = replace(result, **details)
        if not self.answer:
            return result
        if not result.rows:
            return replace(result, answer=_NO_ROWS[language])
        passages = render_passages(result.documents, max_chars=MAX_PASSAGE_CHARS)
        values = {"question": question, "statement": result.statement, "passages": passages}
        text = yield self._call(text_call, atext_call, ("sql_answer", language), values)
        return replace(result, answer=text)

    def _call(
        self,
        call: Callable[..., Any],
        acall: Callable[..., Any],
        prompt: tuple[str, str],
        values: dict[str, str],
    ) -> _Step:
        """A call of the model with the prompt of this name and language."""
        given = (self.llm, self._prompts[prompt], values)
        return (lambda config: call(*given, config=config)), (lambda config: acall(*given, config=config))

    def _execute(self, statement: str) -> _Step:
        """A call of the database, which returns an error instead of raising it, for the repair."""

        def run() -> SqlResult | StatementError:
            try:
                return self.database.run(statement, self.limits)
            except StatementError as error:
                return error

        return (lambda config: run()), (lambda config: run_in_thread(run))


def sql_query(
    question: str,
    database: Any,
    llm: Runnable[Any, Any],
    *,
    config: RunnableConfig | None = None,
    **settings: Any,
) -> SqlResult:
    """Answer one question from a database; ``TextToSql`` reads the schema once for many.

    Args:
        question: The question.
        database: An ``SQLDatabase``, a SQLAlchemy engine or URL; SQLite or PostgreSQL.
        llm: A language model.
        config: LangChain's config; all of it reaches the model.
        **settings: Any further argument of ``TextToSql``: ``tables``, ``max_rows``, ``timeout``, ``answer``...

    Returns:
        Statement, columns and rows, the rows as documents, and the answer if ``answer=True``.

    Raises:
        RagKitError: As ``TextToSql``.

    Example:
        >>> import sqlite3, tempfile
        >>> from langchain_core.language_models import FakeListChatModel
        >>> file = tempfile.mkdtemp() + "/shop.db"
        >>> with sqlite3.connect(file) as made:
        ...     _ = made.executescript("CREATE TABLE item (name TEXT, price REAL); INSERT INTO item VALUES ('pen', 2)")
        >>> model = FakeListChatModel(responses=['{"reason": "Its price.", "statement": "SELECT price FROM item"}'])
        >>> sql_query("What does a pen cost?", f"sqlite:///{file}", model).rows
        ((2.0,),)
    """
    return TextToSql(llm, database, **settings).invoke(question, config)


async def asql_query(
    question: str,
    database: Any,
    llm: Runnable[Any, Any],
    *,
    config: RunnableConfig | None = None,
    **settings: Any,
) -> SqlResult:
    """As ``sql_query``, without blocking the event loop."""
    made = await run_in_thread(partial(TextToSql, llm, database, **settings))
    return await made.ainvoke(question, config)


def _block(statement: str, error: str) -> str:
    return f"<statement>{escape_tags(statement)}</statement>\n<error>{escape_tags(error)}</error>"
