"""Which model at which endpoint, and what that endpoint is known not to serve."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Any

METHODS = ("json_schema", "function_calling", "json_mode", "text")
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
_MOST_KEPT = 256
_DEEPEST = 8
_lock = threading.Lock()
_first_method: OrderedDict[tuple[str, str, str], int] = OrderedDict()


def parts_of(value: object, names: tuple[str, ...] = INSIDE, depth: int = 0) -> Iterator[object]:
    """A Runnable and the parts that it calls, found by the names of attributes."""
    if depth > _DEEPEST:
        return
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for each in value:
            yield from parts_of(each, names, depth + 1)
    elif hasattr(value, "__dict__"):
        yield value
        fields = vars(value)
        for name in names:
            if (inner := fields.get(name)) is not None:
                yield from parts_of(inner, names, depth + 1)


def model_name(model: Any) -> str | None:
    """The provider's name of the model, if the object has one."""
    return _first_text(model, "model_name", "model", "model_id", "deployment_name")


def base_url(model: Any) -> str | None:
    """The address of the endpoint, if the object has one; never print it whole, it may hold a password."""
    found = _first_text(
        model, "openai_api_base", "base_url", "endpoint", "azure_endpoint", "anthropic_api_url"
    )
    if found is None and hasattr(model, "openai_api_base"):
        return os.environ.get("OPENAI_API_BASE") or os.environ.get("OPENAI_BASE_URL")
    return found


def _first_text(model: Any, *names: str) -> str | None:
    values = (getattr(model, name, None) for name in names)
    return next((value for value in values if isinstance(value, str) and value), None)


def first_method(model: Any) -> int:
    """Index into METHODS from which on this model's endpoint is known to serve; 0 when nothing is known."""
    key = _key(model) if _first_method else None
    with _lock:
        return 0 if key is None else _first_method.get(key, 0)


def remember_method(model: Any, index: int) -> None:
    """Note that the endpoint refused every method before this one and served this one."""
    if (key := _key(model)) is not None:
        with _lock:
            _first_method[key] = index
            _first_method.move_to_end(key)
            while len(_first_method) > _MOST_KEPT:
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
    options: dict[str, Any] = {"max_retries": 0, **({} if timeout is None else {"timeout": timeout})}
    changes: dict[str, Any] = {}
    for root, client in (("root_client", "client"), ("root_async_client", "async_client")):
        present: Any = getattr(model, root, None)
        if hasattr(present, "with_options") and hasattr(present, "chat"):
            changes[root] = present.with_options(**options)
            changes[client] = changes[root].chat.completions
    return model.model_copy(update=changes) if changes and hasattr(model, "model_copy") else model
