"""A model writes a statement, the database runs it, and on an error the model writes another."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from datetime import date
from typing import Any, ClassVar

from langchain_core.runnables import Runnable, RunnableConfig

from rag_kit.concurrency.bridge import blocking, run_in_thread
from rag_kit.concurrency.budget import check_seconds
from rag_kit.errors import ConfigurationError, InvalidInputError, StatementError
from rag_kit.models import astructured_call, atext_call
from rag_kit.models.model_call import is_extractive
from rag_kit.prompts import render_passages
from rag_kit.prompts.rendering import Markup, escape_tags
from rag_kit.query_construction.statements.result import Limits, QueryResult
from rag_kit.retrieval.asking import LanguagePrompts
from rag_kit.retrieval.fields import check_count, check_model
from rag_kit.text import check_question

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
            values["attempts"] = Markup("\n".join(
                f"<statement>{escape_tags(statement)}</statement>\n<error>{escape_tags(error)}</error>"
                for statement, error in attempts
            ))  # fmt: skip
            reply = await astructured_call(self.llm, prompt, values, config=config)
            details: Any = {"question": question, "reason": reply.reason, "kind": self.kind}
            details["attempts"] = tuple(attempts)
            if not (statement := reply.statement):
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
