"""Identity of a call: prompt, model, endpoint, values; as one hash, which gives none of them away."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from langchain_core.language_models import BaseLanguageModel
from langchain_core.runnables import RunnableConfig

from rag_kit.models.runnables import base_url, model_name
from rag_kit.models.wrapped import routes_to

# Raise it when an entry of the same key would be read in another way.
_VERSION = 2
_SAMPLING = (
    "temperature", "top_p", "top_k", "max_tokens", "max_completion_tokens", "seed", "stop", "reasoning_effort",
    "reasoning", "thinking", "frequency_penalty", "presence_penalty", "model_kwargs", "extra_body",
)  # fmt: skip


def call_key(
    model: Any, prompt: Any, values: Mapping[str, Any], schema: Any, config: RunnableConfig | None = None
) -> str | None:
    """Return the key of a call's answer, 64 hexadecimal digits; None if the model cannot be told from others.

    The key covers the hash of the prompt file and the messages that the prompt gives. The schema is a Pydantic class, a
    JSON schema, or ``str`` for text; the config's ``configurable`` may choose the model.
    """
    identity = model_identity(model, config)
    if identity is None:
        return None
    messages = [[message.type, message.content] for message in prompt.format_prompt(**values).to_messages()]
    metadata = getattr(prompt, "metadata", None) or {}
    form = f"{schema.__module__}.{schema.__qualname__}" if isinstance(schema, type) else schema
    parts = [_VERSION, metadata.get("hash"), identity, messages, form]
    # other objects count by their type, so that no secret or address gets in
    text = json.dumps(parts, sort_keys=True, ensure_ascii=False, default=lambda part: type(part).__qualname__)
    return hashlib.sha256(text.encode("utf-8", errors="backslashreplace")).hexdigest()


def model_identity(model: Any, config: RunnableConfig | None = None) -> Any:
    """Describe a model, wrapped or not, as JSON to hash: class, name, endpoint, sampling; None for other objects."""
    if isinstance(model, BaseLanguageModel):
        return _identity(model)
    found = [[_identity(route.model), dict(route.arguments)] for route in routes_to(model, config)]
    return None if any(identity is None for identity, _ in found) else found


def _identity(model: Any) -> dict[str, Any] | None:
    """Describe a bare model by what changes its answers, without keys; None for other objects."""
    if not isinstance(model, BaseLanguageModel):
        return None
    settings = {name: getattr(model, name, None) for name in _SAMPLING}
    return {
        "class": f"{type(model).__module__}.{type(model).__qualname__}",
        "name": model_name(model),
        "endpoint": plain_endpoint(base_url(model)),
        "settings": {name: value for name, value in settings.items() if value is not None},
        "parameters": dict(getattr(model, "_identifying_params", None) or {}),
    }


def plain_endpoint(url: str | None) -> str | None:
    """Return host, port and path of an address, without user and password."""
    if not url:
        return None
    parts = urlsplit(url if "//" in url else f"//{url}")
    return f"{parts.netloc.rpartition('@')[2]}{parts.path.rstrip('/')}"
