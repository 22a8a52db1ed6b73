"""The retriever that splits a question into parts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, ClassVar, Literal, Self

from langchain_core.documents import Document
from pydantic import BaseModel, PrivateAttr, model_validator

from rag_kit.prompts.rendering import render_history, render_passages
from rag_kit.prompts.schemas import SubQuestions
from rag_kit.retrieval.asking import LanguagePrompts
from rag_kit.retrieval.call import Call
from rag_kit.retrieval.fields import Rewrites
from rag_kit.retrieval.fusion import Search
from rag_kit.retrieval.rewriting import MAX_QUERY_CHARS, RewritingRetriever, folded, texts_of
from rag_kit.text import detect_language
from rag_kit.text.citations.decline import DECLINED, is_declined

ROLE = "sub_question"
_MAX_ANSWER_CHARS = 500  # of the answer to a sub-question
_MAX_PASSAGES_CHARS, _MAX_HISTORY_CHARS = 6_000, 8_000  # in a prompt
_Step = dict[str, str | None]  # "query": a sub-question, "answer": its answer, if there is one
_CITATION = re.compile(r"\s*\[\d{1,3}\]")


class DecompositionRetriever(RewritingRetriever):
    """Split a question that needs several facts into sub-questions, and search for each of them.

    ``mode="parallel"``: one model call gives all sub-questions, which are searched for at the same time. The best
    document of each comes first, in turn, as far as ``k`` allows; the rest follows in the order of the fusion.

    ``mode="serial"``: for questions whose second part depends on the answer to the first. A model asks the first
    sub-question, answers it from the documents found, asks the next with these answers in view, and so on, until
    it has nothing more to ask or ``n`` is reached. Questions and answers stand in the provenance under ``steps``.

    A question that needs no parts is searched for as it is; so it is, with a note, if the model fails.

    Papers: Khot et al.: Decomposed Prompting, arXiv 2210.02406; Press et al.: Measuring and Narrowing the
    Compositionality Gap in Language Models (self-ask), arXiv 2210.03350; Trivedi et al.: Interleaving Retrieval
    with Chain-of-Thought Reasoning, arXiv 2212.10509.

    Args:
        mode: ``"parallel"`` or ``"serial"``.
        n: Most sub-questions, 1 to 32; serially, each takes two model calls: to ask it and to answer it (not the last).
        prompt: As for ``RewritingRetriever``; in place of the prompt ``decompose``, or ``decompose_step`` serially.
        **more: See ``RewritingRetriever``.

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
    has_rule: ClassVar[bool] = True
    answer_form: ClassVar[type[BaseModel]] = SubQuestions
    represented_role: ClassVar[str] = ROLE
    keeps_conditions: ClassVar[bool] = True

    mode: Literal["parallel", "serial"] = "parallel"
    n: Rewrites = 4

    _answer_prompts: LanguagePrompts = PrivateAttr()

    @model_validator(mode="after")
    def _load_answer_prompts(self) -> Self:
        self._answer_prompts = LanguagePrompts("answer", None, (), self.language)
        return self

    def _prompt_name(self) -> str:
        return "decompose_step" if self.mode == "serial" else self.task

    async def _rewrite(self, question: str, call: Call) -> list[Search]:
        """Ask the model for all sub-questions, and make a search for each."""
        answers = await self._ask([{"question": question, "count": self.n}], call)
        texts = texts_of(answers, "queries")
        questions = self._usable_texts(texts, call, max_texts=self.n, max_chars=MAX_QUERY_CHARS)
        if answers and not questions:
            self._note_no_parts(answers, call)
        if call.k < len(questions):
            call.note(f"k={call.k} is fewer than the {len(questions)} sub-questions: not all are represented")
        return [Search(text, ROLE) for text in questions]

    async def _search(self, query: str, call: Call) -> list[Document]:
        if self.mode == "parallel":
            return await super()._search(query, call)
        return self._merge(call, await self._search_in_turn(call))

    async def _search_in_turn(self, call: Call) -> list[Search]:
        """Ask the model for a sub-question, search for it, answer it, and so on; return all searches.

        The question itself is searched for beside the first sub-question, or alone if there is none.
        """
        steps: list[_Step] = []
        results: list[Search] = []
        next_number = 1  # of the searches
        for number in range(1, self.n + 1):
            next_search = await self._next_search(steps, call)
            if next_search is None:
                break
            originals = self._original_search(call, [next_search]) if number == 1 else []
            searches = [*originals, next_search]
            answered = await self._make_searches(searches, call, next_number)
            results += answered
            next_number += len(searches)
            answer = None
            if number < self.n:  # the answer to the last sub-question would be of no use
                documents = [doc for search in answered if search.role == ROLE for doc in search.documents]
                answer = await self._answer_sub_question(next_search.query, documents, call, number)
            steps.append({"query": next_search.query, "answer": answer})
            call.extra["steps"] = steps
        if steps or call.settled:
            await call.keep_replies()
        if steps:
            return results
        return await self._make_searches(self._original_search(call, []), call)

    async def _next_search(self, steps: Sequence[_Step], call: Call) -> Search | None:
        """Ask the model for the next sub-question, given the answers so far; ``None`` if it has nothing more to ask."""
        turns = []  # the conversation so far, as the prompt shows it
        for step in steps:
            query, answer = str(step["query"]), step["answer"]
            turns += [("user", query), ("assistant", answer or DECLINED[detect_language(query)])]
        history = render_history(turns, max_chars=_MAX_HISTORY_CHARS)
        values = {"question": call.query, "history": history, "count": self.n - len(steps)}
        answers = await self._ask([values], call, name=f"sub-question {len(steps) + 1}")
        earlier = {folded(str(step["query"])) for step in steps}
        new_texts = [text for text in texts_of(answers, "queries") if folded(text) not in earlier]
        usable = self._usable_texts(new_texts[:1], call, max_texts=1, max_chars=MAX_QUERY_CHARS)
        if answers and not usable and not steps:
            self._note_no_parts(answers, call)
        return Search(usable[0], ROLE) if usable else None

    async def _answer_sub_question(
        self, sub_question: str, documents: Sequence[Document], call: Call, number: int
    ) -> str | None:
        """Answer a sub-question from the documents; ``None`` if they hold no answer.

        Its citations are removed: the next prompt shows the answer without the passages that they number.
        """
        if not documents:
            return None
        passages = render_passages(documents[: call.k], max_chars=_MAX_PASSAGES_CHARS)
        values = {"question": sub_question, "passages": passages}
        prompt = self._answer_prompts.choose(sub_question)
        replies = await self._ask([values], call, prompt=prompt, form=str, name=f"answer {number}")
        answer = " ".join(_CITATION.sub("", replies[0]).split()) if replies else ""
        return None if not answer or is_declined(answer) else answer[:_MAX_ANSWER_CHARS]

    def _note_no_parts(self, answers: Sequence[Any], call: Call) -> None:
        """Note why there is no usable sub-question; if the model named none at all, nothing went wrong."""
        if any(texts_of(answers, "queries")):
            call.note(f"degraded: {self.task}: the model gave no usable sub-question")
        else:
            call.note(f"{self.task}: the model sees no parts in the question")
            call.settled = True
