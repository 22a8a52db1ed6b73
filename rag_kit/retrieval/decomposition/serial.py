"""Sub-questions one after the other, each with the answers to the earlier ones in view."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.documents import Document

from rag_kit.prompts import render_passages
from rag_kit.prompts.rendering import render_history
from rag_kit.retrieval.merging import Found
from rag_kit.retrieval.query_call import QueryCall
from rag_kit.retrieval.searching import Search
from rag_kit.retrieval.variants import folded, texts_of
from rag_kit.text import detect_language
from rag_kit.text.citations.decline import DECLINED, is_declined

_MAX_ANSWER = 500
_MAX_HISTORY = 8_000
_CITATION = re.compile(r"\s*\[\d{1,3}\]")
_ROLE = "sub_question"


@dataclass(frozen=True)
class Step:
    """A sub-question and what the documents say to it; ``None`` for nothing, or when nobody asks any more."""

    question: str
    answer: str | None


class Serial:
    """One serial decomposition.

    Args:
        owner: The `DecompositionRetriever`.
        question: The user's question.
        call: The state of the call.
    """

    def __init__(self, owner: Any, question: str, call: QueryCall) -> None:
        self._owner = owner
        self._question = question
        self._call = call
        self._steps: list[Step] = []

    async def search(self) -> list[Found]:
        """Ask, search, answer, and again; the question itself is searched for beside the first sub-question."""
        owner, call = self._owner, self._call
        found: list[Found] = []
        searched = 0
        while len(self._steps) < owner.n:
            part = await self._next_part()
            if part is None:
                break
            own = owner._original(self._question, call, [part]) if not self._steps else []
            latest = await owner._search([*own, part], call, searched)
            found += latest
            searched += len(own) + 1
            answer = None
            if len(self._steps) + 1 < owner.n:
                answer = await self._answer(
                    part.query, [doc for one in latest if one.role == _ROLE for doc in one.documents]
                )
            self._add(Step(part.query, answer))
        if self._steps or call.settled:
            await call.keep_answers()
        if not self._steps:
            found = await owner._search(owner._original(self._question, call, []), call)
        return found

    async def _next_part(self) -> Search | None:
        owner, call = self._owner, self._call
        values = {
            "question": self._question,
            "history": render_history(self._turns(), max_chars=_MAX_HISTORY),
            "count": owner.n - len(self._steps),
        }
        answers = await owner._ask([values], call, name=f"sub-question {len(self._steps) + 1}")
        asked = {folded(step.question) for step in self._steps}
        written = [text for text in texts_of(answers, "queries") if folded(text) not in asked]
        parts = owner.usable_parts(written[:1], self._question, call, most=1)
        if answers and not parts and not self._steps:
            call.settled = owner.on_empty(answers, call)
        return Search(parts[0], _ROLE) if parts else None

    async def _answer(self, part: str, documents: Sequence[Document]) -> str | None:
        if not documents:
            return None
        passages = render_passages(documents[: self._call.request.k], max_chars=self._owner.max_passage_chars)
        written = await self._owner._ask(
            [{"question": part, "passages": passages}],
            self._call,
            prompt=self._owner.answer_prompt_for(part),
            form=str,
            name=f"answer {len(self._steps) + 1}",
        )
        answer = " ".join(_CITATION.sub("", written[0]).split()) if written else ""
        return None if not answer or is_declined(answer) else answer[:_MAX_ANSWER]

    def _add(self, step: Step) -> None:
        self._steps.append(step)
        answered = self._call.extra.setdefault("steps", [])
        answered.append({"query": step.question, "answer": step.answer})

    def _turns(self) -> list[tuple[str, str]]:
        turns = []
        for step in self._steps:
            nothing = DECLINED[detect_language(step.question)]
            turns += [("user", step.question), ("assistant", step.answer or nothing)]
        return turns
