"""A model and a retriever that wait as long as real ones do and answer by script."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any

from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from rag_kit.concurrency.steps import Step
from rag_kit.models.replies import estimate_tokens
from rag_kit.retrieval import RagKitRetriever
from rag_kit.retrieval.call import Call

MODEL, SEARCH = 0.2, 0.05  # seconds
TEXT = "Passage {} tells about the pump. It starts at 40 degrees."
PASSAGES = 5  # most that a beam's critique judges in one call
_YES = {"relevant": True, "score": 0.9, "reason": "It says when."}
#: Replies by the task that a prompt names.
REPLIES: dict[str, Any] = {
    "retrieve_needed": {"retrieve": "yes"},
    "grade_passage": _YES,
    "grade_support": _YES,
    "grade_usefulness": _YES,
}


def task_of(messages: list[BaseMessage]) -> str:
    """The task that a prompt of the kit names in its first message."""
    return str(messages[0].content).partition("<task>")[2].partition("</task>")[0]


def by_task(messages: list[BaseMessage]) -> str:
    """The reply to the task of a prompt; other tasks are answered with a cited sentence."""
    task = task_of(messages)
    if task == "grade_passages":
        count = str(messages[-1].content).count("</passage>")
        return json.dumps({"grades": [{"id": number, **_YES} for number in range(1, count + 1)]})
    if task == "critique":
        label = {"relevance": "relevant", "support": "full", "usefulness": 4}
        return json.dumps({"labels": [{"id": number, **label} for number in range(1, PASSAGES + 1)]})
    return json.dumps(REPLIES[task]) if task in REPLIES else "It starts at 40 degrees.[1]"


class Model(BaseChatModel):
    """Answers after ``delay`` seconds: a text, or what a function makes of the prompt."""

    reply: str | Callable[[list[BaseMessage]], str] = by_task
    delay: float = MODEL

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _result(self, messages: list[BaseMessage]) -> ChatResult:
        text = self.reply if isinstance(self.reply, str) else self.reply(messages)
        sent, got = estimate_tokens("\n".join(message.text for message in messages)), estimate_tokens(text)
        usage = {"input_tokens": sent, "output_tokens": got, "total_tokens": sent + got}
        return ChatResult(generations=[ChatGeneration(message=AIMessage(text, usage_metadata=usage))])

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        if self.delay:
            time.sleep(self.delay)
        return self._result(messages)

    async def _agenerate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        if self.delay:
            await asyncio.sleep(self.delay)
        return self._result(messages)


class Leaf(RagKitRetriever):
    """Finds ``count`` passages after ``delay`` seconds, others for each query where ``varied``."""

    delay: float = SEARCH
    count: int = 4
    text: str = TEXT
    varied: bool = True

    async def _search(self, query: str, call: Call) -> list[Document]:
        if self.delay:
            await Step("wait", lambda _: time.sleep(self.delay), lambda _: asyncio.sleep(self.delay))
        tail = f" {query}" if self.varied else ""
        return [Document(self.text.replace("{}", str(n)) + tail, id=f"{n}{tail}") for n in range(self.count)]
