"""The retriever that splits a question into parts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, ClassVar, Literal, NamedTuple

from langchain_core.documents import Document
from pydantic import BaseModel, PrivateAttr, model_validator

from rag_kit.errors import InvalidInputError
from rag_kit.prompts import render_passages
from rag_kit.prompts.rendering import render_history
from rag_kit.prompts.schemas import SubQuestions
from rag_kit.retrieval.base import Count
from rag_kit.retrieval.fusion import Search
from rag_kit.retrieval.prompting import LanguagePrompts, folded, texts_of
from rag_kit.retrieval.query_call import QueryCall
from rag_kit.retrieval.rewriting import Rewrites, RewritingRetriever
from rag_kit.text import detect_language
from rag_kit.text.citations.decline import DECLINED, is_declined

_MAX_CHARS = 500
ROLE = "sub_question"
_MAX_ANSWER = 500
_MAX_HISTORY = 8_000
_CITATION = re.compile(r"\s*\[\d{1,3}\]")


class DecompositionRetriever(RewritingRetriever):
    """Split a question that needs several facts into sub-questions, and search for each of them.

    ``mode="parallel"``: one model call gives all sub-questions, which are searched for at the same time. The best
    document of each comes first in the result, in turn, so that every part is represented as far as ``k``
    allows; the rest follows in the order of the fusion.

    ``mode="serial"``: for questions whose second part depends on the answer to the first. A model asks the first
    sub-question, answers it from the documents found, asks the next with these answers in view, and so on, until
    it has nothing more to ask or ``n`` is reached. Questions and answers stand in the provenance under ``steps``.

    A question that needs no parts is searched for as it is. So it is if the model fails, and the provenance says so.

    Papers: Khot et al.: Decomposed Prompting, arXiv 2210.02406; Press et al.: Measuring and Narrowing the
    Compositionality Gap in Language Models (self-ask), arXiv 2210.03350; Trivedi et al.: Interleaving Retrieval
    with Chain-of-Thought Reasoning, arXiv 2212.10509.

    Args:
        mode: ``"parallel"`` or ``"serial"``.
        n: Most sub-questions, 1 to 32. Serially, each takes one model call to ask it and one to answer it; the last
            is not answered.
        prompt: As for ``RewritingRetriever``; in place of the prompt ``decompose``, or ``decompose_step`` serially.
        answer_prompt: In place of the prompt ``answer``, for the answers between the steps. It takes ``question``
            and ``passages``.
        max_passage_chars: Most characters of passages in that prompt.

    All other arguments are those of ``RewritingRetriever``.

    Example:
        >>> from langchain_core.language_models import FakeListChatModel
        >>> from rag_kit.retrieval import BM25Retriever
        >>> words = BM25Retriever.from_texts(["The Rhine is 1230 km long.", "The Danube is 2850 km long."])
        >>> reply = '{"queries": ["How long is the Danube?", "How long is the Rhine?"]}'
        >>> retriever = DecompositionRetriever.from_llm(FakeListChatModel(responses=[reply]), words, k=2)
        >>> [doc.page_content for doc in retriever.invoke("Which is the longest of the two great rivers?")]
        ['The Danube is 2850 km long.', 'The Rhine is 1230 km long.']
    """

    task: ClassVar[str] = "decompose"
    answer_form: ClassVar[type[BaseModel]] = SubQuestions

    mode: Literal["parallel", "serial"] = "parallel"
    n: Rewrites = 4
    answer_prompt: Any = None
    max_passage_chars: Count = 6_000

    _answer_prompts: LanguagePrompts = PrivateAttr()

    @model_validator(mode="after")
    def _answers_can_be_written(self) -> DecompositionRetriever:
        if self.mode == "serial":
            self._answer_prompts = super()._load_prompts(self.answer_prompt, "answer")
        elif self.answer_prompt is not None:
            raise InvalidInputError("answer_prompt was given, but mode='parallel' writes no answers.")
        return self

    def _load_prompts(self, given: Any, name: str, *, needs: str = "question") -> LanguagePrompts:
        return super()._load_prompts(given, "decompose_step" if self.mode == "serial" else name, needs=needs)

    def answer_prompt_for(self, question: str) -> Any:
        """The prompt for the answers between the steps, in the language of the question."""
        return self._answer_prompts.choose(question)

    async def _rewrite(self, question: str, call: QueryCall) -> list[Search]:
        answers = await self._ask([{"question": question, "count": self.n}], call)
        parts = self.usable_parts(texts_of(answers, "queries"), question, call, most=self.n)
        call.settled = bool(answers) and not parts and self.on_empty(answers, call)
        if 0 < call.request.k < len(parts):
            call.note(
                f"k={call.request.k} is fewer than the {len(parts)} sub-questions: not all are represented"
            )
        return [Search(part, ROLE) for part in parts]

    async def _steps(self, call: QueryCall) -> list[Document]:
        if self.mode == "parallel":
            return await super()._steps(call)
        found = await _Serial(self, call.query, call).search()
        return self._merge(call, found)

    def _merge(self, call: QueryCall, found: Sequence[Search], represent: str = ROLE) -> list[Document]:
        return super()._merge(call, found, represent)

    def usable_parts(self, written: Sequence[str], question: str, call: QueryCall, *, most: int) -> list[str]:
        """The sub-questions worth a search."""
        return self._usable(written, question, call, most=most, max_chars=_MAX_CHARS)

    def on_empty(self, answers: Sequence[Any], call: QueryCall) -> bool:
        """Say why there are no parts: none are needed, or what was written is of no use."""
        if any(texts_of(answers, "queries")):
            call.note(f"degraded: {self.task}: the model gave no usable sub-question")
            return False
        call.note(f"{self.task}: the model sees no parts in the question")
        return True


class _Step(NamedTuple):
    """A sub-question and what the documents say to it; ``None`` for nothing, or when nobody asks any more."""

    question: str
    answer: str | None


class _Serial:
    """One serial decomposition of a `DecompositionRetriever`."""

    def __init__(self, owner: Any, question: str, call: QueryCall) -> None:
        self._owner = owner
        self._question = question
        self._call = call
        self._steps: list[_Step] = []

    async def search(self) -> list[Search]:
        """Ask, search, answer, and again; the question itself is searched for beside the first sub-question."""
        owner, call = self._owner, self._call
        found: list[Search] = []
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
                    part.query, [doc for one in latest if one.role == ROLE for doc in one.documents]
                )
            self._steps.append(_Step(part.query, answer))
            call.extra.setdefault("steps", []).append({"query": part.query, "answer": answer})
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
        return Search(parts[0], ROLE) if parts else None

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

    def _turns(self) -> list[tuple[str, str]]:
        turns = []
        for step in self._steps:
            nothing = DECLINED[detect_language(step.question)]
            turns += [("user", step.question), ("assistant", step.answer or nothing)]
        return turns
