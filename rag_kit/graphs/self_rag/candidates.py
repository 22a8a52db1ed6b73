"""One candidate: a continuation of a beam, from a passage or from none, and its critique."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from langchain_core.documents import Document

from rag_kit.concurrency.steps import Step
from rag_kit.graphs.running import ask, write
from rag_kit.graphs.self_rag.beams import (
    CRITIQUES,
    WORTH,
    answer_so_far,
    critique_score,
    plain,
    sequence_probability,
    tidy,
)
from rag_kit.graphs.self_rag.logprobs import Reply, label_probabilities, with_logprobs, with_tokens
from rag_kit.graphs.self_rag.nodes import SelfRagNodes, unreadable
from rag_kit.graphs.self_rag.state import Beam, Candidate, SelfRagContext, SelfRagState
from rag_kit.prompts import render_passages
from rag_kit.text import sentences

_WORST = {"relevance": "irrelevant", "support": "none", "usefulness": "1"}


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
        self, state: SelfRagState, context: SelfRagContext, beam: Beam, fallback: Any = unreadable
    ) -> Step[Reply]:
        """Ask whether documents are to be looked up for the next segment."""
        values = {"question": state["asked"], "answer": answer_so_far(beam)}
        return self._scored("retrieve_needed", state, context, values, fallback=fallback)

    async def candidate(
        self, state: SelfRagState, context: SelfRagContext, beam: Beam, passage: int | None
    ) -> Candidate:
        """Write one continuation and judge it; a text that ends or repeats the answer is not judged."""
        answer, document = answer_so_far(beam), None if passage is None else state["passages"][passage]
        one = new_candidate(state, beam, passage)
        values = {"question": state["asked"], "answer": answer}
        if document is not None:
            one["source"] = source_of(document)
            values["passages"] = render_passages([document], max_chars=self.max_passage_chars)
        name = "continue_unaided" if passage is None else "continue_answer"
        count = context.segment_sentences
        written = await self._scored(name, state, context, {**values, "count": str(count)})
        one["text"] = text = tidy(written.value, count)
        if not text:
            return one
        said = [part.text for part in sentences(answer)] + [part["text"] for part in beam["segments"]]
        if plain(text) in map(plain, said):
            one["reason"] = "repeats the answer so far"
            return one
        name = "critique_usefulness" if passage is None else "critique"
        verdict = await self._scored(name, state, context, {**values, "statement": text}, fallback=unreadable)
        for name in CRITIQUES[2:] if passage is None else CRITIQUES:
            label = _WORST[name] if verdict.value is None else str(getattr(verdict.value, name))
            one["labels"][name] = label
            one["probabilities"][name] = probabilities(verdict, name, label)
        if verdict.value is None:
            one["labels"]["critique"] = "unusable"
        one["parts"] = {name: critique_score(name, one["probabilities"].get(name, {})) for name in CRITIQUES}
        one["parts"]["p"] = sequence_probability([token.logprob for token in written.tokens])
        return one

    def _scored(
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
    return known or {each: float(each == label) for each in labels}
