"""Text to SQL as a retriever, as a tool of an agent, and as a node of a graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar, Literal, Self

from langchain_core.documents import Document
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from pydantic import BaseModel, Field, field_validator

from rag_kit.errors import InvalidInputError, RagKitError, StatementError
from rag_kit.query_construction.sql.query import TextToSql
from rag_kit.query_construction.sql.result import SqlResult
from rag_kit.retrieval.base import RagKitRetriever, Request


class SqlRetriever(RagKitRetriever):
    """The rows of a database that answer a question, as documents.

    Each row is a document whose metadata are its columns; statement and row number stand in its provenance. A filter
    is refused: the statement chooses the names and values of its columns, so its rows could pass any filter.

    Args:
        query: What writes and runs the statement.
        k: Most rows to return; ``None``: all that ``query`` fetches (its ``max_rows``).

    Raises:
        InvalidInputError: On construction and on call, for a filter.

    Example:
        >>> from langchain_core.language_models import FakeListChatModel
        >>> from sqlalchemy import create_engine, text
        >>> from sqlalchemy.pool import StaticPool
        >>> options = {"poolclass": StaticPool, "connect_args": {"check_same_thread": False}}
        >>> engine = create_engine("sqlite://", **options)
        >>> with engine.begin() as connection:
        ...     _ = connection.execute(text("CREATE TABLE item AS SELECT 'pen' AS name, 2 AS price"))
        >>> model = FakeListChatModel(responses=['{"reason": "All.", "statement": "SELECT * FROM item"}'])
        >>> found = SqlRetriever.from_llm(model, engine).invoke("What is for sale?")
        >>> found[0].page_content.splitlines(), found[0].metadata["price"]
        (['name: pen', 'price: 2'], 2)
    """

    k_may_be_none: ClassVar[bool] = True

    query: TextToSql
    k: int | None = None  # type: ignore[assignment]

    @field_validator("filter")
    @classmethod
    def _filter_is_allowed(cls, value: Any) -> Any:
        return _unfiltered(value)

    @classmethod
    def from_llm(
        cls, llm: Runnable[Any, Any], database: Any, *, k: int | None = None, **settings: Any
    ) -> Self:
        """Make the retriever from a model and a database; `settings` are further arguments of ``TextToSql``."""
        return cls(query=TextToSql(llm, database, **settings), k=k)

    def _retrieve(self, query: str, request: Request) -> list[Document]:
        _unfiltered(request.filter)
        return self.query.invoke(query, request.child("sql")).documents

    async def _aretrieve(self, query: str, request: Request) -> list[Document]:
        _unfiltered(request.filter)
        return (await self.query.ainvoke(query, request.child("sql"))).documents


def _unfiltered(filter: Any) -> None:
    if filter is not None:
        raise InvalidInputError(
            "SqlRetriever takes no filter: the statement chooses the names and values of its columns, so its rows "
            "could pass any filter. Restrict what may be read: tables=, a view, or the database's role."
        )


class _Question(BaseModel):
    """The arguments of the tool."""

    question: str = Field(description="One question in plain words, complete in itself.")


def sql_tool(
    query: TextToSql,
    *,
    name: str = "query_database",
    description: str = "Answers a question from a database; gives the statement and its rows.",
) -> BaseTool:
    """Text to SQL as a tool for ``langchain.agents.create_agent`` and other agents.

    The agent's model reads statement, rows and, with ``answer=True``, the answer; the artifact is the ``SqlResult``.
    A refusal or failure reaches it as a tool error, and it may ask again. Models choose tools by `description`.
    """

    def ask(question: str, config: RunnableConfig) -> tuple[str, SqlResult]:
        with _tool_errors():
            return _as_text(query.invoke(question, config))

    async def aask(question: str, config: RunnableConfig) -> tuple[str, SqlResult]:
        with _tool_errors():
            return _as_text(await query.ainvoke(question, config))

    return StructuredTool.from_function(
        func=ask,
        coroutine=aask,
        name=name,
        description=description,
        args_schema=_Question,
        response_format="content_and_artifact",
        handle_tool_error=True,
    )


@contextmanager
def _tool_errors() -> Iterator[None]:
    """Raise errors that the agent's model can cure as ``ToolException``, whose text it reads."""
    try:
        yield
    except (StatementError, InvalidInputError) as error:
        raise ToolException(str(error)) from error


def _as_text(result: SqlResult) -> tuple[str, SqlResult]:
    if not result.statement:
        return f"The database cannot answer: {result.reason}", result
    rows = [
        f"[{number}] {dict(zip(result.columns, row, strict=True))}"
        for number, row in enumerate(result.rows, 1)
    ]
    more = ["There are more rows."] if result.truncated else []
    parts = [result.answer or "", f"Statement: {result.statement}", "\n".join([*rows, *more]) or "No rows."]
    return "\n\n".join(part for part in parts if part), result


def sql_node(
    query: TextToSql, *, on_error: Literal["skip", "raise"] = "skip"
) -> Runnable[Any, dict[str, Any]]:
    """Text to SQL as a node of a LangGraph graph, such as those of ``rag_kit.graphs``.

    It reads ``search_query`` (else ``question``) from the state, puts the rows before the ``documents`` that are there,
    and writes the statement into ``notes``. With ``on_error="skip"`` a note says what failed, and the documents stay.
    """
    if on_error not in ("skip", "raise"):
        raise InvalidInputError(f"on_error is {on_error!r}; allowed: 'skip', 'raise'.")
    skipped = RagKitError if on_error == "skip" else ()

    def ask(state: Mapping[str, Any], config: RunnableConfig) -> dict[str, Any]:
        try:
            return _update(query.invoke(_question(state), config), state)
        except skipped as error:
            return {"notes": [f"degraded: sql: {error}"]}

    async def aask(state: Mapping[str, Any], config: RunnableConfig) -> dict[str, Any]:
        try:
            return _update(await query.ainvoke(_question(state), config), state)
        except skipped as error:
            return {"notes": [f"degraded: sql: {error}"]}

    return RunnableLambda(ask, aask, name="sql")


def _question(state: Mapping[str, Any]) -> Any:
    return state.get("search_query") or state.get("question")


def _update(result: SqlResult, state: Mapping[str, Any]) -> dict[str, Any]:
    if not result.statement:
        return {"notes": [f"sql: no statement: {result.reason}"]}
    documents = [*result.documents, *(state.get("documents") or [])]
    return {"documents": documents, "notes": [f"sql: {result.statement}"]}
