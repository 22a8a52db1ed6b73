"""One candidate: a continuation of a beam, from a passage or from none, and its critique."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel

from rag_kit.concurrency.steps import Step
from rag_kit.errors import ModelOutputError
from rag_kit.graphs.prompting import GraphPrompts
from rag_kit.graphs.self_rag.beams import answer_so_far, plain
from rag_kit.graphs.self_rag.context import SelfRagContext
from rag_kit.graphs.self_rag.logprobs import Reply, label_probabilities, with_logprobs, with_tokens
from rag_kit.graphs.self_rag.scores import (
    RELEVANCE,
    RETRIEVE,
    SUPPORT,
    USEFULNESS,
    Parts,
    critique_score,
    sequence_probability,
)
from rag_kit.graphs.self_rag.state import Beam, Candidate, Scoring
from rag_kit.graphs.steps import ask, write
from rag_kit.prompts import PromptTemplate, render_passages
from rag_kit.text import sentences
from rag_kit.text.citations.statements import renumbered

PROMPTS = ("retrieve_needed", "continue_answer", "continue_unaided", "critique", "critique_usefulness")
_FIELDS = {"relevance": RELEVANCE, "support": SUPPORT, "usefulness": USEFULNESS, "retrieve": RETRIEVE}
_WORST = {"relevance": "irrelevant", "support": "none", "usefulness": "1"}
_END = re.compile(r"^\W*END\W*$")


class Writer:
    """Asks the model for decisions, continuations and critiques, in either way of scoring.

    Args:
        llm: The chat model.
        prompts: The graph's prompts.
        max_passage_chars: Characters of a passage that go into a prompt.
    """

    def __init__(self, llm: BaseChatModel, prompts: GraphPrompts, max_passage_chars: int) -> None:
        self.llm = llm
        self.prompts = prompts
        self.max_passage_chars = max_passage_chars
        self._with_logprobs: Any = None

    def _model(self, scoring: Scoring) -> Any:
        if scoring == "labels":
            return self.llm
        if self._with_logprobs is None:
            self._with_logprobs = with_logprobs(self.llm)
        return self._with_logprobs

    def _prompt(self, name: str, language: str, context: SelfRagContext) -> PromptTemplate:
        return self.prompts.pick(name, language, getattr(context, f"{name}_instructions"))

    def decision(
        self,
        question: str,
        beam: Beam,
        language: str,
        context: SelfRagContext,
        scoring: Scoring,
        fallback: Any = None,
    ) -> Step[Any]:
        """Ask whether documents are to be looked up for the next segment; answered by a `Reply`."""
        values = {"question": question, "answer": answer_so_far(beam)}
        prompt = self._prompt("retrieve_needed", language, context)
        step = ask(self._model(scoring), prompt, values, fallback=fallback or unreadable)
        return with_tokens(step, wanted=scoring == "logprobs")

    async def candidate(
        self,
        question: str,
        segment: int,
        beam: Beam,
        passage: int | None,
        passages: Sequence[Document],
        language: str,
        context: SelfRagContext,
        scoring: Scoring,
    ) -> Candidate:
        """Write one continuation and judge it; a text that ends or repeats the answer is not judged."""
        answer = answer_so_far(beam)
        values: dict[str, Any] = {
            "question": question,
            "answer": answer,
            "count": str(context.segment_sentences),
        }
        source_text = {}
        source = None
        if passage is not None:
            document = passages[passage]
            source = document.metadata.get("file") or document.metadata.get("source")
            source_text = {"passages": render_passages([document], max_chars=self.max_passage_chars)}
        name = "continue_unaided" if passage is None else "continue_answer"
        prompt = self._prompt(name, language, context)
        scored = scoring == "logprobs"
        step = write(self._model(scoring), prompt, {**values, **source_text}, stream=False)
        written: Reply = await with_tokens(step, wanted=scored)
        text = tidy(written.value, context.segment_sentences)
        one = Candidate(
            segment=segment, beam=beam["number"], passage=passage, source=None if source is None else str(source),
            text=text, labels={}, probabilities={}, parts={}, f=None, score=None, kept=False, won=False, reason="",
        )  # fmt: skip
        if not text:
            return one
        if plain(text) in {plain(part.text) for part in sentences(answer)} | {
            plain(part["text"]) for part in beam["segments"]
        }:
            one["reason"] = "repeats the answer so far"
            return one
        name = "critique_usefulness" if passage is None else "critique"
        prompt = self._prompt(name, language, context)
        judged = {"question": question, "answer": answer, "statement": text, **source_text}
        step = ask(self._model(scoring), prompt, judged, fallback=unreadable)
        verdict: Reply = await with_tokens(step, wanted=scored)
        names = ("usefulness",) if passage is None else ("relevance", "support", "usefulness")
        one["labels"] = {
            each: _WORST[each] if verdict.value is None else str(getattr(verdict.value, each))
            for each in names
        }
        if verdict.value is None:
            one["labels"]["critique"] = "unusable"
        known = {each: probabilities(verdict, each, one["labels"][each]) for each in names}
        one["probabilities"] = known
        logprobs = [token.logprob for token in written.tokens] if scored else []
        one["parts"] = Parts(
            p=sequence_probability(logprobs),
            **{each: critique_score(known.get(each, {}), _FIELDS[each]) for each in _WORST},
        )._asdict()
        return one


def unreadable(error: Exception) -> None:
    """A structured answer that cannot be used is None; whatever else went wrong is raised."""
    if not isinstance(error, ModelOutputError):
        raise error


def probabilities(verdict: Reply, name: str, label: str) -> dict[str, float]:
    """The probabilities of a field's labels: the model's own where its tokens show them, else 1 on the label."""
    labels = _FIELDS[name]
    known = label_probabilities(verdict.tokens, name, label, labels) if verdict.value is not None else None
    return known or {each: float(each == label) for each in labels}


def tidy(text: str, count: int) -> str:
    """A continuation without citations of its own, at most `count` sentences; empty if it says END.

    Example:
        >>> tidy("The fan is loud. [1] It is red. It is old.", 2), tidy("END.", 1)
        ('The fan is loud. It is red.', '')
    """
    if _END.match(text):
        return ""
    bare = renumbered(text, {}).strip()
    found = sentences(bare)
    # a model that says something and then END means the end of its text
    if len(found) > 1 and _END.match(found[-1].text):
        found = found[:-1]
    kept = found[:count]
    return bare[kept[0].start : kept[-1].end].strip() if kept else ""
