"""The retriever that makes a follow-up question complete before it searches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from langchain_core.documents import Document
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from pydantic import BaseModel, Field, PrivateAttr, model_validator

from rag_kit.errors import InvalidInputError
from rag_kit.prompts.rendering import Markup, escape_tags, render_history
from rag_kit.prompts.schemas import Passages, Query
from rag_kit.retrieval.fusion import Search
from rag_kit.retrieval.prompting import LanguagePrompts, folded, texts_of
from rag_kit.retrieval.query_call import QueryCall
from rag_kit.retrieval.rewriting import RewritingRetriever

_MAX_QUESTION = 1_000
_MAX_DRAFT = 2_000
_QUESTION_KEYS = ("question", "input")
_HISTORY_KEYS = ("history", "chat_history")
# Turns leave for the summary in groups, so that several questions in a row share one (cached) summary.
_GROUP = 4
_SUMMARY_SHARE = 4
MAX_SUMMARISED = 64_000


class ConversationalRetriever(RewritingRetriever):
    """Search for what the latest question of a conversation means.

    ``retriever.invoke("When did she die?", history=[...])``: a model rewrites the question so that it stands
    alone ("When did Jane Austen die?"), and that is searched for. At the first turn, when there is no history,
    the question is searched for as it is and no model is called. If the model fails, the question is searched
    for as it is, and the provenance says so.

    A history longer than ``max_history_chars`` is shortened first: a model summarises the older turns in at most
    a quarter of that length, the newest are kept word for word. If that fails, the newest turns are used alone.

    Args:
        mode: ``"condense"`` searches for the complete question, ``"answer"`` for a draft answer to it, which
            resembles the documents more than a question does (as in HyDE, with the conversation in view).
        max_history_chars: Most characters of history in a prompt, >= 200.
        include_original: Search for the question as it was asked, too.
        prompt: As for ``RewritingRetriever``; in place of ``condense`` or ``draft_answer``. It takes ``question``,
            and ``history`` if it is to see it.
        summary_prompt: In place of ``summarise_history``; it takes ``history``, and may take ``max_chars``.

    All other arguments are those of ``RewritingRetriever``.

    Calls take one more argument, ``history``: LangChain messages, ``(role, text)`` pairs, dicts with ``role`` and
    ``content``, or a chat message history, oldest first. Only turns of user and assistant count. The question
    itself may stand at the end. ``chain()`` gives a step that takes the two as a dict.

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
    answer_form: ClassVar[type[BaseModel]] = Query
    call_arguments: ClassVar[frozenset[str]] = frozenset({"history"})

    mode: Literal["condense", "answer"] = "condense"
    max_history_chars: int = Field(default=8_000, ge=200)
    include_original: bool = False
    summary_prompt: Any = None

    _summary_prompts: LanguagePrompts = PrivateAttr()

    @model_validator(mode="after")
    def _summaries_can_be_written(self) -> ConversationalRetriever:
        name, needs = "summarise_history", "history"
        self._summary_prompts = super()._load_prompts(self.summary_prompt, name, needs=needs)
        return self

    def _load_prompts(self, given: Any, name: str, *, needs: str = "question") -> LanguagePrompts:
        return super()._load_prompts(given, "draft_answer" if self.mode == "answer" else name, needs=needs)

    def chain(self) -> Runnable[Mapping[str, Any], list[Document]]:
        """A step for chains that takes ``{"question", "history"}`` or ``{"input", "chat_history"}``.

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
            question, history = _inputs(values)
            return self.invoke(question, config, history=history, **kwargs)

        async def afind(values: Mapping[str, Any], config: RunnableConfig, **kwargs: Any) -> list[Document]:
            question, history = _inputs(values)
            return await self.ainvoke(question, config, history=history, **kwargs)

        return RunnableLambda(find, afunc=afind, name=f"{self.get_name()}.chain")

    async def _rewrite(self, question: str, call: QueryCall) -> list[Search]:
        history = History.of(call.request.extra.get("history"), question, self.max_history_chars)
        if not history.turns:
            call.settled = True
            return []
        summary = (await self._summary(question, history, call)) if history.is_long else None
        values = {"history": history.text(summary), "question": question}
        drafts = self.mode == "answer"
        most, role = (_MAX_DRAFT, "draft_answer") if drafts else (_MAX_QUESTION, "condensed")
        if drafts:
            answers = await self._ask([values], call, form=Passages, name="draft_answer")
            written = [text.strip()[:most] for text in texts_of(answers, "passages")]
        else:
            answers = await self._ask([values], call)
            written = [" ".join(text.split()) for text in texts_of(answers, "query")]
        # Not compared with the script of the question: a bare name may be asked about in any language.
        usable = [text for text in written if folded(text) and len(text) <= most]
        if answers and not usable:
            call.note(f"degraded: {self.task}: the model gave nothing usable")
        if usable and folded(usable[0]) == folded(question):
            call.settled = True
            return []
        return [Search(usable[0], role)] if usable else []

    async def _summary(self, question: str, history: History, call: QueryCall) -> str | None:
        older, is_cut = history.older()
        if is_cut:
            call.note("the oldest turns of the history were left out of its summary")
        prompt = self._summary_prompts.choose(question)
        values = {"history": older, "max_chars": history.summary_chars}
        written = await self._ask([values], call, prompt=prompt, form=str, name="summarise_history")
        if not written:
            return None
        call.note("the older turns of the history were summarised")
        return str(written[0])[: history.summary_chars]


def _inputs(values: Any) -> tuple[Any, Any]:
    """Question and history out of a chain's dict."""
    keys = [key for key in _QUESTION_KEYS if isinstance(values, Mapping) and key in values]
    if not keys:
        got = sorted(map(str, values)) if isinstance(values, Mapping) else type(values).__name__
        raise InvalidInputError(
            f"The chain was given {got}; it takes a dict with {' or '.join(map(repr, _QUESTION_KEYS))}, and "
            f"{' or '.join(map(repr, _HISTORY_KEYS))}."
        )
    return values[keys[0]], next((values[key] for key in _HISTORY_KEYS if values.get(key) is not None), None)


@dataclass(frozen=True)
class History:
    """What was said before a question: each turn of user and assistant as a tagged block, oldest first."""

    turns: tuple[str, ...]
    max_chars: int

    @classmethod
    def of(cls, messages: Any, question: str, max_chars: int) -> History:
        """Read messages in any usual form; the question itself at their end is no part of the history.

        Raises:
            InvalidInputError: If they are no list of messages.
        """
        messages = getattr(messages, "messages", messages)  # a ChatMessageHistory
        if messages is None:
            messages = []
        if isinstance(messages, (str, bytes)) or not isinstance(messages, Sequence):
            raise InvalidInputError(
                f"history is {type(messages).__name__}; it must be a list of messages, oldest first: LangChain "
                "messages, (role, text) pairs, or dicts with 'role' and 'content'."
            )
        turns = [block for item in messages if (block := str(render_history([item])))]
        if turns and turns[-1] == str(render_history([("user", question)])):
            turns.pop()
        return cls(tuple(turns), max_chars)

    @property
    def summary_chars(self) -> int:
        """Most characters of a summary."""
        return max(1, self.max_chars // _SUMMARY_SHARE)

    @property
    def is_long(self) -> bool:
        """Whether it does not fit as it is."""
        return _length(self.turns) > self.max_chars

    def parts(self) -> tuple[Sequence[str], Sequence[str]]:
        """The turns to summarise, and the newest ones, which fit beside the summary."""
        room = self.max_chars - self.summary_chars - len(summary_turn("")) - 1
        first = len(self.turns)
        while first and _length(self.turns[first - 1 :]) <= room:
            first -= 1
        grouped = -(-first // _GROUP) * _GROUP
        first = grouped if grouped < len(self.turns) else first
        return self.turns[:first], self.turns[first:]

    def text(self, summary: str | None = None) -> Markup:
        """The text for the prompt: a summary and the newest turns; without a summary the newest that fit."""
        if not self.is_long:
            return Markup("\n".join(self.turns))
        if summary:
            return Markup("\n".join([summary_turn(summary), *self.parts()[1]]))
        return _newest(self.turns, self.max_chars)

    def older(self) -> tuple[Markup, bool]:
        """What is to be summarised, and whether the oldest of it had to be left out."""
        older, _ = self.parts()
        text = _newest(older, MAX_SUMMARISED)
        return text, len(text) < _length(older)


def summary_turn(summary: str) -> str:
    """A summary as the first turn of what is left."""
    return f'<turn role="summary">{escape_tags(summary)}</turn>'


def _newest(turns: Sequence[str], room: int) -> Markup:
    """The newest turns that fit; of a newest one that is too long itself, the beginning."""
    kept: list[str] = []
    for turn in reversed(turns):
        room -= len(turn) + (1 if kept else 0)
        if room < 0:
            if not kept:
                closing = "</turn>"
                kept.append(turn[: max(0, len(turn) + room - len(closing))] + closing)
            break
        kept.append(turn)
    return Markup("\n".join(reversed(kept)))


def _length(turns: Sequence[str]) -> int:
    return sum(map(len, turns)) + max(0, len(turns) - 1)
