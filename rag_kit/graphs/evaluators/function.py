"""A user's own grader as an evaluator: a function of all passages or of one, or a LangChain chain."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, Literal

from langchain_core.documents import Document
from langchain_core.runnables import Runnable

from rag_kit.concurrency.steps import Step
from rag_kit.errors import InvalidInputError
from rag_kit.graphs.evaluators.base import UNGRADED, Evaluator, Grading
from rag_kit.graphs.evaluators.grades import UnusableGradeError, grades_of_all, read_grade
from rag_kit.graphs.evaluators.thresholds import Thresholds
from rag_kit.graphs.steps import beside, quiet, user_function
from rag_kit.models.clients import acall_runnable

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
        thresholds: Where its confidence is enough; fit them with ``fit_thresholds``.

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
        thresholds: Thresholds | None = None,
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
        given: str = func.get_name() if isinstance(func, Runnable) else getattr(func, "__name__", "function")
        self.name = "function" if given == "<lambda>" else given
        self.each, self.as_text = (True, True) if chain else _takes(self.func, self.name)
        self.scale: Literal["confidence", "share"] = scale or ("share" if chain else "confidence")
        self.thresholds = thresholds or type(self).thresholds

    async def grade(self, question: str, passages: Sequence[Document], language: str) -> list[Grading]:
        """Judge passages; see ``Evaluator.grade``."""
        if not passages:
            return []
        given = [passage.model_copy(deep=True) for passage in passages]
        if self.each:
            calls = [self._call(question, passage) for passage in given]
        else:
            calls = [user_function(self.name, self.func, question, given)]
        fan = await beside(calls, on_error="skip")
        values = [one.value if one.error is None else one.error for one in fan.outcomes]
        if not self.each:
            values = grades_of_all(values[0], len(passages))
        gradings, faults = [], []
        for value in values:
            try:
                gradings.append(self._read(value))
            except InvalidInputError:
                raise
            except Exception as error:  # noqa: BLE001 - any code; `ungraded` raises what ends the run
                given_up = self.ungraded(str(error) if isinstance(error, UnusableGradeError) else error)
                gradings.append(given_up)
                if isinstance(error, _CODE):
                    faults.append(given_up.reason.removeprefix(UNGRADED))
        if len(faults) == len(values):
            of = "one passage" if self.each else f"a list of {len(passages)} passages"
            raise InvalidInputError(
                f"{self.name} was asked about {of}: {faults[0]}; {_ALLOWED}. Whether a function takes one passage is "
                "read from its second parameter's name or annotation."
            )
        return gradings

    def _read(self, value: Any) -> Grading:
        if isinstance(value, Exception):
            raise value
        if value is None and self.chain:
            raise ValueError("the chain gave None")  # a model's answer that could not be parsed
        grading = read_grade(value, self.scale)
        return grading if grading.reason else Grading(grading.score, f"judged by {self.name}")

    def _call(self, question: str, passage: Document) -> Step[Any]:
        text = passage.page_content
        if not self.chain:
            return user_function(self.name, self.func, question, text if self.as_text else passage)
        values = {"question": question, "passage": text, "document": text, "context": text}
        return Step(
            self.name,
            lambda config: self.func.invoke(values, quiet(config)),
            lambda config: acall_runnable(self.func, values, quiet(config)),
        )


def _takes(func: Any, name: str) -> tuple[bool, bool]:
    """Whether a function takes one passage, and whether as text."""
    try:
        signature = inspect.signature(func)
    except (TypeError, ValueError):
        return False, False
    try:
        second = list(signature.bind("question", []).arguments)[1:]
    except TypeError:
        raise InvalidInputError(
            f"{name}{signature} cannot be an evaluator; give a function of two arguments: the question, and one "
            "passage or the list of them."
        ) from None
    if not second:  # *arguments
        return False, False
    annotation = signature.parameters[second[0]].annotation
    kind = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    if kind in ("Document", "str"):
        return True, kind == "str"
    several = any(word in str(annotation).lower() for word in ("list", "sequence", "iterable", "tuple"))
    return not several and not second[0].endswith("s"), False
