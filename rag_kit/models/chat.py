"""Naming a chat model."""

from __future__ import annotations

import os
from typing import Any, cast

from langchain_core.language_models import BaseChatModel

from rag_kit.errors import ConfigurationError

from .providers import BASE_URL, OPENAI, check_name, make, read_number, request_seconds, split_name, with_url
from .redact import host_of, redact
from .runnables import bare_model, base_url, model_name

VARIABLE = "RAG_KIT_CHAT_MODEL"
CONTEXT = "RAG_KIT_CONTEXT_TOKENS"
EMBEDDED = "extractive"
RETRIES = 2


def check_model_name(given: Any) -> str:
    """Return the name of a chat model, stripped; `ConfigurationError` without a provider or a model."""
    name = check_name(given, EMBEDDED)
    provider, model = split_name(name)
    if provider is None and name != EMBEDDED:
        raise ConfigurationError(
            f"The provider of the model {redact(repr(name))} is unknown. Write PROVIDER:MODEL; for an "
            f"OpenAI-compatible endpoint: openai:{redact(name)} with {BASE_URL}. Or 'extractive', the embedded one."
        )
    if not model:
        shown = redact(repr(name))
        raise ConfigurationError(f"{shown} names no model. Write PROVIDER:MODEL, as in openai:gpt-5.5.")
    return name


def chat_model(name: str | None = None, **settings: Any) -> BaseChatModel:
    """Make a chat model by its name.

    Args:
        name: ``"extractive"`` (embedded, no language model) or any ``init_chat_model`` name, as in
            ``"openai:gpt-5.5"``. Default: the variable ``RAG_KIT_CHAT_MODEL``, else ``"extractive"``.
        **settings: For the model's constructor: ``base_url`` (default: the variable ``RAG_KIT_BASE_URL``),
            ``api_key`` (default: the provider's own variable), ``temperature``, ``timeout`` (seconds; default
            60), ``max_retries`` (default 2; structured and text calls do their own) and whatever else it takes.
            ``context_tokens``: tokens that prompt and reply may have together (default: the variable
            ``RAG_KIT_CONTEXT_TOKENS``, else what LangChain's profile of the model says).

    Returns:
        An ordinary LangChain chat model.

    Raises:
        ConfigurationError: A key or package is missing, or a name or setting is wrong; the message says what to do.

    Example:
        >>> type(chat_model("extractive")).__name__
        'ExtractiveChatModel'
    """
    name = check_name(os.environ.get(VARIABLE) or EMBEDDED if name is None else name, "extractive")
    context = _context_tokens(settings.pop("context_tokens", None))
    if name == EMBEDDED:
        from rag_kit.models.extractive.model import ExtractiveChatModel

        return make(name, lambda: ExtractiveChatModel(**settings))
    if provider := settings.pop("model_provider", None):
        model = name.removeprefix(f"{provider}:")
    else:
        provider, model = split_name(check_model_name(name))
    settings = {"timeout": request_seconds(), "max_retries": RETRIES, **with_url(settings, BASE_URL)}
    url = settings.get("base_url")
    if provider == "openai" and url is not None and host_of(url) != "api.openai.com":
        # Compatible servers rarely have the Responses API, which LangChain picks for some model names.
        settings.setdefault("use_responses_api", False)

    def build() -> BaseChatModel:
        from langchain.chat_models import init_chat_model

        arguments = settings
        if provider in OPENAI:
            from .http import with_http_clients

            arguments = with_http_clients(settings)
            if provider == "openai" and url is None and not os.environ.get("OPENAI_BASE_URL"):
                arguments.setdefault("stream_usage", True)  # LangChain turns it off beside a client
        return cast("BaseChatModel", init_chat_model(model, model_provider=provider, **arguments))

    chosen_model = make(name, build)
    if context is not None:
        chosen_model.profile = {**(chosen_model.profile or {}), "max_input_tokens": context}
    return chosen_model


def _context_tokens(given: Any) -> int | None:
    """Return the tokens of a model's context, as given or else as the environment says; ``None`` without either."""
    source, value = ("context_tokens", given) if given is not None else (CONTEXT, os.environ.get(CONTEXT))
    if value in (None, ""):
        return None
    return int(read_number(source, value, r"[1-9]\d{2,8}", "tokens; give one from 100, such as 4096"))


def describe_model(model: Any) -> str:
    """Describe a model in one line: name, provider and host, never a key; of wrappers the model asked first.

    Example:
        >>> describe_model(chat_model("extractive")).startswith("extractive")
        True
    """
    model = bare_model(model)
    class_name = type(model).__name__
    if class_name == "ExtractiveChatModel":
        return (
            "extractive (embedded; no language model: it selects sentences and cites them). To use a real one: "
            f"{VARIABLE}=openai:MODEL with OPENAI_API_KEY, and {BASE_URL} for a compatible endpoint"
        )
    name, host = model_name(model), host_of(base_url(model))
    where = f"{class_name} at {host}" if host else class_name
    return f"{name} ({where})" if name else class_name
