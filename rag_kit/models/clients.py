"""Calls of embedding models with the kit's errors, and async calls of Runnables that work on any event loop."""

from __future__ import annotations

from functools import partial
from typing import Any

from langchain_core.embeddings import Embeddings
from langchain_core.runnables import Runnable, RunnableConfig

from rag_kit.concurrency.bridge import call_client, run_in_thread
from rag_kit.errors import RagKitError

from .endpoint import INSIDE, parts_of
from .failures import map_model_error

# Where retrievers keep their models, and where models keep their asynchronous clients.
_SEARCHED = (
    "vectorstore",
    "embeddings",
    "embedding",
    "embedding_function",
    "_embedding_function",
    "underlying_embeddings",
)
_CLIENTS = ("root_async_client", "async_client", "_async_client")


async def acall_runnable(
    runnable: Runnable[Any, Any], given: Any, config: RunnableConfig | None = None, **kwargs: Any
) -> Any:
    """As ``runnable.ainvoke``, or ``invoke`` on a thread where only that works; see ``call_client``."""
    return await call_client(
        lambda: runnable.ainvoke(given, config, **kwargs),
        partial(runnable.invoke, given, config, **kwargs) if has_blocking_side(runnable) else None,
        connections_of(runnable),
    )


def embed_query(embeddings: Embeddings, text: str) -> list[float]:
    """As ``embeddings.embed_query``, with the kit's errors.

    Raises:
        ModelError: It failed; no key stands in the message.
    """
    try:
        return embeddings.embed_query(text)
    except RagKitError:
        raise
    except Exception as error:  # noqa: BLE001 - raised below, outside of this block: it holds the request
        failure = error
    raise map_model_error(failure, model=embeddings)


def embed_documents(embeddings: Embeddings, texts: list[str]) -> list[list[float]]:
    """As ``embeddings.embed_documents``, with the kit's errors."""
    try:
        return embeddings.embed_documents(texts)
    except RagKitError:
        raise
    except Exception as error:  # noqa: BLE001 - as above
        failure = error
    raise map_model_error(failure, model=embeddings)


async def aembed_query(embeddings: Embeddings, text: str) -> list[float]:
    """As ``embed_query``, without blocking; a model that has no ``aembed_query`` of its own runs on the shared pool."""
    blocking = partial(embeddings.embed_query, text)
    try:
        # LangChain's default runs on asyncio's small pool.
        if type(embeddings).aembed_query is Embeddings.aembed_query:
            return await run_in_thread(blocking)
        return await call_client(lambda: embeddings.aembed_query(text), blocking, connections_of(embeddings))
    except RagKitError:
        raise
    except Exception as error:  # noqa: BLE001 - as above
        failure = error
    raise map_model_error(failure, model=embeddings)


async def aembed_documents(embeddings: Embeddings, texts: list[str]) -> list[list[float]]:
    """As ``embed_documents``, without blocking; see ``aembed_query``."""
    try:
        return await aembed_bare(embeddings, texts)
    except RagKitError:
        raise
    except Exception as error:  # noqa: BLE001 - as above
        failure = error
    raise map_model_error(failure, model=embeddings)


async def aembed_bare(embeddings: Embeddings, texts: list[str]) -> list[list[float]]:
    """As ``aembed_documents``, with the provider's own errors, for callers that retry on some of them."""
    blocking = partial(embeddings.embed_documents, texts)
    if type(embeddings).aembed_documents is Embeddings.aembed_documents:
        return await run_in_thread(blocking)
    return await call_client(lambda: embeddings.aembed_documents(texts), blocking, connections_of(embeddings))


def connections_of(value: object) -> list[object]:
    """The asynchronous HTTP clients inside a Runnable or model, each once; LangChain's OpenAI models may share one."""
    found: dict[int, object] = {}
    for part in parts_of(value, (*INSIDE, *_SEARCHED)):
        for name in _CLIENTS:
            if (client := getattr(part, name, None)) is not None:
                while (inner := getattr(client, "_client", None)) is not None:
                    client = inner
                found[id(client)] = client
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
    for part in parts_of(runnable):
        fields = vars(part) if hasattr(part, "__dict__") else {}
        if fields.get("afunc") is not None and fields.get("func") is None:
            return False
        # LangGraph's asynchronous savers and stores wait, in blocking code, for the loop that they were made on
        if any(type(fields.get(name)).__name__.startswith("Async") for name in ("checkpointer", "store")):
            return False
    return True
