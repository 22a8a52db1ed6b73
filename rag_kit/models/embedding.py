"""Naming an embedding model, and a name that an index can keep."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any, cast

from rag_kit.concurrency.steps import arun
from rag_kit.errors import ConfigurationError

from .providers import BASE_URL, OPENAI, check_name, make, read_number, request_seconds, split_name, with_url
from .redact import host_of
from .runnables import base_url, model_name
from .wheels.files import EMBEDDINGS, is_installed

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

VARIABLE = "RAG_KIT_EMBEDDING_MODEL"
OWN_BASE_URL = "RAG_KIT_EMBEDDING_BASE_URL"
BATCH = "RAG_KIT_EMBEDDING_BATCH"
NONE = "none"
BATCH_SIZE = 32  # texts in a request: few enough for a slow server to embed in time
RETRIES = 2
_ONE_TEXT = 30  # seconds for one text, which somebody waits for, unless a time-out is set


def embedding_model(name: str | None = None, **settings: Any) -> Embeddings | None:
    """Make an embedding model by its name.

    Args:
        name: ``"minilm"`` or ``"bge-small-en"`` (English), ``"e5"`` (Chinese, English and others), each once it was
            installed (``rag-kit models install e5``); ``"none"``, a model of fastembed (``"fastembed:BAAI/..."``)
            or any ``init_embeddings`` name (``"openai:text-embedding-3-small"``). Default: the variable
            ``RAG_KIT_EMBEDDING_MODEL``, else the first of e5, minilm and bge-small-en that is installed, else none.
        **settings: For the model's constructor: ``base_url`` (default: the variables
            ``RAG_KIT_EMBEDDING_BASE_URL``, ``RAG_KIT_BASE_URL``), ``api_key``, and of OpenAI-compatible endpoints
            ``timeout``, the seconds of a request (default: the variable ``RAG_KIT_TIMEOUT``, else 60,
            and 30 for one text), and ``chunk_size``, its most texts (default: ``RAG_KIT_EMBEDDING_BATCH``, else 32).

    Returns:
        An ordinary LangChain ``Embeddings``; None means: search by keyword only, and say so once.

    Raises:
        ConfigurationError: The key, the weights or the provider's package is missing, or a setting is wrong.
        MissingExtraError: A model of these names was asked for without the extra ``minilm``.

    Example:
        >>> embedding_model("none") is None
        True
    """
    if name is None:
        name = os.environ.get(VARIABLE) or next(filter(is_installed, EMBEDDINGS), NONE)
    name = check_name(name, EMBEDDINGS[0])
    if name == NONE:
        return None
    if name in EMBEDDINGS:
        from rag_kit.models.wheels.models import WheelEmbeddings

        return make(name, lambda: WheelEmbeddings(name, **settings))
    provider, model = split_name(name)
    if provider is None or not model:
        raise ConfigurationError(
            f"The embedding model {name!r} is unknown. Write PROVIDER:MODEL, as in openai:text-embedding-3-small, or "
            f"one of {', '.join(EMBEDDINGS)} (rag-kit models install NAME), or 'none' (keyword search only)."
        )
    if provider == "fastembed":
        from rag_kit.models.fastembed import FastEmbedEmbeddings

        return make(name, lambda: FastEmbedEmbeddings(model, **settings))
    settings = with_url(settings, OWN_BASE_URL, BASE_URL)

    def build() -> Embeddings:
        from langchain.embeddings import init_embeddings

        if provider not in OPENAI:
            return init_embeddings(model, provider=provider, **settings)
        from .http import EmbeddingClient, with_http_clients

        # Counting tokens would download a table from the network, and compatible servers want strings.
        defaults: dict[str, Any] = {"check_embedding_ctx_length": False}
        size = os.environ.get(BATCH) or BATCH_SIZE
        chunk_size = read_number(BATCH, size, r"\d{1,9}", "texts; set a whole number of 1 or more")
        defaults |= {"timeout": request_seconds(), "chunk_size": int(chunk_size)}
        arguments = with_http_clients({**defaults, **settings, "max_retries": 0})
        made: Any = init_embeddings(model, provider=provider, **arguments)
        one_text = settings.get("timeout", request_seconds(_ONE_TEXT))
        made.max_retries = settings.get("max_retries", RETRIES)  # not by its own client
        made.client = made.client and EmbeddingClient(made.client, made, one_text)
        made.async_client = EmbeddingClient(made.async_client, made, one_text, arun)
        return cast("Embeddings", made)

    return make(name, build)


def recorded_embedding_model(recorded: str, **settings: Any) -> Embeddings | None:
    """Make the embedding model that an index recorded, from the name that ``embedding_name`` gave.

    That name holds the host, which is not part of a model's name. The endpoint is the one that is configured now:
    if it is another host, ``embedding_name`` of the result differs from the recorded name, and the index refuses it.
    """
    if ":" not in recorded:
        return embedding_model(recorded, **settings)
    # "openai:text-embedding-3-small[256]@api.openai.com" -> name, dimensions; the host is left out
    name = re.sub(r"@[^@]*$", "", recorded)
    if size := re.search(r"\[(\d+)\]$", name):
        name, settings = name[: size.start()], {"dimensions": int(size[1]), **settings}
    return embedding_model(name, **settings)


def embedding_name(embeddings: Embeddings | None) -> str:
    """Return a stable name of an embedding model, kept with an index: another name means other vectors.

    It is ``"none"``, the name of a model from a wheel (``"minilm"``), a class's import path, or provider, model,
    dimensions and host, as in ``"openai:text-embedding-3-small@api.openai.com"``; without key, port and path: a server
    may move on its machine.

    Example:
        >>> from langchain_core.embeddings import DeterministicFakeEmbedding
        >>> embedding_name(DeterministicFakeEmbedding(size=8))
        'langchain_core.embeddings.fake.DeterministicFakeEmbedding[8]'
    """
    if embeddings is None:
        return NONE
    cls, model = type(embeddings), model_name(embeddings)
    if cls.__module__.startswith("rag_kit.models.wheels"):
        return str(embeddings.name)  # type: ignore[attr-defined]
    if cls.__module__ == "rag_kit.models.fastembed":
        return f"fastembed:{model}"
    package = cls.__module__.split(".")[0]
    is_of_langchain = package in ("langchain_core", "langchain_community")
    if model and package.startswith("langchain_") and not is_of_langchain:
        azure = "azure_" if "azure" in cls.__name__.lower() else ""
        name = f"{azure}{package.removeprefix('langchain_')}:{model}"
    else:
        name = f"{cls.__module__}.{cls.__qualname__}" + (f":{model}" if model else "")
    sizes = (getattr(embeddings, field, None) for field in ("dimensions", "output_dimensionality", "size"))
    name += next((f"[{size}]" for size in sizes if type(size) is int), "")
    host = host_of(base_url(embeddings)) or ("api.openai.com" if package == "langchain_openai" else None)
    return f"{name}@{host}" if host else name


def sending_text(embeddings: Embeddings | None) -> Embeddings | None:
    """Copy OpenAI embeddings so that they send texts, not token numbers, to another provider's endpoint.

    LangChain's default, numbers of tokens, is OpenAI's own form, and needs a tokenizer that is downloaded.
    """
    model: Any = embeddings
    if not hasattr(model, "check_embedding_ctx_length") or not hasattr(model, "model_copy"):
        return embeddings
    if (host_of(base_url(model)) or "api.openai.com").endswith((".openai.com", ".azure.com")):
        return embeddings
    return cast("Embeddings", model.model_copy(update={"check_embedding_ctx_length": False}))
