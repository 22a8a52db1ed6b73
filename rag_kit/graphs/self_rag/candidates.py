"""One candidate: a continuation of a beam and its critique, scored by labels or by the model's log-probabilities."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.outputs import LLMResult
from langchain_core.runnables import Runnable
from langchain_core.runnables.config import RunnableConfig, merge_configs

from rag_kit.concurrency.steps import Step
from rag_kit.graphs.running import ask, write
from rag_kit.graphs.self_rag.beams import (
    CRITIQUES,
    WORTH,
    answer_so_far,
    clean_continuation,
    critique_score,
    sequence_probability,
    without_punctuation,
)
from rag_kit.graphs.self_rag.nodes import SelfRagNodes, none_if_unreadable
from rag_kit.graphs.self_rag.state import Beam, Candidate, SelfRagContext, SelfRagState
from rag_kit.models.runnables import without_retries
from rag_kit.prompts import render_passages
from rag_kit.text import sentences

#: Alternatives asked for at each token. Five labels are the most; the rest is room for capitals and quotes.
TOP_LOGPROBS = 10

_MOST_TOKENS = 20_000
_WORST = {"relevance": "irrelevant", "support": "none", "usefulness": "1"}


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


class CandidateWriter(SelfRagNodes):
    """Asks the model for decisions, continuations and critiques, in either way of scoring."""

    files = (
        "condense", "retrieve_needed", "continue_answer", "continue_unaided", "critique", "critique_usefulness",
    )  # fmt: skip

    @cached_property
    def llm_with_logprobs(self) -> Any:
        """The model, asking for log-probabilities."""
        return with_logprobs(self.llm)

    def decision(
        self, state: SelfRagState, context: SelfRagContext, beam: Beam, fallback: Any = none_if_unreadable
    ) -> Step[Reply]:
        """Ask whether documents are to be looked up for the next segment."""
        values = {"question": state["asked"], "answer": answer_so_far(beam)}
        return self._ask_scored("retrieve_needed", state, context, values, fallback=fallback)

    async def candidate(
        self, state: SelfRagState, context: SelfRagContext, beam: Beam, passage: int | None
    ) -> Candidate:
        """Write one continuation and judge it; a text that ends or repeats the answer is not judged."""
        answer, document = answer_so_far(beam), None if passage is None else state["passages"][passage]
        candidate = new_candidate(state, beam, passage)
        values = {"question": state["asked"], "answer": answer}
        if document is not None:
            candidate["source"] = source_of(document)
            values["passages"] = render_passages([document], max_chars=self.max_passage_chars)
        name = "continue_unaided" if passage is None else "continue_answer"
        count = context.segment_sentences
        written = await self._ask_scored(name, state, context, {**values, "count": str(count)})
        candidate["text"] = text = clean_continuation(written.value, count)
        if not text:
            return candidate
        texts = [part.text for part in sentences(answer)] + [part["text"] for part in beam["segments"]]
        if without_punctuation(text) in map(without_punctuation, texts):
            candidate["reason"] = "repeats the answer so far"
            return candidate
        name = "critique_usefulness" if passage is None else "critique"
        verdict = await self._ask_scored(
            name, state, context, {**values, "statement": text}, fallback=none_if_unreadable
        )
        for name in CRITIQUES[2:] if passage is None else CRITIQUES:
            label = _WORST[name] if verdict.value is None else str(getattr(verdict.value, name))
            candidate["labels"][name] = label
            candidate["probabilities"][name] = probabilities(verdict, name, label)
        if verdict.value is None:
            candidate["labels"]["critique"] = "unusable"
        candidate["parts"] = {
            name: critique_score(name, candidate["probabilities"].get(name, {})) for name in CRITIQUES
        }
        candidate["parts"]["p"] = sequence_probability([token.logprob for token in written.tokens])
        return candidate

    def _ask_scored(
        self, name: str, state: SelfRagState, context: SelfRagContext, values: Any, **asking: Any
    ) -> Step[Reply]:
        """Ask by a prompt, for an object where there is a fallback; with log-probabilities if the run has them."""
        wanted = state["scoring"] == "logprobs"
        llm, prompt = self.llm_with_logprobs if wanted else self.llm, self.prompt(name, state, context)
        step = ask(llm, prompt, values, **asking) if asking else write(llm, prompt, values, stream=False)
        return with_tokens(step, wanted=wanted)


def new_candidate(state: SelfRagState, beam: Beam, passage: int | None, reason: str = "") -> Candidate:
    """A candidate before anything is written."""
    return Candidate(
        segment=state["segment"], beam=beam["number"], passage=passage, source=None, text="", labels={},
        probabilities={}, parts={}, f=None, score=None, kept=False, won=False, reason=reason,
    )  # fmt: skip


def source_of(document: Document) -> str | None:
    """The file or the address of a passage."""
    source = document.metadata.get("file") or document.metadata.get("source")
    return None if source is None else str(source)


def probabilities(verdict: Reply, name: str, label: str) -> dict[str, float]:
    """The probabilities of a field's labels: the model's own where its tokens show them, else 1 on the label."""
    labels = WORTH[name]
    known = None if verdict.value is None else label_probabilities(verdict.tokens, name, label, labels)
    return known or {option: float(option == label) for option in labels}


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
        return [_read_token(entry) for entry in metadata["logprobs"]["content"][:_MOST_TOKENS]]
    except (TypeError, LookupError, ValueError, AttributeError):
        return []


def _read_token(entry: Mapping[str, Any]) -> Token:
    pairs = [(known["token"], known["logprob"]) for known in (entry, *(entry.get("top_logprobs") or ()))]
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
    for mark in re.finditer(written, text, re.IGNORECASE):
        token = tokens[bisect_right(ends, mark.end())]
        known = _sum_by_label([*token.top, (token.text, token.logprob)], labels)
        if known[label] > 0:
            return known
    return None


def _sum_by_label(candidates: Sequence[tuple[str, float]], labels: Collection[str]) -> dict[str, float]:
    """Add up the probabilities of the tokens that begin each label."""
    sums = dict.fromkeys(labels, 0.0)
    for text, logprob in dict(candidates).items():  # the chosen token is mostly among the alternatives too
        start = text.strip().lstrip("\"'[:").strip().lower()
        for label in labels if start else ():
            whole = start.startswith(label) and not start[len(label) :][:1].isalnum()
            if whole or label.startswith(start):
                sums[label] += math.exp(logprob)
    return sums
