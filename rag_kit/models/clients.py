"""Calls of embedding models with the kit's errors, on any event loop."""

from __future__ import annotations

from functools import partial
from typing import Any

from langchain_core.embeddings import Embeddings

from rag_kit.concurrency.bridge import call_client, run_in_thread
from rag_kit.concurrency.steps import Step, arun, run
from rag_kit.errors import InvalidInputError, RagKitError

from .failures import map_model_error
from .runnables import connections_of


def check_embeddings(embeddings: Any) -> Embeddings:
    """See that something is an embedding model."""
    if not isinstance(embeddings, Embeddings):
        raise InvalidInputError(
            f"embeddings is {type(embeddings).__name__}; it must be a LangChain Embeddings, such as "
            "rag_kit.models.embedding_model('minilm')."
        )
    return embeddings


def embed_query(embeddings: Embeddings, text: str) -> list[float]:
    """As ``embeddings.embed_query``, with the kit's errors; no key stands in their messages."""
    vector: list[float] = run(_embed(embeddings, "query", text))
    return vector


def embed_documents(embeddings: Embeddings, texts: list[str]) -> list[list[float]]:
    """As ``embeddings.embed_documents``, with the kit's errors."""
    vectors: list[list[float]] = run(_embed(embeddings, "documents", texts))
    return vectors


async def aembed_query(embeddings: Embeddings, text: str) -> list[float]:
    """As ``embed_query``, without blocking; a model that has no ``aembed_query`` of its own runs on the shared pool."""
    vector: list[float] = await arun(_embed(embeddings, "query", text))
    return vector


async def aembed_documents(embeddings: Embeddings, texts: list[str]) -> list[list[float]]:
    """As ``embed_documents``, without blocking; see ``aembed_query``."""
    vectors: list[list[float]] = await arun(_embed(embeddings, "documents", texts))
    return vectors


async def aembed_bare(embeddings: Embeddings, texts: list[str]) -> list[list[float]]:
    """As ``aembed_documents``, with the provider's own errors, for callers that retry on some of them."""
    vectors: list[list[float]] = await _embed_native(embeddings, "documents", texts)
    return vectors


async def _embed(embeddings: Embeddings, what: str, texts: Any) -> Any:
    """Embed; an error of the provider becomes one of the kit."""
    blocking = partial(getattr(embeddings, f"embed_{what}"), texts)
    try:
        return await Step("embed", lambda _: blocking(), lambda _: _embed_native(embeddings, what, texts))
    except RagKitError:
        raise
    except Exception as error:  # noqa: BLE001 - raised below, outside of this block: it holds the request
        failure = error
    raise map_model_error(failure, model=embeddings)


async def _embed_native(embeddings: Embeddings, what: str, texts: Any) -> Any:
    """Embed by the model's own coroutine, else on a thread."""
    blocking = partial(getattr(embeddings, f"embed_{what}"), texts)
    native = f"aembed_{what}"
    # LangChain's default runs on asyncio's small pool.
    if getattr(type(embeddings), native) is getattr(Embeddings, native):
        return await run_in_thread(blocking)
    call = partial(getattr(embeddings, native), texts)
    return await call_client(call, blocking, connections_of(embeddings))
