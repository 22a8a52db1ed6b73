"""Any LangChain tool or retriever as the web search of a graph."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Mapping
from typing import Any

from langchain_core.documents import Document
from langchain_core.language_models import BaseLanguageModel
from langchain_core.messages import ToolMessage
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableConfig, RunnableWithFallbacks
from langchain_core.runnables.base import RunnableBindingBase
from langchain_core.runnables.config import merge_configs
from langchain_core.tools import BaseTool, StructuredTool, Tool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.errors import GraphBubbleUp

from rag_kit._redact import redact
from rag_kit.concurrency.bridge import run_coroutine, run_in_thread
from rag_kit.concurrency.steps import Step
from rag_kit.documents import clean_text
from rag_kit.errors import BudgetExceededError, InvalidInputError, RagKitError
from rag_kit.graphs.crag.web_results import web_documents
from rag_kit.graphs.steps import beside, fetch
from rag_kit.models.clients import acall_runnable

logger = logging.getLogger("rag_kit.graphs.crag")

_QUERY_NAMES = ("query", "q", "search_query", "question", "keywords", "input", "text", "__arg1")


class WebSearch:
    """Calls a web search and gives its results as documents; what comes back is data of strangers.

    Args:
        search: A LangChain tool (also one that is only asynchronous, or gives content and artifact) or retriever,
            or another runnable from a query to results.

    Raises:
        InvalidInputError: It is something else, or a tool of which is not clear what argument the query is.
    """

    def __init__(self, search: Any) -> None:
        if not isinstance(search, Runnable) or isinstance(search, BaseLanguageModel):
            raise InvalidInputError(
                f"web_search is a {type(search).__name__}; give a LangChain tool (@tool makes one of a function) "
                "or a retriever."
            )
        self.search = search
        self.tool = _tool(search)
        self.argument = _argument(self.tool) if self.tool is not None else None
        self.name = clean_text(str(self.tool.name if self.tool is not None else search.get_name()))[:100]

    async def find(
        self, query: str, *, most: int, chars: int, timeout: float
    ) -> tuple[list[Document], str | None]:
        """Search, within bounds; a search that fails is noted and ends nothing.

        Args:
            query: What leaves for the outside.
            most: Most results.
            chars: Most characters of each.
            timeout: Seconds.

        Returns:
            The results as documents, and why the search failed, if it did.

        Raises:
            BudgetExceededError: A cap of the run is reached.
        """
        # the one place where anything leaves: who runs the graph can see what did
        logger.info("web search with %s: %s", self.name, clean_text(redact(query)))
        ran = await beside([self._step(query, most)], on_error="skip", timeout=timeout)
        [outcome] = ran.outcomes
        if isinstance(outcome.error, (BudgetExceededError, GraphBubbleUp)):
            raise outcome.error
        if outcome.error is not None:
            why = clean_text(ran.degradations[0])
            logger.warning("%s", why)
            return [], why
        found = web_documents(outcome.value, most=most, chars=chars, query=query, tool=self.name)
        error = outcome.value.get("error") if isinstance(outcome.value, Mapping) else None
        if not found and error and isinstance(error, (str, Exception)):
            # some tools give their failure back in place of results
            why = clean_text(redact(f"web search ({self.name}) failed: {str(error)[:300]}"))
            logger.warning("%s", why)
            return [], why
        return found, None

    def _step(self, query: str, most: int) -> Step[Any]:
        name = f"web search ({self.name})"
        if isinstance(self.search, BaseRetriever):
            step = fetch(self.search, query, k=most)
            return Step(name, step.sync, step.native)
        given = self._input(query)

        def sync(config: RunnableConfig) -> Any:
            config = _quiet(config)
            if _async_only(self.tool):
                return _unpacked(run_coroutine(self.search.ainvoke(given, config)))
            try:
                return _unpacked(self.search.invoke(given, config))
            except NotImplementedError:
                return _unpacked(run_coroutine(self.search.ainvoke(given, config)))

        async def native(config: RunnableConfig) -> Any:
            config = _quiet(config)
            if self.tool is not None and not _native(self.tool):
                return _unpacked(await run_in_thread(self.search.invoke, given, config))
            return _unpacked(await acall_runnable(self.search, given, config))

        return Step(name, sync, native)

    def _input(self, query: str) -> Any:
        if self.tool is None:
            return query
        arguments = {self.argument: query}
        if self.tool.response_format != "content_and_artifact":
            return arguments
        # only as a call does such a tool give its artifact, which holds the results whole
        return {"type": "tool_call", "id": uuid.uuid4().hex, "name": self.tool.name, "args": arguments}


def _quiet(config: RunnableConfig) -> RunnableConfig:
    """A search that asks a model of its own must not stream its words into the answer."""
    return merge_configs(config, {"tags": ["nostream"]})


def _tool(search: Any) -> BaseTool | None:
    """The tool inside ``with_config``, ``with_retry`` and ``with_fallbacks``."""
    while isinstance(search, (RunnableBindingBase, RunnableWithFallbacks)):
        search = search.bound if isinstance(search, RunnableBindingBase) else search.runnable
    return search if isinstance(search, BaseTool) else None


def _argument(tool: BaseTool) -> str:
    """Which argument of a tool the query is: the one that it needs, else one of a usual name, else the first."""
    shape = convert_to_openai_tool(tool)["function"].get("parameters", {})
    names = list(shape.get("properties", {}))
    required = [name for name in shape.get("required", []) if name in names]
    usual = [name for name in _QUERY_NAMES if name in names]
    if len(required) > 1 or not names:
        raise InvalidInputError(
            f"web_search is the tool {tool.name!r}, which needs {' and '.join(required) or 'no argument'}; "
            "give a tool that needs the query alone."
        )
    return (required or usual or names)[0]


def _async_only(tool: BaseTool | None) -> bool:
    return isinstance(tool, (StructuredTool, Tool)) and tool.func is None


def _native(tool: BaseTool) -> bool:
    """Whether a tool has asynchronous code of its own; the others would queue in asyncio's small pool."""
    if isinstance(tool, (StructuredTool, Tool)):
        return tool.coroutine is not None
    return type(tool)._arun is not BaseTool._arun


def _unpacked(value: Any) -> Any:
    """What a tool call gave: the artifact if it holds results, else the content."""
    if not isinstance(value, ToolMessage):
        return value
    if value.status == "error":
        raise RagKitError(f"the tool says: {value.text[:300]}")
    return value.artifact if value.artifact else value.content
