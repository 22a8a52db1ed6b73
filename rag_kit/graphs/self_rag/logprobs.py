"""Log-probabilities of a model's answer: asking for them, catching them, reading label probabilities out of them."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import BaseChatModel
from langchain_core.outputs import ChatGeneration, LLMResult
from langchain_core.runnables import Runnable
from langchain_core.runnables.config import RunnableConfig, merge_configs

from rag_kit.concurrency.steps import Step
from rag_kit.models.endpoint import without_retries

#: Alternatives asked for at each token. Five labels are the most; the rest is room for capitals and quotes.
TOP_LOGPROBS = 10

_MOST_TOKENS = 20_000


@dataclass(frozen=True)
class Token:
    """A token of an answer: its text, its log-probability and those of what might have stood there."""

    text: str
    logprob: float
    top: tuple[tuple[str, float], ...] = ()


@dataclass
class Reply:
    """The value of a model call, and the tokens of its last answer; no tokens without log-probabilities."""

    value: Any
    tokens: list[Token] = field(default_factory=list)


def may_have_logprobs(llm: Any) -> bool:
    """Whether a model's class knows the settings ``logprobs`` and ``top_logprobs``.

    Whether its endpoint serves them shows in the first answer.

    Example:
        >>> from rag_kit.models import chat_model
        >>> may_have_logprobs(chat_model("extractive"))
        False
    """
    known = getattr(type(llm), "model_fields", {})
    return isinstance(llm, BaseChatModel) and "logprobs" in known and "top_logprobs" in known


def with_logprobs(llm: Any) -> Runnable[Any, Any]:
    """The model, asking for log-probabilities; a bound model is asked for labels in plain text.

    That is wanted: where an endpoint holds its output to a schema, the probabilities are those of the schema's
    grammar and not the model's own.
    """
    bound: Runnable[Any, Any] = without_retries(llm, None).bind(logprobs=True, top_logprobs=TOP_LOGPROBS)
    return bound


def with_tokens(step: Step[Any], *, wanted: bool = True) -> Step[Any]:
    """A step that calls the model as before and returns a `Reply`: its value with the tokens of the answer.

    Args:
        step: The call.
        wanted: False where no log-probabilities were asked for: then no callback is set up, and there are no tokens.
    """

    def catching(config: RunnableConfig) -> tuple[_Catcher, RunnableConfig]:
        catcher = _Catcher()
        return catcher, merge_configs(config, {"callbacks": [catcher]}) if wanted else config

    def sync(config: RunnableConfig) -> Reply:
        catcher, merged = catching(config)
        return Reply(step.sync(merged), catcher.tokens)

    async def native(config: RunnableConfig) -> Reply:
        catcher, merged = catching(config)
        return Reply(await step.native(merged), catcher.tokens)

    return Step(step.name, sync, native)


class _Catcher(BaseCallbackHandler):
    """Keeps the tokens of the last answer."""

    run_inline = True

    def __init__(self) -> None:
        self.tokens: list[Token] = []

    def on_chat_model_start(self, *args: Any, **kwargs: Any) -> None:
        """Nothing to do."""

    def on_llm_end(self, response: LLMResult, **kwargs: Any) -> None:
        """Called with each answer, streamed or not."""
        generations = response.generations[0] if response.generations else []
        message = (
            generations[0].message if generations and isinstance(generations[0], ChatGeneration) else None
        )
        self.tokens = read_tokens(getattr(message, "response_metadata", None))


def read_tokens(metadata: Any) -> list[Token]:
    """The tokens of an OpenAI-compatible answer's ``response_metadata``; malformed ones end the list.

    Example:
        >>> read_tokens({"logprobs": {"content": [{"token": "no", "logprob": -0.1, "top_logprobs": []}]}})
        [Token(text='no', logprob=-0.1, top=())]
        >>> read_tokens({"logprobs": None})
        []
    """
    logprobs = metadata.get("logprobs") if isinstance(metadata, Mapping) else None
    content = logprobs.get("content") if isinstance(logprobs, Mapping) else None
    tokens: list[Token] = []
    for entry in (content or [])[:_MOST_TOKENS] if isinstance(content, list) else []:
        pair = _pair(entry)
        if pair is None:
            return []
        top = entry.get("top_logprobs")
        pairs = [_pair(each) for each in top] if isinstance(top, list) else []
        tokens.append(Token(*pair, tuple(each for each in pairs if each is not None)))
    return tokens


def _pair(entry: Any) -> tuple[str, float] | None:
    if not isinstance(entry, Mapping):
        return None
    text, value = entry.get("token"), entry.get("logprob")
    if not isinstance(text, str) or isinstance(value, bool) or not isinstance(value, int | float):
        return None
    # a log-probability above 0 or NaN is none; minus infinity is a probability of 0
    return None if math.isnan(value) or value > 1e-6 else (text, float(value))


def label_probabilities(
    tokens: Sequence[Token], name: str, label: str, labels: Collection[str]
) -> dict[str, float] | None:
    """The probabilities of the labels of a field, read where the model wrote the one that it chose.

    Args:
        tokens: The tokens of the answer, which holds ``"name": "label"`` in any quoting.
        name: The field.
        label: The label that the answer was read as.
        labels: All labels of the field; no two begin with the same letter.

    Returns:
        Probability by label (they need not add up to 1), or None where the tokens do not show this label at
        this field: nothing is guessed.

    Example:
        >>> from math import log
        >>> tokens = [Token('{"support": "', -0.1), Token("par", log(0.5), (("par", log(0.5)), ("full", log(0.25))))]
        >>> tokens.append(Token('tial"}', 0.0))
        >>> label_probabilities(tokens, "support", "partial", ("full", "partial", "none"))
        {'full': 0.25, 'partial': 0.5, 'none': 0.0}
    """
    text = "".join(token.text for token in tokens)
    for found in re.finditer(
        rf"\b{re.escape(name)}\b\W{{1,12}}(?={re.escape(label)}\b)", text, re.IGNORECASE
    ):
        token = _at(tokens, found.end())
        if token is not None:
            known = _by_label([*token.top, (token.text, token.logprob)], labels)
            if known[label] > 0:
                return known
    return None


def _at(tokens: Sequence[Token], offset: int) -> Token | None:
    end = 0
    for token in tokens:
        end += len(token.text)
        if offset < end:
            return token
    return None


def _by_label(candidates: Sequence[tuple[str, float]], labels: Collection[str]) -> dict[str, float]:
    """Add up the probabilities of the tokens that begin each label."""
    found = dict.fromkeys(labels, 0.0)
    seen: set[str] = set()
    for text, logprob in candidates:
        start = text.strip().lstrip("\"'[:").strip().lower()
        if text in seen or not start:  # the chosen token is mostly among the alternatives too
            continue
        seen.add(text)
        for label in labels:
            whole = start.startswith(label) and not start[len(label) :][:1].isalnum()
            if whole or label.startswith(start):
                found[label] += math.exp(logprob)
    return found
