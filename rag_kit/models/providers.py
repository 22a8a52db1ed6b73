"""Provider names, addresses of endpoints, and what keeps a model from being made."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar
from urllib.parse import urlsplit

from pydantic import ValidationError

from rag_kit.errors import ConfigurationError, InvalidInputError, RagKitError

from .redact import redact, short

T = TypeVar("T")

BASE_URL = "RAG_KIT_BASE_URL"
TIMEOUT = "RAG_KIT_TIMEOUT"
_SECONDS = 60  # of one request
#: Providers whose clients are those of the ``openai`` package.
OPENAI = ("openai", "azure_openai")
_KEY_VARIABLE = re.compile(r"\b[A-Z][A-Z0-9_]*_(?:KEY|TOKEN)\b")
_INFERRED = (
    ("openai", ("gpt-", "o1", "o3", "o4", "chatgpt", "text-embedding-")),
    ("anthropic", ("claude",)),
    ("deepseek", ("deepseek",)),
    ("mistralai", ("mistral", "mixtral")),
    ("cohere", ("command",)),
    ("xai", ("grok",)),
    ("perplexity", ("sonar",)),
)


def split_name(name: str) -> tuple[str | None, str]:
    """Split a name such as ``"openai:gpt-5.5"`` into provider and model; the provider is None if unknown."""
    head, colon, rest = name.partition(":")
    if colon and re.fullmatch(r"[a-z][a-z0-9_-]*", head.strip().lower()):
        return head.strip().lower().replace("-", "_"), rest.strip()
    for provider, beginnings in _INFERRED:
        if name.lower().startswith(beginnings):
            return provider, name
    return None, name


def check_name(name: Any, example: str) -> str:
    """Return the name of a model, stripped; `InvalidInputError` if it is not a non-empty str."""
    if not isinstance(name, str) or not name.strip():
        raise InvalidInputError(
            f"A model is named by a str such as 'openai:MODEL' or {example!r}, not {type(name).__name__}; a model "
            "object is used as it is"
        )
    return name.strip()


def with_url(settings: Mapping[str, Any], *variables: str) -> dict[str, Any]:
    """Add ``base_url`` to a model's settings, unless given, from the first environment variable that is set.

    An address that does not start with http(s)://, or holds a password or a query, is refused.
    """
    addresses = {"base_url": settings.get("base_url"), **{name: os.environ.get(name) for name in variables}}
    source = next((source for source, address in addresses.items() if address), None)
    if source is None:
        return dict(settings)
    address = str(addresses[source])
    if not re.match(r"https?://[^/\s]", address):
        raise ConfigurationError(
            f"{source}={short(address)!r} is no address; it must start with http:// or https://, as in "
            "http://127.0.0.1:8000/v1"
        )
    if "@" in urlsplit(address).netloc or urlsplit(address).query:
        raise ConfigurationError(
            f"{source} holds a password or a query; addresses are logged by HTTP clients, so give the "
            "address alone and the key in its own variable."
        )
    return {**settings, "base_url": address}


def read_number(source: str, value: Any, form: str, wanted: str) -> float:
    """Read the number that a setting or variable holds; `ConfigurationError` where it has another form or is 0.

    `form` is the pattern of an allowed number; `wanted` says what it counts and how to set it, for the error.
    """
    if not re.fullmatch(rf"\s*{form}\s*", str(value)) or not float(value):
        raise ConfigurationError(f"{source}={value!r} is no number of {wanted}.")
    return float(value)


def request_seconds(default: int = _SECONDS) -> float:
    """Return the time limit of a request to an endpoint: ``RAG_KIT_TIMEOUT``, else the default, 60 seconds."""
    seconds = os.environ.get(TIMEOUT) or default
    return read_number(TIMEOUT, seconds, r"\d{1,6}(\.\d+)?", "seconds; set one above 0, such as 300")


def make(name: str, build: Callable[[], T]) -> T:
    """Call ``build`` to make the model of this name; any failure becomes a ConfigurationError without a key in it."""
    try:
        return build()
    except RagKitError:
        raise
    except ImportError as error:
        match = re.search(r"pip install [`'\"]?([\w.\-\[\]]+)", str(error))
        package = match.group(1) if match else (error.name or "").replace("_", "-").split(".")[0]
        problem = f"{name!r} needs a package that is not installed: pip install {package}"
    except ValidationError as error:  # its own text holds the input
        problems = [f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors()[:5]]
        problem = f"{name!r} cannot be used: {short('; '.join(problems))}"
    except Exception as error:  # noqa: BLE001 - each provider raises its own; values in it may be secret
        text = short(str(error).split("\n")[0]).rstrip(".") or type(error).__name__
        problem = f"{name!r} cannot be used: {text}"
        if (variable := _KEY_VARIABLE.search(text)) and variable[0] not in os.environ:
            problem = f"{name!r} needs a key: set {variable[0]}"
        elif "provider" in text.lower():
            problem += ". A name is PROVIDER:MODEL, as in openai:gpt-5.5 or anthropic:claude-sonnet-4-5"
    # Raised out here, so that the provider's exception (with the settings in it) is not chained.
    raise ConfigurationError(f"{redact(problem)}.")
