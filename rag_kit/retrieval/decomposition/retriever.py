"""The retriever that splits a question into parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from langchain_core.documents import Document
from pydantic import BaseModel, PrivateAttr, field_validator, model_validator

from rag_kit.errors import InvalidInputError
from rag_kit.prompts.schemas import SubQuestions
from rag_kit.retrieval.decomposition.serial import Serial
from rag_kit.retrieval.merging import Found
from rag_kit.retrieval.prompting import LanguagePrompts
from rag_kit.retrieval.query_call import QueryCall
from rag_kit.retrieval.rewriting import RewritingRetriever, check_rewrites
from rag_kit.retrieval.searching import Search
from rag_kit.retrieval.variants import texts_of

_MAX_CHARS = 500
ROLE = "sub_question"


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
    n: int = 4
    answer_prompt: Any = None
    max_passage_chars: int = 6_000

    _answer_prompts: LanguagePrompts = PrivateAttr()

    @field_validator("n", mode="before")
    @classmethod
    def _n_is_allowed(cls, value: Any) -> int:
        return check_rewrites("n", value)

    @field_validator("max_passage_chars")
    @classmethod
    def _length_is_allowed(cls, value: int) -> int:
        if value < 1:
            raise InvalidInputError(f"max_passage_chars={value} was given; it must be a whole number >= 1.")
        return value

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
        found = await Serial(self, call.query, call).search()
        return self._merge(call.query, call, found)

    def _merge(
        self, question: str, call: QueryCall, found: Sequence[Found], represent: str = ROLE
    ) -> list[Document]:
        return super()._merge(question, call, found, represent)

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
