"""Provider names, the variable that holds each one's key, and the packages they need."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar
from urllib.parse import urlsplit

from pydantic import ValidationError

from rag_kit.errors import ConfigurationError, InvalidInputError, RagKitError

from .redact import short

T = TypeVar("T")

BASE_URL = "RAG_KIT_BASE_URL"
#: Providers that take one key, and the variable they read it from. Others check theirs themselves.
KEYS: Mapping[str, tuple[str, ...]] = {
    "openai": ("OPENAI_API_KEY",),
    "azure_openai": ("AZURE_OPENAI_API_KEY", "OPENAI_API_KEY"),
    "anthropic": ("ANTHROPIC_API_KEY",),
    "cohere": ("COHERE_API_KEY",),
    "deepseek": ("DEEPSEEK_API_KEY",),
    "fireworks": ("FIREWORKS_API_KEY",),
    "google_genai": ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
    "groq": ("GROQ_API_KEY",),
    "mistralai": ("MISTRAL_API_KEY",),
    "nvidia": ("NVIDIA_API_KEY",),
    "openrouter": ("OPENROUTER_API_KEY",),
    "perplexity": ("PPLX_API_KEY", "PERPLEXITY_API_KEY"),
    "together": ("TOGETHER_API_KEY",),
    "upstage": ("UPSTAGE_API_KEY",),
    "xai": ("XAI_API_KEY",),
}
#: Providers whose clients are those of the ``openai`` package.
OPENAI = ("openai", "azure_openai")
_INFERRED = (
    ("openai", ("gpt-", "o1", "o3", "o4", "chatgpt", "text-embedding-")),
    ("anthropic", ("claude",)),
    ("deepseek", ("deepseek",)),
    ("mistralai", ("mistral", "mixtral")),
    ("cohere", ("command",)),
    ("xai", ("grok",)),
    ("perplexity", ("sonar",)),
)
_KEY_ARGUMENTS = ("api_key", "openai_api_key", "azure_ad_token", "azure_ad_token_provider")


def split_name(name: str) -> tuple[str | None, str]:
    """Provider and model of a name such as ``"openai:gpt-5.5"``; the provider is None if it is unknown.

    Example:
        >>> split_name("openai:org/model:free"), split_name("gpt-5.5"), split_name("my-model")
        (('openai', 'org/model:free'), ('openai', 'gpt-5.5'), (None, 'my-model'))
    """
    head, colon, rest = name.partition(":")
    if colon and re.fullmatch(r"[a-z][a-z0-9_-]*", head.strip().lower()):
        return head.strip().lower().replace("-", "_"), rest.strip()
    for provider, beginnings in _INFERRED:
        if name.lower().startswith(beginnings):
            return provider, name
    return None, name


def checked_name(name: Any, embedded: str) -> str:
    """The name of a model.

    Raises:
        InvalidInputError: It is no name.
    """
    if not isinstance(name, str) or not name.strip():
        raise InvalidInputError(
            f"A model is named by a str such as 'openai:MODEL' or {embedded!r}, not {type(name).__name__}; a model "
            "object is used as it is"
        )
    return name.strip()


def options(provider: str, name: str, settings: Mapping[str, Any], *variables: str) -> dict[str, Any]:
    """The settings of a model's constructor, with the address of its endpoint: the setting, else a variable.

    Args:
        provider: The provider.
        name: The whole name, for messages.
        settings: What the caller gave.
        *variables: Environment variables with the address; the first that is set counts.

    Raises:
        ConfigurationError: There is no key for a provider that needs one, or no http(s) address.
    """
    addresses = {"base_url": settings.get("base_url"), **{each: os.environ.get(each) for each in variables}}
    source = next((source for source, address in addresses.items() if address), None)
    chosen = dict(settings)
    if source is not None:
        chosen["base_url"] = _checked_address(source, str(addresses[source]))
    keys = KEYS.get(provider, ())
    given = any(settings.get(argument) for argument in _KEY_ARGUMENTS)
    if keys and not given and not any((os.environ.get(key) or "").strip() for key in keys):
        raise ConfigurationError(
            f"{name!r} needs a key: set the environment variable {keys[0]}. An endpoint that checks no key takes "
            f"any value ({keys[0]}=none). Without a model of your own, leave the name out: the kit then uses "
            "its embedded one."
        )
    return chosen


def _checked_address(source: str, address: str) -> str:
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
    return address


def make(name: str, build: Callable[[], T]) -> T:
    """Build a model; whatever goes wrong becomes a ConfigurationError without a key in it.

    Raises:
        ConfigurationError: A package is missing, the provider is unknown, or it refuses a setting.
    """
    try:
        return build()
    except RagKitError:
        raise
    except ImportError as error:
        match = re.search(r"pip install [`'\"]?([\w.\-\[\]]+)", str(error))
        package = match.group(1) if match else (error.name or "").replace("_", "-").split(".")[0]
        problem = f"{name!r} needs a package that is not installed: pip install {package}"
    except Exception as error:  # noqa: BLE001 - each provider raises its own; values in it may be secret
        problem = f"{name!r} cannot be used: {_told(error)}"
    # Raised out here, so that the provider's exception (with the settings in it) is not chained.
    raise ConfigurationError(
        f"{problem}. A name is PROVIDER:MODEL, as in openai:gpt-5.5 or anthropic:claude-sonnet-4-5."
    )


def _told(error: Exception) -> str:
    if isinstance(error, ValidationError):  # its own text holds the input
        return short("; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors()[:5]))
    return short(str(error).split("\n")[0]).rstrip(".") or type(error).__name__
