"""Call a model, an embedding model or any other Runnable from async code, on the side that works on this loop."""

from __future__ import annotations

from functools import partial
from typing import Any

from langchain_core.embeddings import Embeddings
from langchain_core.runnables import Runnable, RunnableConfig

from rag_kit.concurrency import run_in_thread
from rag_kit.concurrency.bridge import call_client
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
    """As ``runnable.ainvoke``; by its blocking side where that is the one that works, see ``call_client``."""
    return await call_client(
        lambda: runnable.ainvoke(given, config, **kwargs),
        partial(runnable.invoke, given, config, **kwargs) if has_blocking_side(runnable) else None,
        connections_of(runnable),
    )


def embed_query(embeddings: Embeddings, text: str) -> list[float]:
    """As ``embeddings.embed_query``.

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
    """As ``embeddings.embed_documents``, with errors as ``embed_query`` has them."""
    try:
        return embeddings.embed_documents(texts)
    except RagKitError:
        raise
    except Exception as error:  # noqa: BLE001 - as above
        failure = error
    raise map_model_error(failure, model=embeddings)


async def aembed_query(embeddings: Embeddings, text: str) -> list[float]:
    """As ``embed_query``; without code of its own for that the model runs on the shared pool."""
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
    """As ``embed_documents``, likewise."""
    try:
        return await aembed_bare(embeddings, texts)
    except RagKitError:
        raise
    except Exception as error:  # noqa: BLE001 - as above
        failure = error
    raise map_model_error(failure, model=embeddings)


async def aembed_bare(embeddings: Embeddings, texts: list[str]) -> list[list[float]]:
    """As ``aembed_documents``, with the provider's own errors, for who asks again after some of them."""
    blocking = partial(embeddings.embed_documents, texts)
    if type(embeddings).aembed_documents is Embeddings.aembed_documents:
        return await run_in_thread(blocking)
    return await call_client(lambda: embeddings.aembed_documents(texts), blocking, connections_of(embeddings))


def connections_of(client: object) -> list[object]:
    """The asynchronous HTTP clients inside; models of one address may share one, as LangChain's OpenAI models do."""
    found: dict[int, object] = {}
    for part in parts_of(client, (*INSIDE, *_SEARCHED)):
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
    for part in parts_of(runnable):
        held = vars(part) if hasattr(part, "__dict__") else {}
        if held.get("afunc") is not None and held.get("func") is None:
            return False
        # LangGraph's asynchronous savers and stores wait, in blocking code, for the loop that they were made on
        if any(type(held.get(name)).__name__.startswith("Async") for name in ("checkpointer", "store")):
            return False
    return True
