"""A chat model that answers by the task of the prompt, for graphs that make many calls side by side."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import PrivateAttr

from rag_kit.models.extractive.blocks import Prompt, read_prompt

Answer = Callable[[Prompt], Any]


_RAGAS = re.compile(r"specified in JSON Schema:\n(\{.*\})Do not use single quotes")


def ragas_schema(text: str) -> dict[str, Any]:
    """The schema that a prompt of Ragas's asks for; nothing for another prompt."""
    found = _RAGAS.search(text)
    return json.loads(found[1]) if found else {}


def ragas_task(text: str) -> str:
    """Return the title of the schema that a Ragas prompt asks for, or ``translate`` where a prompt is adapted."""
    return "translate" if "You are a TRANSLATOR" in text else ragas_schema(text).get("title", "")


class ByTask(BaseChatModel):
    """Answers each task by a function of the prompt, a constant, or a list in turn; keeps what it was asked.

    A dict is given as JSON, an exception is raised. `seconds` is how long each answer takes.
    """

    answers: dict[str, Any]
    seconds: float = 0.0
    asked: list[tuple[str, str]] = []
    _lock: Any = PrivateAttr(default_factory=threading.Lock)

    @property
    def _llm_type(self) -> str:
        return "by-task"

    def tasks(self) -> list[str]:
        """The tasks asked for, in order."""
        return [task for task, _ in self.asked]

    def _reply(self, messages: list[BaseMessage]) -> ChatResult:
        prompt = read_prompt(messages)
        task = prompt.task or ragas_task(prompt.body)
        with self._lock:
            earlier = self.tasks().count(task)
            self.asked.append((task, prompt.body))
        answer = self.answers[task]
        if isinstance(answer, list):
            answer = answer[min(earlier, len(answer) - 1)]
        if task == "critique" and not isinstance(answer, BaseException):
            answer = critiques(prompt, answer)
        elif callable(answer):
            answer = answer(prompt)
        if isinstance(answer, BaseException):
            raise answer
        text = json.dumps(answer, ensure_ascii=False) if isinstance(answer, Mapping) else str(answer)
        usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
        message = AIMessage(text, usage_metadata=usage)
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        if self.seconds:
            threading.Event().wait(self.seconds)
        return self._reply(messages)

    async def _agenerate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        if self.seconds:
            await asyncio.sleep(self.seconds)
        return self._reply(messages)


def by_task(answers: Mapping[str, Any], **settings: Any) -> ByTask:
    """A fresh model."""
    return ByTask(answers=dict(answers), asked=[], **settings)


def labels(relevance: str = "relevant", support: str = "full", usefulness: int = 5) -> dict[str, Any]:
    """A critique."""
    return {"relevance": relevance, "support": support, "usefulness": usefulness}


def critiques(prompt: Prompt, answer: Any) -> Any:
    """The labels of each statement of a critique: a constant, or by a function that sees a prompt with it alone."""
    count = len(prompt.passages) // 2
    entries = []
    for passage, statement in zip(prompt.passages[:count], prompt.passages[count:], strict=True):
        body = f"{prompt.body}\n<statement>{statement.text}</statement>"
        given = answer(replace(prompt, passages=(passage,), body=body)) if callable(answer) else answer
        entries += [{"id": passage.number, **given}] if isinstance(given, Mapping) else []
    return {"labels": entries} if entries else ""


def passage_of(prompt: Prompt) -> str:
    """The text of the first passage."""
    return prompt.passages[0].text if prompt.passages else ""


def grades(grade: Callable[[str], Mapping[str, Any]]) -> Answer:
    """Answers ``grade_passages``: the grade of each passage's text, under its id."""
    return lambda prompt: {
        "grades": [{"id": one.number, **grade(one.text)} for one in prompt.passages],
    }


def first_sentence(prompt: Prompt) -> str:
    """A continuation: the passage's next sentence that the answer does not hold, else END."""
    answer = prompt.block("answer")
    parts = re.split(r"(?<=[.。])\s*", passage_of(prompt))
    return next((part for part in parts if part and part not in answer), "END")
