"""What makes two questions to a judge the same, as one hash that gives nothing away."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from rag_kit.models.endpoint import base_url
from rag_kit.models.rewrite_cache import model_identity

# Raise it when an entry of the same key would be read in another way.
_VERSION = 1


def identity_of(model: Any) -> str | None:
    """A hash over class, name, endpoint and settings of a model; ``None`` for what is no model.

    A model that bears no name is told by its plain fields beside its class: two scripted models are two judges.
    """
    found = model_identity(model)
    if found is None:
        return None
    parts: list[Any] = [found]
    if isinstance(found, Mapping) and found.get("name") is None:
        fields = getattr(type(model), "model_fields", {})
        parts.append(
            {
                name: value
                for name in sorted(fields)
                if isinstance(value := getattr(model, name, None), str | float)
            }
        )
    return _hash(parts)


def reply_key(
    identity: str, prompt: Mapping[str, Any], values: Mapping[str, Any], schema: str | None, repeat: int
) -> str:
    """The key of a reply.

    Args:
        identity: The model's, from `identity_of`: name, endpoint, settings.
        prompt: Name, language and content hash of the prompt file; the system message is a part of that file.
        values: What the prompt is filled in with.
        schema: The JSON schema of the reply, as it is sent.
        repeat: 0 for the first time that this is asked, 1 for the second, ...
    """
    named = [prompt.get(name) for name in ("name", "language", "hash")]
    return _hash(["reply", _VERSION, identity, named, dict(values), schema, repeat])


def vector_key(identity: str, text: str) -> str:
    """The key of a text's vector."""
    return _hash(["vector", _VERSION, identity, text])


def endpoint_of(model: Any) -> str | None:
    """Host, port and path of the model's address: no user, no password, no query."""
    url = base_url(model)
    if not url:
        return None
    parts = urlsplit(url if "//" in url else f"//{url}")
    return f"{parts.netloc.rpartition('@')[2]}{parts.path.rstrip('/')}"


def _hash(parts: list[Any]) -> str:
    # what JSON does not know counts by its type, so that no secret and no address does
    text = json.dumps(parts, sort_keys=True, default=lambda other: type(other).__qualname__)
    return hashlib.sha256(text.encode()).hexdigest()
