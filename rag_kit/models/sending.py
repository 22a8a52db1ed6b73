"""Send models to other processes: those that hold HTTP clients are made again there from their settings."""

from __future__ import annotations

import copyreg
from typing import Any

from rag_kit.errors import ConfigurationError

from .clients import _CLIENTS, _SEARCHED
from .endpoint import INSIDE, parts_of

_MADE = frozenset({*_CLIENTS, "client", "root_client"})
_GIVEN = ("http_client", "http_async_client")


def make_sendable(model: Any) -> None:
    """Let pickle send the models inside a Runnable or model that hold clients of an endpoint.

    A key that the constructor was given goes with them; one of the environment must be in that of the receiver.
    """
    for part in parts_of(model, (*INSIDE, *_SEARCHED)):
        fields = getattr(type(part), "model_fields", {})
        if any(name in fields for name in _MADE):
            copyreg.pickle(type(part), _reduced)


def _reduced(model: Any) -> tuple[Any, ...]:
    own = [client for name in _GIVEN if (client := getattr(model, name, None)) is not None]
    if any(not type(client).__module__.startswith("rag_kit.") for client in own):
        raise ConfigurationError(
            f"{type(model).__name__} was given an HTTP client, which cannot be sent; name the model without one"
        )
    fields, names = type(model).model_fields, model.model_fields_set - _MADE - {*_GIVEN}
    return _made, (
        type(model),
        {fields[name].alias or name: getattr(model, name) for name in names},
        bool(own),
    )


def _made(kind: Any, settings: dict[str, Any], guarded: bool) -> Any:
    """The model of a class; ``guarded``: with the HTTP clients of the kit, which take the proxy of this machine."""
    if guarded:
        from .http import with_http_clients

        settings = with_http_clients(
            {name: value for name, value in settings.items() if name != "openai_proxy"}
        )
    return kind(**settings)
