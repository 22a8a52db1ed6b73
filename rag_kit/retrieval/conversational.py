"""The retriever that makes a follow-up question complete before it searches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

from langchain_core.documents import Document
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from pydantic import BaseModel, Field

from rag_kit.errors import InvalidInputError
from rag_kit.prompts.rendering import render_history
from rag_kit.prompts.schemas import Passages, Query
from rag_kit.retrieval.call import Call
from rag_kit.retrieval.fusion import Search
from rag_kit.retrieval.rewriting import RewritingRetriever, folded, texts_of

_MAX_QUESTION_CHARS = 1_000  # of a completed question
_MAX_DRAFT_CHARS = 2_000  # of a draft answer


class ConversationalRetriever(RewritingRetriever):
    """Search for what the latest question of a conversation means.

    ``retriever.invoke("When did she die?", history=[...])``: a model rewrites the question so that it stands
    alone ("When did Jane Austen die?"), and that is searched for. Without a history the question is searched for as
    it is and no model is called. If the model fails, it is searched for as it is, and the provenance says so.

    Args:
        mode: ``"condense"`` searches for the complete question, ``"answer"`` for a draft answer to it, as HyDE does.
        max_history_chars: Most characters of history in a prompt, >= 200; of a longer one the newest turns are used.
        include_original: Search for the question as it was asked, too.
        prompt: In place of ``condense`` or ``draft_answer``; takes ``question``, and ``history`` if it is to see it.
        **more: See ``RewritingRetriever``.

    Calls also take ``history``: LangChain messages, ``(role, text)`` pairs, dicts with ``role`` and ``content``, or a
    chat message history, oldest first. Only turns of user and assistant count. The question may stand at the end.

    Example:
        >>> from langchain_core.language_models import FakeListChatModel
        >>> from rag_kit.retrieval import BM25Retriever
        >>> words = BM25Retriever.from_texts(["Jane Austen died in 1817.", "Emma is a novel by Jane Austen."])
        >>> model = FakeListChatModel(responses=["When did Jane Austen die? died"])
        >>> retriever = ConversationalRetriever.from_llm(model, words, k=1)
        >>> history = [("user", "Who wrote Emma?"), ("assistant", "Jane Austen.")]
        >>> [doc.page_content for doc in retriever.invoke("When did she die?", history=history)]
        ['Jane Austen died in 1817.']
    """

    task: ClassVar[str] = "condense"
    has_rule: ClassVar[bool] = True
    answer_form: ClassVar[type[BaseModel]] = Query
    call_arguments: ClassVar[frozenset[str]] = frozenset({"history"})
    keeps_conditions: ClassVar[bool] = True

    mode: Literal["condense", "answer"] = "condense"
    max_history_chars: int = Field(default=8_000, ge=200)
    include_original: bool = False

    def _prompt_name(self) -> str:
        return "draft_answer" if self.mode == "answer" else self.task

    def chain(self) -> Runnable[Mapping[str, Any], list[Document]]:
        """Make a step for chains that takes ``{"question", "history"}`` or ``{"input", "chat_history"}``.

        It works in both forms, takes ``k=`` and ``filter=``, and the history may be left out.

        Example:
            >>> from langchain_core.language_models import FakeListChatModel
            >>> from rag_kit.retrieval import BM25Retriever
            >>> words = BM25Retriever.from_texts(["Tea is hot.", "Ice is cold."])
            >>> step = ConversationalRetriever.from_llm(FakeListChatModel(responses=[""]), words).chain()
            >>> [doc.page_content for doc in step.invoke({"input": "Is tea hot?", "chat_history": []})]
            ['Tea is hot.']
        """

        def find(values: Mapping[str, Any], config: RunnableConfig, **kwargs: Any) -> list[Document]:
            question, history = _read_inputs(values)
            return self.invoke(question, config, history=history, **kwargs)

        async def afind(values: Mapping[str, Any], config: RunnableConfig, **kwargs: Any) -> list[Document]:
            question, history = _read_inputs(values)
            return await self.ainvoke(question, config, history=history, **kwargs)

        return RunnableLambda(find, afunc=afind, name=f"{self.get_name()}.chain")

    async def _rewrite(self, question: str, call: Call) -> list[Search]:
        """Make one search: for the complete question, or for a draft answer; none if the question is complete."""
        messages = earlier_messages(call.arguments.get("history"), question)
        history = render_history(messages, max_chars=self.max_history_chars)
        if not history:  # the question is complete as it is
            call.settled = True
            return []
        if len(history) < len(render_history(messages)):
            call.note("the oldest turns of the history were left out")
        values = {"history": history, "question": question}
        if self.mode == "answer":
            answers = await self._ask([values], call, form=Passages, name="draft_answer")
            texts = [text.strip()[:_MAX_DRAFT_CHARS] for text in texts_of(answers, "passages")]
        else:
            answers = await self._ask([values], call)
            lines = [" ".join(text.split()) for text in texts_of(answers, "query")]
            texts = [line for line in lines if len(line) <= _MAX_QUESTION_CHARS]
        # Any language will do: a follow-up such as a bare name may be in another one than the complete question.
        usable = [text for text in texts if folded(text)]
        if answers and not usable:
            call.note(f"degraded: {self.task}: the model gave nothing usable")
        if usable and folded(usable[0]) == folded(question):  # the model found nothing to complete
            call.settled = True
            return []
        role = "draft_answer" if self.mode == "answer" else "condensed"
        return [Search(text, role) for text in usable[:1]]


def _read_inputs(values: Any) -> tuple[Any, Any]:
    if not isinstance(values, Mapping) or not {"question", "input"} & values.keys():
        received = sorted(map(str, values)) if isinstance(values, Mapping) else type(values).__name__
        raise InvalidInputError(
            f"The chain was given {received}; it takes a dict with 'question' or 'input', and 'history' or "
            "'chat_history'."
        )
    question = values["question"] if "question" in values else values["input"]
    return question, values.get("history") or values.get("chat_history")


def earlier_messages(history: Any, question: str) -> list[Any]:
    """Return the messages before a question, which may itself be the last of them."""
    messages = getattr(history, "messages", history)  # a ChatMessageHistory
    if messages is None:
        return []
    if isinstance(messages, (str, bytes)) or not isinstance(messages, Sequence):
        raise InvalidInputError(
            f"history is {type(messages).__name__}; it must be a list of messages, oldest first: LangChain "
            "messages, (role, text) pairs, or dicts with 'role' and 'content'."
        )
    # compared as rendered, as a message may be an object, a pair or a dict
    question_is_last = messages and render_history(messages[-1:]) == render_history([("user", question)])
    return list(messages[:-1] if question_is_last else messages)
