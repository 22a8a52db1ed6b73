"""Helpers for tests of rewriting retrievers: a scripted chat model and a corpus searched by words."""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from rag_kit.concurrency.steps import Step
from rag_kit.documents import get_provenance, matches
from rag_kit.retrieval import RagKitRetriever
from rag_kit.retrieval.call import Call


class Scripted(BaseChatModel):
    """A chat model whose replies are given: a text, an exception, a function of the prompt, or a list of them.

    The last one of a list is repeated. It remembers each prompt as one text, and how many calls ran at once.
    """

    script: Any
    delay: float = 0
    prompts: Any = None
    lock: Any = None
    now: int = 0
    most: int = 0

    def model_post_init(self, context: Any) -> None:
        self.prompts, self.lock = [], threading.Lock()

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _begin(self, messages: list[BaseMessage]) -> Any:
        prompt = "\n".join(f"[{message.type}] {message.content}" for message in messages)
        with self.lock:
            self.prompts.append(prompt)
            self.now += 1
            self.most = max(self.most, self.now)
            reply = self.script
            if isinstance(reply, list):
                reply = reply[min(len(self.prompts), len(reply)) - 1]
        return reply(prompt) if isinstance(reply, Callable) else reply  # type: ignore[arg-type]

    def _end(self, reply: Any) -> ChatResult:
        with self.lock:
            self.now -= 1
        if isinstance(reply, BaseException):
            raise reply
        return ChatResult(generations=[ChatGeneration(message=AIMessage(content=reply))])

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        reply = self._begin(messages)
        time.sleep(self.delay)
        return self._end(reply)

    async def _agenerate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        reply = self._begin(messages)
        await asyncio.sleep(self.delay)
        return self._end(reply)


def pause(seconds: float) -> Step[None]:
    """A step that waits."""
    return Step("pause", lambda _: time.sleep(seconds), lambda _: asyncio.sleep(seconds))


class Words(RagKitRetriever):
    """Finds the documents that share words (or Chinese characters) with the query, most first.

    Remembers each request; fails for queries that hold ``fail_on``.
    """

    docs: list[Document]
    asked: Any = None
    delay: float = 0
    fail_on: str = ""

    def model_post_init(self, context: Any) -> None:
        super().model_post_init(context)
        if self.asked is None:
            self.asked = []

    def _find(self, query: str, call: Call) -> list[Document]:
        self.asked.append((query, call))
        if self.fail_on and self.fail_on in query:
            raise ConnectionError("the search is down")
        allowed = [doc for doc in self.docs if matches(call.filter, doc.metadata)]
        scored = [(len(_terms(query) & _terms(doc.page_content)), doc) for doc in allowed]
        return [doc for score, doc in sorted(scored, key=lambda pair: -pair[0]) if score]

    async def _search(self, query: str, call: Call) -> list[Document]:
        await pause(self.delay)
        return self._find(query, call)

    @property
    def queries(self) -> list[str]:
        return [query for query, _ in self.asked]


def _terms(text: str) -> set[str]:
    return set(re.findall(r"[a-z0-9]+|[\u4e00-\u9fff]", text.lower()))


def corpus(**texts: str) -> list[Document]:
    """Documents by id."""
    return [Document(text, id=name, metadata={"name": name}) for name, text in texts.items()]


def ids(found: list[Document]) -> list[str | None]:
    return [doc.id for doc in found]


def notes(found: list[Document]) -> list[str]:
    """The notes of the first document."""
    return list(get_provenance(found[0])["notes"])


def sent(found: list[Document]) -> list[str]:
    """Every text that was searched for, as the provenance tells it."""
    return list(get_provenance(found[0])["stages"][-1]["queries"])


async def both(retriever: Any, query: str, **kwargs: Any) -> list[Document]:
    """The result of invoke, after checking that ainvoke gives the same."""
    sync = retriever.invoke(query, None, **kwargs)
    assert await retriever.ainvoke(query, None, **kwargs) == sync
    return sync  # type: ignore[no-any-return]


async def both_raise(error: Any, match: str | None, retriever: Any, *arguments: Any, **options: Any) -> None:
    """Check that invoke and ainvoke raise the error with such a message."""
    with pytest.raises(error, match=match):
        retriever.invoke(*arguments, **options)
    with pytest.raises(error, match=match):
        await retriever.ainvoke(*arguments, **options)
