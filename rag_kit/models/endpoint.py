"""Which model at which endpoint, and what that endpoint is known not to serve."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Any

METHODS = ("json_schema", "function_calling", "json_mode", "text")
_KEPT = 256
_DEEPEST = 8
#: Where Runnables keep what they call.
INSIDE = (
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
_lock = threading.Lock()
_first_method: OrderedDict[tuple[str, str, str], int] = OrderedDict()


def parts_of(value: object, names: tuple[str, ...] = INSIDE, depth: int = 0) -> Iterator[object]:
    """A Runnable and the parts that it calls, found by the names of attributes."""
    if depth > _DEEPEST:
        return
    if isinstance(value, (list, tuple)):
        for each in value:
            yield from parts_of(each, names, depth + 1)
    elif isinstance(value, Mapping):
        yield from parts_of(list(value.values()), names, depth + 1)
    elif hasattr(value, "__dict__"):
        yield value
        fields = vars(value)
        for name in names:
            if (inner := fields.get(name)) is not None:
                yield from parts_of(inner, names, depth + 1)


def model_name(model: Any) -> str | None:
    """The provider's name of the model, if the object tells."""
    for attribute in ("model_name", "model", "model_id", "deployment_name"):
        value = getattr(model, attribute, None)
        if isinstance(value, str) and value:
            return value
    return None


def base_url(model: Any) -> str | None:
    """The address of the endpoint, if the object tells; never print it whole, it may hold a password."""
    for attribute in ("openai_api_base", "base_url", "endpoint", "azure_endpoint", "anthropic_api_url"):
        value = getattr(model, attribute, None)
        if isinstance(value, str) and value:
            return value
    if hasattr(model, "openai_api_base"):
        return os.environ.get("OPENAI_API_BASE") or os.environ.get("OPENAI_BASE_URL")
    return None


def first_method(model: Any) -> int:
    """Index into METHODS from which on this model's endpoint is known to serve; 0 when nothing is known."""
    if not _first_method:
        return 0
    key = _key(model)
    if key is None:
        return 0
    with _lock:
        return _first_method.get(key, 0)


def remember_method(model: Any, index: int) -> None:
    """Note that the endpoint refused every method before this one and served this one."""
    key = _key(model)
    if key is None:
        return
    with _lock:
        _first_method[key] = index
        _first_method.move_to_end(key)
        while len(_first_method) > _KEPT:
            _first_method.popitem(last=False)


def forget_methods() -> None:
    """Forget what endpoints refused, for instance after a server was upgraded."""
    with _lock:
        _first_method.clear()


def _key(model: Any) -> tuple[str, str, str] | None:
    name = model_name(model)
    if name is None:
        return None
    return (f"{type(model).__module__}.{type(model).__qualname__}", name, base_url(model) or "")


def without_retries(model: Any, timeout: float | None) -> Any:
    """A copy of an OpenAI client model that neither retries by itself nor waits longer than the time-out.

    The structured call retries itself, within its caps; a client that also does would multiply the
    requests and sleep past the deadline. Other models come back as they are.
    """
    changes: dict[str, Any] = {}
    for root, client in (("root_client", "client"), ("root_async_client", "async_client")):
        present = getattr(model, root, None)
        if present is None or not hasattr(present, "with_options") or not hasattr(present, "chat"):
            continue
        options: dict[str, Any] = {"max_retries": 0}
        if timeout is not None:
            options["timeout"] = timeout
        fresh = present.with_options(**options)
        changes[root] = fresh
        changes[client] = fresh.chat.completions
    if not changes or not hasattr(model, "model_copy"):
        return model
    return model.model_copy(update=changes)
