"""Log-probabilities of a model's answer: asking for them, catching them, reading label probabilities out of them."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import BaseChatModel
from langchain_core.outputs import LLMResult
from langchain_core.runnables import Runnable
from langchain_core.runnables.config import RunnableConfig, merge_configs

from rag_kit.concurrency.steps import Step
from rag_kit.models.runnables import without_retries

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
    """Whether a model's class knows the settings ``logprobs`` and ``top_logprobs``; the first answer shows the rest."""
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
    """A step that calls the model as before and returns a `Reply`: its value with the tokens of the answer."""

    catcher = _Catcher()

    def catching(config: RunnableConfig) -> RunnableConfig:
        return merge_configs(config, {"callbacks": [catcher]}) if wanted else config

    async def native(config: RunnableConfig) -> Reply:
        return Reply(await step.native(catching(config)), catcher.tokens)

    return Step(step.name, lambda config: Reply(step.sync(catching(config)), catcher.tokens), native)


class _Catcher(BaseCallbackHandler):
    """Keeps the tokens of the last answer."""

    run_inline = True

    def __init__(self) -> None:
        self.tokens: list[Token] = []

    def on_llm_end(self, response: LLMResult, **kwargs: Any) -> None:
        """Called with each answer, streamed or not."""
        message = getattr(response.generations[0][0], "message", None)
        self.tokens = read_tokens(getattr(message, "response_metadata", None))


def read_tokens(metadata: Any) -> list[Token]:
    """The tokens of an OpenAI-compatible answer's ``response_metadata``; none where they are malformed."""
    try:
        return [_token(entry) for entry in metadata["logprobs"]["content"][:_MOST_TOKENS]]
    except (TypeError, LookupError, ValueError, AttributeError):
        return []


def _token(entry: Mapping[str, Any]) -> Token:
    pairs = [(each["token"], each["logprob"]) for each in (entry, *(entry.get("top_logprobs") or ()))]
    for text, value in pairs:
        # a log-probability above 0 or NaN is none; minus infinity is a probability of 0
        if not isinstance(text, str) or isinstance(value, bool) or not value <= 1e-6:
            raise ValueError("no token with a log-probability")
    return Token(*pairs[0], tuple(pairs[1:]))


def label_probabilities(
    tokens: Sequence[Token], name: str, label: str, labels: Collection[str]
) -> dict[str, float] | None:
    """The probabilities of the labels of a field, read where the model wrote the one that it chose."""
    text = "".join(token.text for token in tokens)
    ends = list(accumulate(len(token.text) for token in tokens))
    written = rf"\b{re.escape(name)}\b\W{{1,12}}(?={re.escape(label)}\b)"
    for found in re.finditer(written, text, re.IGNORECASE):
        token = tokens[bisect_right(ends, found.end())]
        known = _by_label([*token.top, (token.text, token.logprob)], labels)
        if known[label] > 0:
            return known
    return None


def _by_label(candidates: Sequence[tuple[str, float]], labels: Collection[str]) -> dict[str, float]:
    """Add up the probabilities of the tokens that begin each label."""
    found = dict.fromkeys(labels, 0.0)
    for text, logprob in dict(candidates).items():  # the chosen token is mostly among the alternatives too
        start = text.strip().lstrip("\"'[:").strip().lower()
        for label in labels if start else ():
            whole = start.startswith(label) and not start[len(label) :][:1].isalnum()
            if whole or label.startswith(start):
                found[label] += math.exp(logprob)
    return found
