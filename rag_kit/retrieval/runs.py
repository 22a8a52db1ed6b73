"""Runs of a retriever that searches for several queries at once: LangChain's callbacks see one run a query."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.callbacks import (
    AsyncCallbackManager,
    AsyncCallbackManagerForRetrieverRun,
    CallbackManager,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableConfig

from rag_kit.concurrency.steps import Step
from rag_kit.models.runnables import has_listeners, silent_manager


class QueryRun:
    """The run of one query; where nothing listens, it reports nothing."""

    def __init__(self, manager: Any, listened: bool) -> None:
        self.manager = manager
        self._listened = listened

    async def end(self, found: Sequence[Document] | Exception) -> None:
        """Report what was found, or that the search failed."""
        if self._listened:
            failed = isinstance(found, Exception)
            report = self.manager.on_retriever_error if failed else self.manager.on_retriever_end
            await Step("end", lambda _: report(found), lambda _: report(found))


async def start_run(retriever: BaseRetriever, query: str, config: RunnableConfig, native: bool) -> QueryRun:
    """Start the run of a query, as LangChain's ``invoke`` and ``ainvoke`` do."""
    if not has_listeners(config):
        kind: Any = AsyncCallbackManagerForRetrieverRun if native else CallbackManagerForRetrieverRun
        return QueryRun(silent_manager(kind, config), listened=False)
    managers: Any = AsyncCallbackManager if native else CallbackManager
    above = managers.configure(
        config.get("callbacks"),
        None,
        inheritable_tags=config.get("tags"),
        local_tags=retriever.tags,
        inheritable_metadata={**(config.get("metadata") or {}), **retriever._get_ls_params()},
        local_metadata=retriever.metadata,
    )

    def begin(_: Any) -> Any:
        name = config.get("run_name") or retriever.get_name()
        return above.on_retriever_start(None, query, name=name, run_id=config.get("run_id"))

    return QueryRun(await Step("start", begin, begin), listened=True)
