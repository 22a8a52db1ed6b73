"""What every call to a model shares: limits, config, language."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import ensure_config, merge_configs

from rag_kit.concurrency.budget import check_seconds
from rag_kit.errors import InvalidInputError

from .listening import has_listeners

MAX_RETRIES = 2


def check_limits(timeout: float | None, max_retries: int) -> None:
    """See that the limits make sense.

    Raises:
        InvalidInputError: A limit is negative, or not a number.
    """
    check_seconds("timeout", timeout)
    if isinstance(max_retries, bool) or not isinstance(max_retries, int) or not 0 <= max_retries <= 10:
        raise InvalidInputError(f"max_retries={max_retries!r} was given; it must be 0 to 10")


def check_parts(model: Any, prompt: Any, values: Any) -> None:
    """See that a call has a model, a prompt and a value for each of the prompt's variables.

    Raises:
        InvalidInputError: One is missing or of another kind.
    """
    if not hasattr(model, "invoke"):
        raise InvalidInputError(
            f"model is a {type(model).__name__}; give a chat model, e.g. chat_model('extractive') or "
            "chat_model('openai:MODEL')."
        )
    if not hasattr(prompt, "invoke"):
        raise InvalidInputError(
            f"prompt is a {type(prompt).__name__}; give load_prompt(NAME) or a ChatPromptTemplate."
        )
    if not isinstance(values, Mapping):
        raise InvalidInputError(
            f"values is a {type(values).__name__}; give a dict of the prompt's variables."
        )
    variables = getattr(prompt, "input_variables", None)
    wanted = variables if isinstance(variables, list) else []
    missing = [name for name in wanted if name not in values]
    if missing:
        raise InvalidInputError(
            f"values lack {', '.join(map(repr, missing))}; the prompt needs: {', '.join(wanted)}."
        )


def call_config(
    config: RunnableConfig | None, model: Any, prompt: Any, watch: BaseCallbackHandler
) -> RunnableConfig:
    """The caller's config, whole, plus which prompt ran and, if anybody may listen, a watch for tokens."""
    known = getattr(prompt, "metadata", None) or {}
    metadata = {
        f"prompt_{key}": known[key] for key in ("name", "language", "version", "hash") if key in known
    }
    whole = ensure_config(config)
    if isinstance(model, BaseChatModel) and not model.callbacks and not has_listeners(whole):
        whole["metadata"] = {**(whole.get("metadata") or {}), **metadata}
        return whole
    return merge_configs(whole, {"metadata": metadata, "callbacks": [watch]})


def prompt_language(prompt: Any) -> str:
    """``"zh"`` for a Chinese prompt file, else ``"en"``."""
    known = getattr(prompt, "metadata", None) or {}
    return "zh" if known.get("language") == "zh" else "en"
