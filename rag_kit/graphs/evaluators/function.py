"""A user's own grader as an evaluator, a function or a LangChain chain; and all that can be given as an evaluator."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

from langchain_core.cross_encoders import BaseCrossEncoder
from langchain_core.documents import Document
from langchain_core.language_models import BaseLanguageModel
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable

from rag_kit.concurrency.steps import Step
from rag_kit.documents.identity import field_of
from rag_kit.errors import InvalidInputError
from rag_kit.graphs.evaluators.base import MAX_REASON, Evaluator, Grading, LexicalEvaluator, Thresholds
from rag_kit.graphs.evaluators.models import CrossEncoderEvaluator, LLMEvaluator
from rag_kit.graphs.running import attempt, call_user_function, run_side_by_side
from rag_kit.models.model_call import is_extractive
from rag_kit.models.runnables import acall_runnable, bare_model
from rag_kit.retrieval.asking import grade_score

Scale = Literal["confidence", "share"]
_ALLOWED = "allowed for a passage: true or false, a number, a Grading, or a dict or object with relevant, score or both"
# the errors of a function that expects something else, and not of an endpoint that is away
_SIGNATURE_ERRORS = (TypeError, AttributeError, KeyError, NameError)
_VERDICT_WORDS = {"yes": True, "true": True, "是": True, "no": False, "false": False, "否": False}


class FunctionEvaluator(Evaluator):
    """Judge passages by a function or chain of your own, side by side.

    A function takes the question and all passages (its second parameter is named in the plural, or annotated as a
    list) and returns a list, or it takes the question and one passage (a ``Document``, or its text where the parameter
    is annotated ``str``). A chain gets a dict with ``question`` and one passage's text as ``passage``, ``document`` and
    ``context``. For a passage they give true or false, a number, a ``Grading``, or a dict or object with ``relevant``
    (or ``binary_score``), ``score``, or both, and ``reason``.

    Args:
        func: The function or chain; also an ``async`` one. A plain one runs on a thread under ``ainvoke``.
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
        scale: Scale | None = None,
        thresholds: Thresholds | None = None,
    ) -> None:
        self.is_chain = isinstance(func, Runnable)
        if not self.is_chain and not callable(func):
            raise InvalidInputError(
                f"func is a {type(func).__name__}; give a function of question and passages, or a chain."
            )
        if scale not in ("confidence", "share", None):
            raise InvalidInputError(f"scale={scale!r} was given; allowed: 'confidence', 'share' or None.")
        self.func: Any = func
        name: str = func.get_name() if isinstance(func, Runnable) else getattr(func, "__name__", "function")
        self.name = "function" if name == "<lambda>" else name
        self.takes = "text" if self.is_chain else _second_argument(self.func, self.name)
        self.scale: Scale = scale or ("share" if self.is_chain else "confidence")
        self.thresholds = thresholds or self.thresholds

    async def grade(self, question: str, passages: Sequence[Document], language: str) -> list[Grading]:
        """Return a grading for each passage, in order (see ``Evaluator.grade``)."""
        copies = [passage.model_copy(deep=True) for passage in passages]
        if self.takes == "passages":
            reply = await attempt(call_user_function(self.name, self.func, question, copies), Exception)
            values = _list_values(reply, len(copies))
        else:
            fan = await run_side_by_side([self._call(question, passage) for passage in copies])
            values = [outcome.value_or_error for outcome in fan.outcomes]
        gradings = [self._grading_or_error(value) for value in values]
        signature_errors = [error for error in gradings if isinstance(error, _SIGNATURE_ERRORS)]
        if signature_errors and len(signature_errors) == len(gradings):  # it expects other arguments
            argument = f"a list of {len(passages)} passages" if self.takes == "passages" else "one passage"
            why = self._describe(signature_errors[0])
            raise InvalidInputError(
                f"{self.name} was asked about {argument}: {why}; {_ALLOWED}. Whether a function takes one passage is "
                "read from its second parameter's name or annotation."
            )
        return [grading if isinstance(grading, Grading) else self.ungraded(grading) for grading in gradings]

    def _call(self, question: str, passage: Document) -> Step[Any]:
        text = passage.page_content
        if not self.is_chain:
            subject = text if self.takes == "text" else passage
            return call_user_function(self.name, self.func, question, subject)
        values = {"question": question, "passage": text, "document": text, "context": text}
        return Step(
            self.name,
            sync=lambda config: self.func.invoke(values, config),
            native=lambda config: acall_runnable(self.func, values, config),
        )

    def _grading_or_error(self, value: Any) -> Grading | Exception:
        """Return the grading that a value stands for, or why there is none."""
        if isinstance(value, InvalidInputError):
            raise value
        if isinstance(value, Exception):
            return value
        if value is None and self.is_chain:
            return ValueError("the chain gave None")  # a model's answer that could not be parsed
        try:
            grading = read_grade(value, self.scale)
        except (TypeError, ValueError) as error:
            return error
        return Grading(grading.score, grading.reason or f"judged by {self.name}")


def read_grade(value: Any, scale: Scale) -> Grading:
    """Read a grader's return value for a passage; a TypeError or ValueError says why it is no grade.

    A score beside a verdict is a share, and lies on the verdict's side of one half.
    """
    if isinstance(value, Grading):
        return value
    score, reason, relevant = value, "", None
    if not hasattr(type(value), "__float__"):  # numbers have it, numpy's too; else it is a dict or an object
        score = field_of(value, "score")
        reason = " ".join(str(field_of(value, "reason") or "").split())[:MAX_REASON]
        relevant = _read_truth(field_of(value, "relevant"))
        if relevant is None:
            relevant = _read_truth(field_of(value, "binary_score"))
    truth = relevant if score is None else _read_truth(score)
    if truth is not None:  # true or false alone
        return Grading(1.0 if truth else -1.0, reason)
    problem = f"it returned {value!r:.60} ({type(value).__name__})"
    if not hasattr(type(score), "__float__"):
        raise TypeError(problem)
    number = float(score)
    if not math.isfinite(number):
        raise ValueError(f"it returned {number}")
    if relevant is not None:  # grade_score moves the score to the verdict's side of one half
        number, scale = grade_score({"relevant": relevant, "score": number}) or number, "share"
    lowest = 0 if scale == "share" else -1
    if not lowest <= number <= 1:
        raise TypeError(f"{problem}, and a score goes from {lowest} to 1")
    return Grading(2 * number - 1 if scale == "share" else number, reason)


def _read_truth(value: Any) -> bool | None:
    """Read a verdict, such as ``"yes"`` or numpy's ``True_``, as a truth value; None if it is none."""
    if isinstance(value, str):
        return _VERDICT_WORDS.get(value.strip().casefold())
    return bool(value) if type(value).__name__ in ("bool", "bool_") else None  # numpy's are not bool


def _list_values(values: Any, count: int) -> list[Any]:
    """Return a grader's values, one for each passage; if it failed or returned no such list, the error for each."""
    if isinstance(values, Exception):
        return [values] * count
    if hasattr(values, "tolist"):  # an array
        values = values.tolist()
    is_list = isinstance(values, (list, tuple))
    if is_list and len(values) == count:
        return list(values)
    given = f"{len(values)} values" if is_list else f"{values!r:.60} ({type(values).__name__}) and no list"
    return [TypeError(f"it returned {given} for {count} passages")] * count


def _second_argument(func: Any, name: str) -> Literal["passages", "passage", "text"]:
    """Find out whether a function takes all passages, one passage, or its text, besides the question."""
    signature = inspect.signature(func)
    try:
        names = list(signature.bind("question", []).arguments)  # the parameters that two arguments go to
    except TypeError:
        raise InvalidInputError(
            f"{name}{signature} cannot be an evaluator; give a function of two arguments: the question, and one "
            "passage or the list of them."
        ) from None
    if len(names) < 2:  # both go to *arguments
        return "passages"
    annotation = signature.parameters[names[1]].annotation
    type_name = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    if type_name == "str":
        return "text"
    if type_name == "Document":
        return "passage"
    several = any(word in str(annotation).lower() for word in ("list", "sequence", "iterable", "tuple"))
    return "passages" if several or names[1].endswith("s") else "passage"


def as_evaluator(value: Any = None, llm: Any = None, prompts: Path | None = None) -> Evaluator:
    """Make an evaluator of a chat model, a cross-encoder, a function or a chain.

    Without one of these it asks ``llm``, a graph's model, or, if that is no language model, compares words.
    """
    if value is None:
        has_language_model = llm is not None and not is_extractive(llm)
        return LLMEvaluator(llm, prompts=prompts) if has_language_model else LexicalEvaluator()
    if isinstance(value, Evaluator):
        return value
    if isinstance(value, BaseCrossEncoder):
        return CrossEncoderEvaluator(value)
    if isinstance(bare_model(value), BaseLanguageModel):
        return LLMEvaluator(value)
    if (callable(value) or isinstance(value, Runnable)) and not isinstance(value, (type, BaseRetriever)):
        return FunctionEvaluator(value)
    kind = f"the class {value.__name__}" if isinstance(value, type) else f"a {type(value).__name__}"
    raise InvalidInputError(
        f"evaluator is {kind}; give an Evaluator, a chat model, a LangChain cross-encoder, a function of "
        "question and passages, a chain, or None."
    )
