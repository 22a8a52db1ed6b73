"""Helpers for tests of graphs: a retriever that gives the same passages, threads, runs in both forms."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever

from rag_kit.graphs import (
    build_adaptive_rag,
    build_conversational_rag,
    build_crag,
    build_plain_rag,
    build_self_rag,
)

#: The six graphs of the kit: name -> builder, which takes a retriever, a model and options.
BUILDERS: dict[str, Callable[..., Any]] = {
    "plain": build_plain_rag,
    "conversational": build_conversational_rag,
    "crag": build_crag,
    "self-rag": build_self_rag,
    "reflect": partial(build_self_rag, mode="reflect"),
    "adaptive": build_adaptive_rag,
}


def in_turn(rows: Iterable[tuple[Any, ...]]) -> list[Any]:
    """Each row with sync and async; with one of these in the fast tier, with the other one in the slow tier."""
    return [
        pytest.param(*row, native, marks=[] if native == bool(number % 2) else pytest.mark.slow)
        for number, row in enumerate(rows)
        for native in (False, True)
    ]


#: Every graph, sync and async in turn.
each_graph = pytest.mark.parametrize(("name", "native"), in_turn((name,) for name in BUILDERS))


class Fixed(BaseRetriever):
    """A LangChain retriever that knows nothing of this kit: the same documents always; keeps the queries."""

    documents: list[Document]
    queries: list[str] = []

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        self.queries.append(query)
        return self.documents


def fixed(*documents: Document | str) -> Fixed:
    """A fresh retriever of these documents, in this order."""
    made = [Document(item) if isinstance(item, str) else item for item in documents]
    return Fixed(documents=made, queries=[])


@contextmanager
def saver(kind: str, where: str) -> Iterator[Any]:
    """A checkpointer that outlives its process: ``sqlite`` in a file, ``postgres`` at an address."""
    if kind == "sqlite":
        from langgraph.checkpoint.sqlite import SqliteSaver

        with SqliteSaver.from_conn_string(where) as made:
            yield made
    else:
        from langgraph.checkpoint.postgres import PostgresSaver

        with PostgresSaver.from_conn_string(where) as made:
            made.setup()
            yield made


def thread(name: str = "1") -> Any:
    """The config of a thread."""
    return {"configurable": {"thread_id": name}}


async def go(graph: Any, native: bool, given: Any, *config: Any, **options: Any) -> Any:
    """Run a graph in one of its forms; ``invoke`` on a thread, as a server would."""
    if native:
        return await graph.ainvoke(given, *config, **options)
    return await asyncio.to_thread(graph.invoke, given, *config, **options)


def told(result: dict[str, Any]) -> dict[str, Any]:
    """A result without what depends on the clock."""
    usage = {key: value for key, value in result["usage"].items() if key != "seconds"}
    return {**result, "usage": usage}


async def both(graph: Any, given: Any, **options: Any) -> dict[str, Any]:
    """Run a graph in both forms; the results agree."""
    given = {"question": given} if isinstance(given, str) else given
    first = told(graph.invoke(given, **options))
    assert told(await graph.ainvoke(given, **options)) == first
    return first


def run_driver(name: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run a program of these helpers in a process of its own, which may kill itself."""
    command = [sys.executable, str(Path(__file__).with_name(name)), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
