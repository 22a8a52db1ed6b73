"""Scripted judges: answers by task over HTTP, and fixed vectors."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from langchain_core.embeddings import Embeddings

from rag_kit.evaluation.examples import Example
from rag_kit.evaluation.outputs import Output
from support.by_task import ragas_task
from support.openai_server import Recorded

#: Folder with prompt files of the tests' own, for RAG_KIT_PROMPTS.
PROMPTS = Path(__file__).parent / "prompts"
_TASK = re.compile(r"<task>(\w+)</task>")


def served(answers: Mapping[str, Any]) -> Callable[[Recorded], Any]:
    """A script of the OpenAI-compatible server: answers by task, in turn where they are a list."""
    turn: dict[str, int] = {}

    def reply(request: Recorded) -> Any:
        found = _TASK.search(request.prompt)
        task = found[1] if found else ragas_task(request.prompt)
        answer = answers[task]
        if isinstance(answer, list):
            place = turn.get(task, 0)
            turn[task] = place + 1
            answer = answer[min(place, len(answer) - 1)]
        return answer(request) if callable(answer) else answer

    return reply


class FixedVectors(Embeddings):
    """Vectors by text; an unknown text is an error."""

    def __init__(self, vectors: Mapping[str, list[float]]) -> None:
        self.vectors = dict(vectors)
        self.batches: list[list[str]] = []

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Look them up."""
        self.batches.append(list(texts))
        return [self.vectors[text] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        """Look it up."""
        return self.embed_documents([text])[0]

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        """Look them up, without a thread."""
        return self.embed_documents(texts)


def verdicts(*values: int, names: str = "abcdefghij") -> dict[str, Any]:
    """Verdicts on the statements "Statement a.", "Statement b.", ..."""
    return {
        "statements": [
            {"statement": f"Statement {name}.", "reason": "As scripted.", "verdict": value}
            for name, value in zip(names, values, strict=False)
        ]
    }


def split(count: int, names: str = "abcdefghij") -> dict[str, Any]:
    """So many statements."""
    return {"statements": [f"Statement {name}." for name in names[:count]]}


def row(
    question: str = "What is it?",
    answer: str | None = "It is so.",
    contexts: list[str] | None = None,
    reference: str | None = "It is so.",
) -> tuple[Example, Output]:
    """An example and an output."""
    example = Example("q1", question, reference=reference)
    passages = ["A passage."] if contexts is None else contexts
    return example, Output.of({"answer": answer, "documents": passages})
