"""Haystack: DocumentJoiner, and QueryExpander with MultiQueryTextRetriever. Run in an environment of its own."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import common
from haystack import Document, Pipeline, component
from haystack.components.joiners import DocumentJoiner
from haystack.components.query import QueryExpander
from haystack.components.retrievers import MultiQueryTextRetriever
from haystack.dataclasses import ChatMessage


@component
class Model:
    """Answers after 200 ms."""

    def __init__(self, reply: str) -> None:
        self.reply = reply

    @component.output_types(replies=list[ChatMessage])
    def run(self, messages: list[ChatMessage]) -> dict[str, Any]:
        time.sleep(common.MODEL)
        return {"replies": [ChatMessage.from_assistant(self.reply)]}

    @component.output_types(replies=list[ChatMessage])
    async def run_async(self, messages: list[ChatMessage]) -> dict[str, Any]:
        await asyncio.sleep(common.MODEL)
        return {"replies": [ChatMessage.from_assistant(self.reply)]}


@component
class Leaf:
    """Answers after 50 ms."""

    def _found(self, query: str) -> dict[str, Any]:
        return {"documents": [Document(content=f"text {n} {query}", score=1 - n / 10) for n in range(4)]}

    @component.output_types(documents=list[Document])
    def run(
        self, query: str, filters: dict[str, Any] | None = None, top_k: int | None = None
    ) -> dict[str, Any]:
        time.sleep(common.SEARCH)
        return self._found(query)

    @component.output_types(documents=list[Document])
    async def run_async(
        self, query: str, filters: dict[str, Any] | None = None, top_k: int | None = None
    ) -> dict[str, Any]:
        await asyncio.sleep(common.SEARCH)
        return self._found(query)


def search(width: int) -> tuple[Any, Any]:
    """A pipeline with its defaults: three searches at a time."""
    model = Model(json.dumps({"queries": common.queries(width)}))
    made = Pipeline()
    made.add_component("expander", QueryExpander(chat_generator=model, n_expansions=width - 1))
    made.add_component("retriever", MultiQueryTextRetriever(retriever=Leaf()))
    made.connect("expander.queries", "retriever.queries")
    data = {"expander": {"query": "question"}}
    native = (lambda: made.run_async(data)) if hasattr(made, "run_async") else None
    return lambda: made.run(data), native


if __name__ == "__main__":
    lists = [[Document(content=text) for text in ranking] for ranking in common.rankings()]
    joiner = DocumentJoiner(join_mode="reciprocal_rank_fusion")
    common.measure("Haystack", "haystack-ai", lambda: joiner.run(documents=lists), search)
