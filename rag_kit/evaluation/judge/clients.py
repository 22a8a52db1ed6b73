"""A client's connections belong to the event loop that opened them; a judge that outlives the loop needs new ones."""

from __future__ import annotations

from typing import Any

from langchain_core.runnables.base import RunnableBindingBase


def own_client(model: Any) -> Any:
    """A copy of an OpenAI model, chat or embeddings, whose connections are nobody else's.

    LangChain shares one pool of connections between all models of an address. On a second event loop the pool hands out
    connections of the first, and requests fail. A model with an HTTP client of the user's own, and any other
    model, comes back as it is.

    The copy of an embedding model sends texts to an endpoint that is neither OpenAI's nor Azure's. LangChain's
    default, numbers of tokens, is OpenAI's own form, and needs a tokenizer that is downloaded.
    """
    if isinstance(model, RunnableBindingBase):
        inner = own_client(model.bound)
        return model if inner is model.bound else model.model_copy(update={"bound": inner})
    if getattr(model, "http_async_client", None) is not None or not hasattr(model, "model_copy"):
        return model
    chat = getattr(model, "root_async_client", None)
    resource = getattr(model, "async_client", None)
    client = chat if chat is not None else getattr(resource, "_client", None)
    if not type(client).__module__.startswith("openai") or not hasattr(client, "with_options"):
        return model
    from openai import DefaultAsyncHttpxClient

    assert client is not None
    fresh = client.with_options(
        http_client=DefaultAsyncHttpxClient(base_url=client.base_url, timeout=client.timeout)
    )
    if chat is not None:
        return model.model_copy(update={"root_async_client": fresh, "async_client": fresh.chat.completions})
    changes: dict[str, Any] = {"async_client": fresh.embeddings}
    host = str(getattr(client.base_url, "host", ""))
    if hasattr(model, "check_embedding_ctx_length") and not host.endswith((".openai.com", ".azure.com")):
        changes["check_embedding_ctx_length"] = False
    return model.model_copy(update=changes)
