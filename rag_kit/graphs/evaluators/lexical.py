"""The evaluator that needs no model call: evidence of words, names and times, and of vectors where there are some."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings

from rag_kit.concurrency.steps import Step
from rag_kit.graphs.evaluators.base import UNGRADED, Evaluator, Grading, Thresholds
from rag_kit.graphs.running import compute, values_side_by_side
from rag_kit.models.clients import (
    aembed_documents,
    aembed_query,
    check_embeddings,
    embed_documents,
    embed_query,
)
from rag_kit.retrieval.vectors import checked_vectors, reads, unit
from rag_kit.text.evidence.sentences import passage_texts
from rag_kit.text.evidence.usefulness import PassageUsefulness, usefulness


class LexicalEvaluator(Evaluator):
    """Judge passages by the words, names, times and kinds of things they share with the question.

    A logistic regression fitted on labelled pairs makes one confidence of them (`usefulness`). A passage that speaks
    of the same thing at another time than the one asked for scores lower. Passages are seen against each other: give
    all that were found for a question together.

    Args:
        embeddings: Any LangChain embedding model; its cosines then count too, with weights fitted for
            all-MiniLM-L6-v2. If it fails, words alone decide, and the reason says so. The packaged model reads English
            only, so Chinese questions are judged by words.
        thresholds: Other than the careful ones, at which hardly a right answer is lost; higher ones decline more.

    Raises:
        InvalidInputError: ``embeddings`` is not an embedding model.

    Example:
        >>> from rag_kit.concurrency.steps import run
        >>> found = [Document("Jane Austen wrote Emma in 1815."), Document("Emma is a town in Missouri.")]
        >>> [one.score > 0 for one in run(LexicalEvaluator().grade("Who wrote Emma?", found, "en"), {})]
        [True, False]
    """

    name = "lexical"
    thresholds = Thresholds(-0.65, 0.7)  # so low that at most .01 of all questions lose a right answer
    selective = False

    def __init__(self, *, embeddings: Any = None, thresholds: Thresholds | None = None) -> None:
        self.embeddings: Embeddings | None = None
        if embeddings is not None:
            self.embeddings, self.name = check_embeddings(embeddings), "lexical+vectors"
        self.thresholds = thresholds or self.thresholds

    async def grade(self, question: str, passages: Sequence[Document], language: str) -> list[Grading]:
        """Return a grading for each passage, in order (see ``Evaluator.grade``)."""
        cosines, failure = None, ""
        if self.embeddings is not None and reads(self.embeddings, question):
            try:
                cosines = await self._cosines(question, [passage.page_content for passage in passages])
            except Exception as error:  # noqa: BLE001 - any client; `ungraded` raises what ends the run
                failure = f"; without vectors: {self.ungraded(error).reason.removeprefix(UNGRADED)}"
        texts = passage_texts(passages)
        grades = await compute(lambda: usefulness(question, texts, cosines))
        return [Grading(2 * grade.value - 1, f"{_explain(grade)}{failure}") for grade in grades]

    async def _cosines(self, question: str, texts: list[str]) -> list[float]:
        """Return the cosine of the question and each passage; 0 beside a zero vector."""
        model: Any = self.embeddings
        # each step has a blocking and an async function
        query = Step("query", lambda _: embed_query(model, question), lambda _: aembed_query(model, question))
        texts_step = Step(
            "texts", lambda _: embed_documents(model, texts), lambda _: aembed_documents(model, texts)
        )
        vector, text_vectors = await values_side_by_side([query, texts_step])
        vectors = unit(checked_vectors([vector, *text_vectors], len(texts) + 1, model))
        return [float(cosine) for cosine in vectors[1:] @ vectors[0]]


def _explain(grade: PassageUsefulness) -> str:
    """Write in one line what made a passage's grade."""
    measures = grade.measures
    parts = [f"{measures['own']:.0%} of the question's terms in its best sentence"]
    if measures["timed"] and measures["outside"]:
        parts.append("its dates lie outside the time asked for")
    elif measures["timed"] and measures["undated"]:
        parts.append("no date, though a time is asked for")
    elif measures["timed"]:
        parts.append("its dates touch the time asked for")
    if "cosine" in measures:
        parts.append(f"cosine {measures['cosine']:.2f}")
    return ", ".join(parts)
