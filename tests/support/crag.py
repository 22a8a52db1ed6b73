"""Parts with scripted behaviour for tests of the CRAG graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.documents import Document

from rag_kit.graphs.evaluators.base import Evaluator, Grading, Thresholds
from rag_kit.graphs.running import compute
from support.by_task import ByTask, by_task


class Marked(Evaluator):
    """Takes the confidence from the first of its marks that a text holds; keeps what it was asked."""

    name = "marked"
    thresholds = Thresholds(-0.5, 0.5)

    def __init__(self, marks: dict[str, float], default: float = -0.9) -> None:
        self.marks = marks
        self.default = default
        self.asked: list[list[str]] = []

    async def grade(self, question: str, passages: Sequence[Document], language: str) -> list[Grading]:
        self.asked.append([passage.page_content for passage in passages])
        return await compute(lambda: [Grading(self.score(p.page_content), "by mark") for p in passages])

    def score(self, text: str) -> float:
        return next((score for mark, score in self.marks.items() if mark in text), self.default)


def model(
    answer: Any = "Done. [1]", keywords: Any = '{"keywords": ["pump", "start"]}', **more: Any
) -> ByTask:
    """A model that answers and writes keywords."""
    return by_task({"answer": answer, "web_query": keywords, **more})
