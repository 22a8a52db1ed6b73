"""Parts with scripted behaviour for tests of the CRAG graph."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from rag_kit.graphs.evaluators.base import Evaluator, Grading, Thresholds
from rag_kit.graphs.running import compute


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


class Tasks(BaseChatModel):
    """Answers by the task that the prompt names; keeps the tasks and what it was shown."""

    replies: dict[str, str]
    asked: list[tuple[str, list[BaseMessage]]] = []
    before: Callable[[str], None] | None = None

    @property
    def _llm_type(self) -> str:
        return "tasks"

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        text = str(messages[0].content)
        task = text.partition("<task>")[2].partition("</task>")[0]
        with threading.Lock():
            self.asked.append((task, messages))
        if self.before is not None:
            self.before(task)
        message = AIMessage(
            self.replies[task], usage_metadata={"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
        )
        return ChatResult(generations=[ChatGeneration(message=message)])

    @property
    def tasks(self) -> list[str]:
        return [task for task, _ in self.asked]


def model(answer: str = "Done. [1]", keywords: str = '{"keywords": ["pump", "start"]}', **more: str) -> Tasks:
    """A model that answers and writes keywords."""
    return Tasks(replies={"answer": answer, "web_query": keywords, **more}, asked=[])
