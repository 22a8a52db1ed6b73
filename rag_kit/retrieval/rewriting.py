"""The base of retrievers that have a model rewrite the question, search with what it wrote, and fuse."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from os import PathLike
from typing import Any, ClassVar, Literal, Self, Unpack

from langchain_core.documents import Document
from langchain_core.runnables import Runnable
from pydantic import BaseModel, PrivateAttr, field_validator, model_validator

from rag_kit.concurrency.steps import Logic
from rag_kit.documents.identity import field_of
from rag_kit.errors import InvalidInputError
from rag_kit.models import JsonCache
from rag_kit.models.json_cache import model_identity
from rag_kit.prompts.fields import NOTHING
from rag_kit.retrieval.asking import LanguagePrompts
from rag_kit.retrieval.base import AskingRetriever
from rag_kit.retrieval.call import Call
from rag_kit.retrieval.fields import Fusion, InnerRetriever, Model, RrfK, Weights
from rag_kit.retrieval.fusion import Search, merge
from rag_kit.retrieval.settings import RewritingSettings
from rag_kit.text import detect_language, fold

MAX_QUERY_CHARS = 500  # of a text that is a question
_MAX_SINGLE_LINE_CHARS = 2_000  # texts that may be longer are passages, whose line breaks stay


class RewritingRetriever(AskingRetriever):
    """Base of the retrievers that rewrite the question with a model.

    Whatever the model does, the question itself is searched for at least: no answer, a useless one, or a budget
    that is used up leads to the plain search, and ``notes`` in the provenance say so ("degraded: ...").
    The last stage of each document holds the question and, under ``queries``, every text that was searched for.

    Args:
        llm: A chat model, or another runnable that takes messages.
        retriever: Any LangChain retriever, or another runnable from a string to documents.
        prompt: A prompt from ``load_prompt``, any ``ChatPromptTemplate`` with the variable ``question``, or one a
            language (``{"en": ..., "zh": ...}``). ``None`` for the kit's own, in the language of the question.
        language: ``"en"`` or ``"zh"`` for the prompt; ``"auto"`` goes by the question.
        include_original: Search for the question too.
        fusion: How several lists are fused: ``"rrf"``, or ``"convex"``, the weighted mean of z-scores.
        rrf_k: The ``k`` of reciprocal rank fusion.
        weights: One weight a search, in order, the question first if it is included; the last one holds for all
            further ones, so ``[2, 1]`` counts the question twice as much as each rewrite. 0 leaves a search out.
        k: Most documents to return; ``None`` for all that the searches find with the retriever's own ``k``.
        cache: A ``rag_kit.models.JsonCache``, or a path for one: what the model wrote for the same prompt, model,
            endpoint and question is taken from there, at no call.
        **more: ``fetch_k``, ``on_error``, ``timeout``, ``max_calls``, ``deadline``...: see ``AskingRetriever``.

    Raises:
        RagKitError: All searches fail or, with ``on_error="raise"``, the model or a search does, or a cap is reached.
    """

    task: ClassVar[str]
    answer_form: ClassVar[type[BaseModel]]
    represented_role: ClassVar[str] = ""  # of the searches whose best documents come first
    #: The texts keep the conditions of the question, so a retriever inside reads them there and not in the question.
    keeps_conditions: ClassVar[bool] = False

    #: The embedded model, which is no language model, does the task by a rule; else its answers are not used.
    has_rule: ClassVar[bool] = False

    other_names: ClassVar[Mapping[str, str]] = {
        "llm_chain": "llm= and, for words of your own, prompt=; or from_llm(llm, retriever)",
        "parser_key": "nothing: answers are read in any form",
    }
    k_may_be_none: ClassVar[bool] = True

    k: int | None = 4  # type: ignore[assignment]
    llm: Model
    retriever: InnerRetriever
    prompt: Any = None
    language: Literal["auto", "en", "zh"] = "auto"
    include_original: bool = True
    fusion: Fusion = "rrf"
    rrf_k: RrfK = 60
    weights: Weights = None
    cache: JsonCache | None = None

    _prompts: LanguagePrompts = PrivateAttr()

    @classmethod
    def from_llm(
        cls,
        llm: Runnable[Any, Any],
        retriever: Any,
        *,
        prompt: Any = None,
        k: int | None = 4,
        **settings: Unpack[RewritingSettings],
    ) -> Self:
        """Make the retriever from a model and the retriever to search with; ``settings`` are any further arguments."""
        options: Any = settings  # Any, for not all keys are fields of this class
        return cls(llm=llm, retriever=retriever, prompt=prompt, k=k, **options)

    @field_validator("cache", mode="before")
    @classmethod
    def _open_cache(cls, value: Any) -> Any:
        return JsonCache(value) if isinstance(value, (str, PathLike)) else value

    @model_validator(mode="after")
    def _check_and_load_prompts(self) -> Self:
        if self.cache is not None and model_identity(self.llm) is None:
            raise InvalidInputError(
                f"cache was given, but llm is {type(self.llm).__name__}, which has no identity of its own; "
                "give a LangChain chat model, or leave cache out."
            )
        self._prompts = LanguagePrompts(self._prompt_name(), self.prompt, ("question",), self.language)
        return self

    def _prompt_name(self) -> str:
        """Return the name of the kit's own prompt."""
        return self.task

    @abstractmethod
    def _rewrite(self, question: str, call: Call) -> Logic[list[Search]]:
        """Ask the model, and return the searches to make; an empty list leads to the plain search."""

    async def _search(self, query: str, call: Call) -> list[Document]:
        rewritten = await self._rewrite(query, call)
        if rewritten or call.settled:
            await call.keep_replies()
        searches = await self._make_searches([*self._original_search(call, rewritten), *rewritten], call)
        return self._merge(call, searches)

    async def _ask(
        self,
        values: Sequence[Mapping[str, Any]],
        call: Call,
        *,
        prompt: Any = None,
        form: Any = None,
        name: str = "",
    ) -> list[Any]:
        """Ask the model once for each set of values; failed answers are left out, and noted or raised."""
        name = name or self.task
        prompt = prompt or self._prompts.choose(call.query)
        names = [name if len(values) == 1 else f"{name} {number}" for number in range(1, len(values) + 1)]
        outcomes = await call.ask(self.llm, prompt, values, form or self.answer_form, names)
        replies = call.note_replies(outcomes, self.llm)
        if call.by_rule and not self.has_rule:  # the embedded model answered, which has no rule for this task
            return []
        return replies

    async def _make_searches(self, searches: Sequence[Search], call: Call, first: int = 1) -> list[Search]:
        """Make the searches whose weight is above 0; return the answered ones, with weight and documents.

        ``first`` is the number of the first one among all searches of the call; the weights go by these numbers.
        """
        all_weights = self._weights(first - 1 + len(searches))
        to_make = []
        for search, weight in zip(searches, all_weights[first - 1 :], strict=True):
            if weight > 0:
                to_make.append(replace(search, weight=weight, retriever=search.retriever or self.retriever))
        question = None if self.keeps_conditions else call.question
        return await call.search_all(to_make, call.fetch(self.fetch_k), first=first, question=question)

    def _weights(self, count: int) -> list[float]:
        """Return the weights of ``count`` searches; the last one is repeated: ``weights=[2, 1]`` -> ``[2, 1, 1]``."""
        own_weights = list(self.weights or [1.0])
        weights = (own_weights + [own_weights[-1]] * count)[:count]
        # All weights are 0 if the question, of weight 0, is the only search: it is made nevertheless.
        return weights if any(weights) else [1.0] * count

    def _original_search(self, call: Call, rewritten: Sequence[Search]) -> list[Search]:
        """Return a list of the search for the question itself; empty if that is not wanted beside rewritten ones."""
        if not rewritten and not call.settled:
            call.note(f"degraded: {self.task}: searched with the question alone")
        # a rewritten search with a retriever of its own is made with the question's words or vector too
        holds_question = any(search.retriever is not None for search in rewritten)
        if rewritten and (holds_question or not self.include_original):
            return []
        return [Search(call.query, "original")]

    def _usable_texts(
        self, texts: Sequence[str], call: Call, *, max_texts: int, max_chars: int, latin: bool = False
    ) -> list[str]:
        """Return the model's texts that are worth a search; note why the others were dropped.

        Texts are the same if they differ only in case, width, punctuation, spacing, or simplified against traditional
        characters. A text must be in the question's language; with ``latin`` it may be in Latin letters (a name).
        """
        question_key = folded(call.query)
        languages = {detect_language(call.query)} | ({"en"} if latin else set())
        usable: dict[str, str] = {}
        dropped: Counter[str] = Counter()
        wrote_nothing = all(map(NOTHING.fullmatch, texts))  # beside others, "None" may be Python's
        for text in texts:
            text = " ".join(text.split()) if max_chars <= _MAX_SINGLE_LINE_CHARS else text.strip()
            key = folded(text)
            if wrote_nothing or not key:
                dropped["empty"] += 1
            elif key == question_key:
                dropped["repeats the question"] += 1
            elif key in usable:
                dropped["repeats another"] += 1
            elif len(text) > max_chars:
                dropped[f"longer than {max_chars} characters"] += 1
            elif detect_language(text) not in languages:
                dropped["another language"] += 1
            elif len(usable) == max_texts:
                dropped["more than asked for"] += 1
            else:
                usable[key] = text
        if dropped:
            reasons = ", ".join(f"{count} {reason}" for reason, count in dropped.items())
            call.note(f"dropped {dropped.total()} that the model wrote: {reasons}")
        return list(usable.values())

    async def _ask_for_texts(
        self,
        values: Sequence[Mapping[str, Any]],
        field: str,
        call: Call,
        *,
        max_texts: int = 1,
        max_chars: int,
        cut: bool = False,
        noun: str = "",
        latin: bool = False,
    ) -> list[str]:
        """Ask the model, and return the texts under a field of its answers that are worth a search.

        Texts that are too long are dropped, or ``cut``. If an answer has no usable text, a note says so and calls it
        ``noun``, by default the field. With ``latin`` a text may be in Latin letters though the question is Chinese.
        """
        answers = await self._ask(values, call)
        texts = [text[:max_chars] if cut else text for text in texts_of(answers, field)]
        usable = self._usable_texts(texts, call, max_texts=max_texts, max_chars=max_chars, latin=latin)
        if answers and not usable:
            call.note(f"degraded: {self.task}: the model gave no usable {noun or field}")
        return usable

    def _merge(self, call: Call, searches: Sequence[Search]) -> list[Document]:
        """Fuse the documents of all searches, with the texts that were searched for in the provenance."""
        queries = list(dict.fromkeys(search.query for search in searches))
        call.report()
        extra = {"technique": self.task, "queries": queries, **call.extra}
        alone = f"rewrite:{self.task}"
        return merge(searches, call, alone=alone, first_role=self.represented_role, extra=extra)


def texts_of(answers: Sequence[Any], field: str) -> list[str]:
    """Return the texts under a field of several answers: the first text of each answer, then the second of each..."""
    lists = []
    for answer in answers:
        value = field_of(answer, field)
        lists.append([value] if isinstance(value, str) else [str(item) for item in value or []])
    return [text for texts in zip_longest(*lists) for text in texts if text is not None]


def folded(text: str) -> str:
    """Reduce a text to letters, digits and the signs of names (C++, C#), so that versions of one text are equal."""
    return "".join(char for char in fold(text) if char.isalnum() or char in "+#")
