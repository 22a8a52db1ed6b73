"""The evaluator that needs no model: lexical evidence, and vectors where there are some."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.documents import Document

from rag_kit.graphs.evaluators.base import Evaluator, Grading
from rag_kit.graphs.evaluators.thresholds import Thresholds
from rag_kit.graphs.steps import Steps
from rag_kit.models.extractive.evidence import PassageText
from rag_kit.models.extractive.usefulness import usefulness


class LexicalEvaluator(Evaluator):
    """Judge passages by the words, names, times and kinds of things they share with the question.

    Args:
        embeddings: Any LangChain embedding model; its cosines then count too.
        thresholds: Other thresholds than the fitted ones.
    """

    name = "lexical"
    thresholds = Thresholds(-0.5, 0.5)

    def __init__(self, *, embeddings: Any = None, thresholds: Thresholds | None = None) -> None:
        self.embeddings = embeddings
        if thresholds is not None:
            self.thresholds = thresholds

    def grade(self, question: str, passages: Sequence[Document], language: str) -> Steps[list[Grading]]:
        """Judge passages; see ``Evaluator.grade``."""
        yield from ()
        texts = [PassageText(n, doc.page_content, "") for n, doc in enumerate(passages, start=1)]
        return [Grading(2 * value - 1, "by words") for value in usefulness(question, texts)]
