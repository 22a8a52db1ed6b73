"""Reranking by a language model: passages graded one by one, or whole lists ordered in a sliding window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

from langchain_core.documents import Document

from rag_kit.concurrency.branches import describe_failure
from rag_kit.documents.identity import field_of
from rag_kit.errors import InvalidInputError
from rag_kit.prompts import render_passages
from rag_kit.prompts.grading import Grade, RankedPassages
from rag_kit.retrieval.asking import LanguagePrompts, grade_score, read_numbers
from rag_kit.retrieval.call import Call, failures_or_raise, value_or_raise
from rag_kit.retrieval.fields import check_count, check_model
from rag_kit.retrieval.rerank.base import Ranking, Reranker, by_scores


class ModelReranker(Reranker):
    """Base of the rerankers that show passages to a chat model.

    ``prompt`` has the variables ``question`` and ``passages``, or is one a language (``{"en": ..., "zh": ...}``);
    ``None`` for the kit's own, in ``language`` or in that of the query (``"auto"``). ``depth`` caps the model calls.
    """

    task: ClassVar[str]

    def __init__(
        self,
        llm: Any,
        *,
        prompt: Any = None,
        language: str = "auto",
        max_chars: int = 8_000,
        depth: int | None = None,
    ) -> None:
        super().__init__(depth=depth)
        self.llm = check_model(llm)
        self.prompts = LanguagePrompts(self.task, prompt, ("question", "passages"), language)
        self.max_chars = check_count("max_chars", max_chars)


class PointwiseReranker(ModelReranker):
    """Have a model grade each passage, all passages at the same time.

    The score, from 0 to 1, is how surely the passage helps to answer the query; the model's reason goes into the
    provenance. ``score_threshold=0.5`` of the retriever then keeps what the model calls relevant. A passage whose
    grade failed stays in its place, and the notes say so.

    Args:
        llm: A chat model.
        max_chars: Longest part of a passage that is shown to the model, in characters.
        **more: ``prompt`` (the kit's own is ``rerank_pointwise``), ``language``, ``depth``: see ``ModelReranker``.

    Example:
        >>> from langchain_core.language_models import FakeListChatModel
        >>> from rag_kit.retrieval import BM25Retriever, RerankRetriever
        >>> model = FakeListChatModel(responses=['{"relevant": true, "score": 0.9, "reason": "It says why."}'])
        >>> words = BM25Retriever.from_texts(["The fan is loud because it is worn."])
        >>> ranked = RerankRetriever(retriever=words, reranker=PointwiseReranker(model), score_threshold=0.5)
        >>> len(ranked.invoke("Why is the fan loud?"))
        1
    """

    name = "pointwise"
    task: ClassVar[str] = "rerank_pointwise"

    async def rank(self, query: str, documents: Sequence[Document], call: Call) -> Ranking:
        """Order the documents by the model's grade of each; see ``Reranker.rank``."""
        texts = [render_passages([doc], max_chars=self.max_chars) for doc in documents]
        values = [{"question": query, "passages": text} for text in texts]
        names = [f"grade of passage {number}" for number in range(1, len(documents) + 1)]
        outcomes = await call.ask(self.llm, self.prompts.choose(query), values, Grade, names)
        failed = failures_or_raise(outcomes, call)
        grades = [outcome.value for outcome in outcomes]  # None where the call failed
        scores = [None if grade is None else grade_score(grade) for grade in grades]
        details = [{name: field_of(grade, name) for name in ("relevant", "reason")} for grade in grades]
        notes = []
        if failed:
            failure = describe_failure(failed[0].name, failed[0].error)
            notes.append(
                f"degraded: rerank:{self.name}: {len(failed)} of {len(documents)} passages got no grade and stay in "
                f"their place ({failure})"
            )
        ranking = by_scores(scores, details=details, notes=notes)
        if not call.by_rule:
            return ranking
        # the scores are shares of words: that all passages count as failed keeps thresholds from them
        why = "graded by shared words ('extractive' is no language model), which no threshold is for"
        notes = [*ranking.notes, f"degraded: rerank:{self.name}: {why}"]
        return replace(ranking, failed=frozenset(range(len(documents))), notes=notes)


class ListwiseReranker(ModelReranker):
    """Have a model order the passages of a window, the window sliding from the last passage to the first.

    Each window starts ``step`` passages before the one after it, so the best passages of one take part in the
    next and can climb to the top. Whatever numbers the model gives, each passage stays exactly once: numbers that are
    out of range, repeated or none are left out, passages it forgot follow in their order, and the notes say so.

    Paper: Sun et al., Is ChatGPT Good at Search?, arXiv 2304.09542 (window 20, step 10).

    Args:
        llm: A chat model.
        window: Passages in one window, at least 2.
        step: How far the window moves, 1 to ``window``.
        max_chars: Longest part of each passage that is shown to the model, in characters.
        **more: ``prompt`` (as ``rerank_listwise``; may use ``count``), ``language``, ``depth``: as ``ModelReranker``.
    """

    name = "listwise"
    scored: ClassVar[bool] = False
    task: ClassVar[str] = "rerank_listwise"

    def __init__(
        self, llm: Any, *, window: int = 20, step: int = 10, max_chars: int = 2_000, **more: Any
    ) -> None:
        super().__init__(llm, max_chars=max_chars, **more)
        self.window, self.step = check_count("window", window), check_count("step", step)
        if self.window < 2 or self.step > self.window:
            raise InvalidInputError(
                f"window={window} and step={step} were given; the window must be at least 2, and the step at most the "
                "window, or passages between two windows would never be looked at."
            )

    async def rank(self, query: str, documents: Sequence[Document], call: Call) -> Ranking:
        """Order the documents window by window, from the last to the first; see ``Reranker.rank``."""
        order = list(range(len(documents)))
        notes: list[str] = []
        is_reordered = False
        bounds = windows(len(documents), self.window, self.step)
        for start, end in bounds:
            label = f"rerank:{self.name}" + (f", passages {start + 1} to {end}" if len(bounds) > 1 else "")
            in_window = order[start:end]
            reply = self._ask_for_order(query, [documents[position] for position in in_window], label, call)
            answer = await call.attempt(label, reply, "the order of these stays")
            if answer is None:
                continue
            # positions in the window, from 0, and what is wrong with the other numbers
            ranked, problems = read_numbers(field_of(answer, "ranking"), len(in_window))
            if not ranked:
                notes.append(f"degraded: {label}: the model gave no usable number, the order stays")
                continue
            is_reordered = True
            missing = [position for position in range(len(in_window)) if position not in ranked]
            if missing:
                problems.append(f"{len(missing)} missing")
            if problems:
                notes.append(f"{label}: of the model's numbers {', '.join(problems)}; no passage was lost")
            order[start:end] = [in_window[position] for position in [*ranked, *missing]]
        if bounds and not is_reordered:  # each window's failure is in the notes already
            notes.append(f"degraded: rerank:{self.name}: original order")
        return Ranking(order, [None] * len(documents), notes=notes)

    async def _ask_for_order(self, query: str, passages: list[Document], label: str, call: Call) -> Any:
        """Return the model's answer, which orders the passages by number from 1; raise if the call fails."""
        shown = render_passages([_cut(doc, self.max_chars) for doc in passages])
        values = {"question": query, "passages": shown, "count": len(passages)}
        (outcome,) = await call.ask(self.llm, self.prompts.choose(query), [values], RankedPassages, [label])
        return value_or_raise(outcome)


def windows(count: int, window: int, step: int) -> list[tuple[int, int]]:
    """Return the windows (start, end) over a list, the last one first: ``(25, 20, 10) -> [(5, 25), (0, 15)]``."""
    if count < 2:  # a single passage has no order
        return []
    bounds = [(max(0, count - window), count)]
    while bounds[-1][0] > 0:
        end = bounds[-1][1] - step
        bounds.append((max(0, end - window), end))
    return bounds


def _cut(doc: Document, limit: int) -> Document:
    text = doc.page_content
    return doc if len(text) <= limit else doc.model_copy(update={"page_content": text[: limit - 1] + "…"})
