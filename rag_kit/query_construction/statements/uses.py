"""A database as a retriever, as a tool of an agent, and as a node of a graph."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, ClassVar, Literal, Self

from langchain_core.documents import Document
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from pydantic import BaseModel, Field, field_validator

from rag_kit.concurrency.bridge import blocking
from rag_kit.concurrency.steps import Step
from rag_kit.errors import InvalidInputError, RagKitError, StatementError
from rag_kit.query_construction.statements.asking import QueryResult, TextToStatement
from rag_kit.retrieval.base import RagKitRetriever
from rag_kit.retrieval.call import Call


class StatementRetriever(RagKitRetriever):
    """The rows of a database that answer a question, as documents.

    Their metadata are the row's columns; statement and row number stand in their provenance. A filter is refused with
    InvalidInputError: the statement chooses names and values of its columns, so its rows could pass any filter.

    Args:
        query: The ``TextToStatement`` that writes and runs the statement.
        k: Most rows to return; ``None``: all that ``query`` fetches (its ``max_rows``).
    """

    k_may_be_none: ClassVar[bool] = True
    writer: ClassVar[Callable[..., TextToStatement]]

    query: TextToStatement
    k: int | None = None  # type: ignore[assignment]

    @field_validator("filter")
    @classmethod
    def _filter_is_allowed(cls, value: Any) -> Any:
        return _refuse_filter(value)

    @classmethod
    def from_llm(
        cls, llm: Runnable[Any, Any], database: Any, *, k: int | None = None, **settings: Any
    ) -> Self:
        """Make the retriever from a model and a database; `settings` as those of its ``TextToStatement``."""
        return cls(query=cls.writer(llm, database, **settings), k=k)

    async def _search(self, query: str, call: Call) -> list[Document]:
        _refuse_filter(call.filter)
        ask, config = self.query, call.child(self.query.kind)
        # a step has two forms, blocking and asynchronous; the retriever runs the one that it was called in
        blocking_form, async_form = lambda _: ask.invoke(query, config), lambda _: ask.ainvoke(query, config)
        return (await Step(ask.kind, blocking_form, async_form)).documents


def _refuse_filter(filter: Any) -> None:
    """Raise `InvalidInputError` if there is a filter."""
    if filter is not None:
        raise InvalidInputError(
            "This retriever takes no filter: the statement chooses the names and values of its columns, so its rows "
            "could pass any filter. Restrict what may be read: tables=, a view, the database's role, or the filter "
            "that a graph is built with."
        )


class _Question(BaseModel):
    """The arguments of the tool."""

    question: str = Field(description="One question in plain words, complete in itself.")


def question_tool(
    answer: Callable[[str, RunnableConfig], Awaitable[tuple[str, Any]]], name: str, description: str
) -> BaseTool:
    """Make a tool that takes one question, for ``invoke`` and ``ainvoke`` alike.

    `answer` gives the text for the agent's model and the artifact. A refusal reaches it as a tool error, so that it may
    ask again; other errors end the agent's run.
    """

    async def run_tool(question: str, config: RunnableConfig) -> tuple[str, Any]:
        try:
            return await answer(question, config)
        except (StatementError, InvalidInputError) as error:
            raise ToolException(str(error)) from error

    return StructuredTool.from_function(
        func=blocking(run_tool, "run_tool"),
        coroutine=run_tool,
        name=name,
        description=description,
        args_schema=_Question,
        response_format="content_and_artifact",
        handle_tool_error=True,
    )


def statement_tool(
    query: TextToStatement,
    *,
    name: str = "query_database",
    description: str = "Answers a question from a database; gives the statement and its rows.",
) -> BaseTool:
    """Make a database a tool for ``langchain.agents.create_agent`` and other agents.

    The agent's model reads statement, rows and, with ``answer=True``, the answer; the artifact is the ``QueryResult``.
    A refusal or failure reaches it as a tool error, and it may ask again. Models choose tools by `description`.
    """

    async def answer(question: str, config: RunnableConfig) -> tuple[str, QueryResult]:
        result = await query.ainvoke(question, config)
        return _result_text(result), result

    return question_tool(answer, name, description)


def _result_text(result: QueryResult) -> str:
    """Write a result for a model: answer, statement and rows."""
    if not result.statement:
        return f"The database cannot answer: {result.reason}"
    lines = [f"[{n}] {dict(zip(result.columns, row, strict=True))}" for n, row in enumerate(result.rows, 1)]
    if result.truncated:
        lines.append("There are more rows.")
    parts = [result.answer or "", f"Statement: {result.statement}", "\n".join(lines) or "No rows."]
    return "\n\n".join(part for part in parts if part)


def statement_node(
    query: TextToStatement, *, on_error: Literal["skip", "raise"] = "skip"
) -> Runnable[Any, dict[str, Any]]:
    """Make a database a node of a LangGraph graph, such as those of ``rag_kit.graphs``.

    It reads ``search_query`` (else ``question``) from the state, puts the rows before the ``documents`` that are there,
    and writes the statement into ``notes``. With ``on_error="skip"`` a note says what failed, and the documents stay.
    """
    if on_error not in ("skip", "raise"):
        raise InvalidInputError(f"on_error is {on_error!r}; allowed: 'skip', 'raise'.")

    async def query_database(state: Mapping[str, Any], config: RunnableConfig) -> dict[str, Any]:
        question: Any = state.get("search_query") or state.get("question")
        try:
            result = await query.ainvoke(question, config)
        except RagKitError as error:
            if on_error == "raise":
                raise
            return {"notes": [f"degraded: {query.kind}: {error}"]}
        if not result.statement:
            return {"notes": [f"{result.kind}: no statement: {result.reason}"]}
        documents = [*result.documents, *(state.get("documents") or [])]
        return {"documents": documents, "notes": [f"{result.kind}: {result.statement}"]}

    return RunnableLambda(blocking(query_database, query.kind), query_database, name=query.kind)
