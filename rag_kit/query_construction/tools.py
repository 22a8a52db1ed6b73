"""What answers one question, as a tool of an agent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from pydantic import BaseModel, Field

from rag_kit.concurrency.bridge import blocking
from rag_kit.errors import InvalidInputError, StatementError


class _Question(BaseModel):
    """The arguments of the tool."""

    question: str = Field(description="One question in plain words, complete in itself.")


def question_tool(
    answer: Callable[[str, RunnableConfig], Awaitable[tuple[str, Any]]], name: str, description: str
) -> BaseTool:
    """A tool that takes one question, for ``invoke`` and ``ainvoke`` alike.

    `answer` gives the text for the agent's model and the artifact. What it refuses reaches the model as a tool error,
    and it may ask again; other errors end the agent's run.
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
