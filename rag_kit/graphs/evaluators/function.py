"""A user's own grader as an evaluator: a function of all passages or of one, or a LangChain chain."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, Literal

from langchain_core.documents import Document
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import merge_configs

from rag_kit.concurrency.steps import Step
from rag_kit.errors import InvalidInputError
from rag_kit.graphs.evaluators.base import Evaluator, Grading
from rag_kit.graphs.evaluators.reading import Missing, read_grade, value_per_passage
from rag_kit.graphs.evaluators.thresholds import Thresholds
from rag_kit.graphs.steps import beside
from rag_kit.models.clients import acall_runnable
from rag_kit.retrieval.rerank.base import both_ways

_ALLOWED = "allowed for a passage: true or false, a number, a Grading, or a dict or object with relevant, score or both"
_CODE = (TypeError, AttributeError, KeyError, NameError)
"""Errors that come from a function that expects something else, and not from an endpoint."""


class FunctionEvaluator(Evaluator):
    """Judge passages by a function or chain of your own.

    A function takes the question and all passages (its second parameter is named in the plural, or annotated as a
    list) and returns a list, or it takes the question and one passage (a ``Document``, or its text where the parameter
    is annotated ``str``). A chain is asked about one passage: its input is a dict with ``question`` and the passage's
    text as ``passage``, ``document`` and ``context``. Passages are judged side by side.

    What may be returned for a passage: true or false, a number, a ``Grading``, or a dict or object with ``relevant``
    (true, false, "yes", "no"; ``binary_score`` is read too), ``score``, or both, and ``reason``.

    Args:
        func: The function or chain. An ``async`` function works with ``ainvoke`` alone. A plain one runs on a thread
            under ``ainvoke``.
        scale: What scores are: ``"confidence"`` from -1 to 1, or ``"share"`` from 0 to 1. By default those of a chain,
            and those beside ``relevant``, are shares, as models are asked for them; all others confidences.
        each: Whether a function takes one passage; by default its signature says so.
        thresholds: Where its confidence is enough; fit them with ``fit_thresholds``.
        max_concurrency: Most passages judged at the same time; ``None`` for all.
        name: How notes call it; by default the function's name.

    Raises:
        InvalidInputError: ``func`` is neither, or takes something else; and while grading: what was returned can be
            used for none of the passages.

    Example:
        >>> from rag_kit.concurrency.steps import run
        >>> fan = FunctionEvaluator(lambda question, passage: "fan" in passage.page_content)
        >>> [one.score for one in run(fan.grade("Why?", [Document("The fan."), Document("A pump.")], "en"), {})]
        [1.0, -1.0]
    """

    def __init__(
        self,
        func: Callable[[str, Any], Any] | Runnable[Any, Any],
        *,
        scale: Literal["confidence", "share"] | None = None,
        each: bool | None = None,
        thresholds: Thresholds | None = None,
        max_concurrency: int | None = None,
        name: str | None = None,
    ) -> None:
        chain = isinstance(func, Runnable)
        if not chain and not callable(func):
            raise InvalidInputError(
                f"func is a {type(func).__name__}; give a function of question and passages, or a chain."
            )
        if scale not in ("confidence", "share", None):
            raise InvalidInputError(f"scale={scale!r} was given; allowed: 'confidence', 'share' or None.")
        self.func: Any = func
        self.chain = chain
        given = (
            func.get_name() if isinstance(func, Runnable) else getattr(func, "__name__", type(func).__name__)
        )
        self.name = name or ("function" if given == "<lambda>" else given)
        self.each, self.as_text = (True, True) if chain else _takes(func, self.name)
        if each is not None and not chain:
            self.each = each
        self.scale: Literal["confidence", "share"] = scale or ("share" if chain else "confidence")
        self.max_concurrency = max_concurrency
        self.thresholds = thresholds or type(self).thresholds

    async def grade(self, question: str, passages: Sequence[Document], language: str) -> list[Grading]:
        """Judge passages; see ``Evaluator.grade``."""
        if not passages:
            return []
        given = [passage.model_copy(deep=True) for passage in passages]
        if self.each:
            calls = [self._call(question, passage) for passage in given]
        else:
            calls = [function_step(self.name, self.func, question, given)]
        fan = await beside(calls, on_error="skip", max_concurrency=self.max_concurrency)
        for outcome in fan.outcomes:
            if isinstance(outcome.error, InvalidInputError):
                raise outcome.error
        values = [self._failed(one.error) if one.error is not None else one.value for one in fan.outcomes]
        if not self.each and fan.outcomes[0].error is None:
            values = value_per_passage(values[0], len(passages))
        elif not self.each:
            values *= len(passages)
        read = [read_grade(value, self.scale) for value in values]
        wrong = [one for one in read if isinstance(one, Missing) and one.fault]
        if wrong and len(wrong) == len(read):
            of = "one passage" if self.each else f"a list of {len(passages)} passages"
            raise InvalidInputError(
                f"{self.name} was asked about {of}: {wrong[0]}; {_ALLOWED}. Whether a function takes one passage is "
                "read from its second parameter's name or annotation; FunctionEvaluator(func, each=...) sets it."
            )
        return [self.ungraded(one) if isinstance(one, Missing) else self._grading(*one) for one in read]

    def _call(self, question: str, passage: Document) -> Step[Any]:
        text = passage.page_content
        if not self.chain:
            return function_step(self.name, self.func, question, text if self.as_text else passage)
        values = {"question": question, "passage": text, "document": text, "context": text}
        # a grader's tokens are not the answer's
        return Step(
            self.name,
            lambda config: self.func.invoke(values, _quiet(config)),
            lambda config: acall_runnable(self.func, values, _quiet(config)),
        )

    def _failed(self, error: BaseException) -> Missing:
        reason = self.ungraded(error).reason.removeprefix("not graded: ")
        return Missing(reason, fault=isinstance(error, _CODE))

    def _grading(self, score: float, reason: str) -> Grading:
        return Grading(score, reason or f"judged by {self.name}")


def function_step(name: str, func: Callable[..., Any], *arguments: Any) -> Step[Any]:
    """A step that calls a user's function; under ``ainvoke`` it is awaited, or runs on a thread.

    Raises:
        InvalidInputError: When it is carried out: it is asynchronous and there is no event loop to run it in.
    """
    sync, native = both_ways(func, *arguments)

    async def awaited(config: RunnableConfig) -> Any:
        return await native()

    return Step(name, lambda config: sync(), awaited)


def _takes(func: Any, name: str) -> tuple[bool, bool]:
    """Whether a function takes one passage, and whether as text."""
    try:
        signature = inspect.signature(func)
    except (TypeError, ValueError):
        return False, False
    try:
        signature.bind("question", [])
    except TypeError:
        raise InvalidInputError(
            f"{name}{signature} cannot be an evaluator; give a function of two arguments: the question, and one "
            "passage or the list of them."
        ) from None
    places = [
        one for one in signature.parameters.values() if one.kind not in (one.KEYWORD_ONLY, one.VAR_KEYWORD)
    ]
    second = places[1] if len(places) > 1 else places[0]
    if second.kind is second.VAR_POSITIONAL:
        return False, False
    if second.annotation is not second.empty:
        kind = (
            second.annotation
            if isinstance(second.annotation, str)
            else getattr(second.annotation, "__name__", str(second.annotation))
        )
        if kind in ("Document", "str"):
            return True, kind == "str"
        if any(word in str(second.annotation).lower() for word in ("list", "sequence", "iterable", "tuple")):
            return False, False
    return not second.name.endswith("s"), False


def _quiet(config: RunnableConfig) -> RunnableConfig:
    return merge_configs(config, {"tags": ["nostream"]})
