"""Call a model, an embedding model or any other Runnable from async code, on the side that works on this loop."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from langchain_core.embeddings import Embeddings
from langchain_core.runnables import Runnable, RunnableConfig

from rag_kit.concurrency import run_in_thread
from rag_kit.concurrency.bridge import call_client

# Where Runnables keep what they call, and where models keep their asynchronous clients.
_INSIDE = (
    "bound",
    "runnable",
    "fallbacks",
    "first",
    "middle",
    "last",
    "steps__",
    "default",
    "mapper",
    "nodes",
)
_SEARCHED = (
    "vectorstore",
    "embeddings",
    "embedding",
    "embedding_function",
    "_embedding_function",
    "underlying_embeddings",
)
_CLIENTS = ("root_async_client", "async_client", "_async_client")
_DEEPEST = 8


async def acall_runnable(
    runnable: Runnable[Any, Any], given: Any, config: RunnableConfig | None = None, **kwargs: Any
) -> Any:
    """As ``runnable.ainvoke``; by its blocking side where that is the one that works, see ``call_client``."""
    return await call_client(
        lambda: runnable.ainvoke(given, config, **kwargs),
        partial(runnable.invoke, given, config, **kwargs) if has_blocking_side(runnable) else None,
        connections_of(runnable),
    )


async def aembed_query(embeddings: Embeddings, text: str) -> list[float]:
    """As ``embeddings.aembed_query``, likewise; without code of its own for that it runs on the shared pool."""
    blocking = partial(embeddings.embed_query, text)
    # LangChain's default runs on asyncio's small pool.
    if type(embeddings).aembed_query is Embeddings.aembed_query:
        return await run_in_thread(blocking)
    return await call_client(lambda: embeddings.aembed_query(text), blocking, connections_of(embeddings))


async def aembed_documents(embeddings: Embeddings, texts: list[str]) -> list[list[float]]:
    """As ``embeddings.aembed_documents``, likewise."""
    blocking = partial(embeddings.embed_documents, texts)
    if type(embeddings).aembed_documents is Embeddings.aembed_documents:
        return await run_in_thread(blocking)
    return await call_client(lambda: embeddings.aembed_documents(texts), blocking, connections_of(embeddings))


def connections_of(client: object) -> list[object]:
    """The asynchronous HTTP clients inside; models of one address may share one, as LangChain's OpenAI models do."""
    found: dict[int, object] = {}
    for part in _parts(client, (*_INSIDE, *_SEARCHED)):
        for name in _CLIENTS:
            if (held := getattr(part, name, None)) is not None:
                while (inner := getattr(held, "_client", None)) is not None:
                    held = inner
                found[id(held)] = held
                break
    return list(found.values())


def has_blocking_side(runnable: object) -> bool:
    """Whether no part of a Runnable or graph is written as a coroutine function alone.

    Example:
        >>> from langchain_core.runnables import RunnableLambda
        >>> async def shout(text):
        ...     return text.upper()
        >>> has_blocking_side(RunnableLambda(str.upper)), has_blocking_side(RunnableLambda(str.upper) | shout)
        (True, False)
    """
    for part in _parts(runnable, _INSIDE):
        held = vars(part) if hasattr(part, "__dict__") else {}
        if held.get("afunc") is not None and held.get("func") is None:
            return False
        # LangGraph's asynchronous savers and stores wait, in blocking code, for the loop that they were made on
        if any(type(held.get(name)).__name__.startswith("Async") for name in ("checkpointer", "store")):
            return False
    return True


def _parts(value: object, names: tuple[str, ...], depth: int = 0) -> Iterator[object]:
    """A Runnable and what it calls, as far as can be seen from outside."""
    if depth > _DEEPEST:
        return
    if isinstance(value, (list, tuple)):
        for each in value:
            yield from _parts(each, names, depth + 1)
    elif isinstance(value, Mapping):
        yield from _parts(list(value.values()), names, depth + 1)
    elif hasattr(value, "__dict__"):
        yield value
        held = vars(value)
        for name in names:
            if (inner := held.get(name)) is not None:
                yield from _parts(inner, names, depth + 1)
