"""Thresholds fitted on labelled pairs, and how good an evaluator is on them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, overload

from langchain_core.cross_encoders import BaseCrossEncoder
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseLanguageModel
from langchain_core.runnables import Runnable

from rag_kit.concurrency.steps import arun, run
from rag_kit.errors import InvalidInputError
from rag_kit.graphs.evaluators.base import Evaluator, judged_by
from rag_kit.graphs.evaluators.coerce import as_evaluator
from rag_kit.graphs.evaluators.measuring import (
    Interval,
    best_cut,
    check_labelled,
    intervals,
    kept_above,
    lowest_upper,
    roc_auc,
)
from rag_kit.graphs.evaluators.thresholds import Thresholds
from rag_kit.retrieval.rerank.cross_encoder import is_cross_encoder

Pair = tuple[str, "Document | str", bool]
#: What `as_evaluator` takes.
Judge = (
    Evaluator
    | Callable[[str, Any], Any]
    | Runnable[Any, Any]
    | BaseLanguageModel[Any]
    | Embeddings
    | BaseCrossEncoder
)


@dataclass(frozen=True)
class Fitted:
    """Thresholds and what they are worth on the pairs they were fitted on.

    CRAG decides by the highest confidence of all passages: to fit thresholds for that decision give the highest
    confidence of each question, and whether an answer is among its passages.

    The figures flatter the thresholds, for they were fitted on these pairs: report those of other pairs.

    Attributes:
        thresholds: For the evaluator whose confidences these were.
        cut: The one threshold with the best accuracy; a confidence above it says relevant.
        auc: Area under the ROC curve: how often a relevant passage is above one that is not.
        auc_interval: Bootstrap interval of it.
        accuracy: Share of pairs on the right side of ``cut``.
        accuracy_interval: Bootstrap interval of it.
        precision: Share of relevant ones among the pairs above ``upper``; ``None`` where there is none.
        negative_precision: Share of those that are not relevant among the pairs below ``lower``, or ``None``.
        pairs: How many pairs, without those that could not be judged.
        relevant: How many of them are relevant.
        ungraded: How many could not be judged and were left out.
        notes: What a reader must know: a precision that could not be reached.
    """

    thresholds: Thresholds
    cut: float
    auc: float
    auc_interval: Interval
    accuracy: float
    accuracy_interval: Interval
    precision: float | None
    negative_precision: float | None
    pairs: int
    relevant: int
    ungraded: int = 0
    notes: tuple[str, ...] = ()


@overload
def fit_thresholds(
    scores: Sequence[float],
    labels: Sequence[int],
    *,
    precision: float = ...,
    negative_precision: float | None = ...,
    recall: float | None = ...,
    groups: Sequence[Hashable] | None = ...,
    level: float = ...,
    resamples: int = ...,
    seed: int = ...,
) -> Fitted: ...


@overload
def fit_thresholds(
    scores: Judge,
    labels: Sequence[Pair],
    *,
    precision: float = ...,
    negative_precision: float | None = ...,
    recall: float | None = ...,
    language: str = ...,
    level: float = ...,
    resamples: int = ...,
    seed: int = ...,
) -> Fitted: ...


def fit_thresholds(scores: Any, labels: Any, *, language: str = "en", **settings: Any) -> Fitted:
    """Find the thresholds of an evaluator on labelled pairs.

    ``upper`` is the lowest confidence above which the share of relevant passages is at least ``precision``;
    ``lower`` the highest below which the share of passages that are not is at least ``negative_precision``. Where
    an evaluator separates so well that the two would cross, both lie at the cut of best accuracy between them.

    Args:
        scores: Confidences from -1 to 1; or an evaluator (or what ``as_evaluator`` makes one of), which judges the
            pairs.
        labels: Whether each is relevant; or pairs ``(question, passage, relevant)``. Pairs of one question that
            follow each other are judged together, in the order given, as a graph would.
        precision: What "correct" must be worth, above 0.5 and below 1; 0.8 by default.
        negative_precision: What "incorrect" must be worth; by default the same.
        recall: Share of relevant pairs that must not lie below ``lower``, which is lowered where more would; None
            for no such rule. Where "incorrect" means to decline, this is the share of answers that are kept.
        groups: The question of each confidence: pairs of one question are not independent, and the bootstrap then
            draws questions. With pairs this is done anyway.
        language: Language of an evaluator's prompts.
        level: Share of the intervals; 0.95 by default.
        resamples: Bootstrap samples; 2,000 by default.
        seed: Seed of the bootstrap.

    Returns:
        The thresholds, with AUC, accuracy and their intervals.

    Raises:
        InvalidInputError: The lengths differ, a confidence is no finite number, all labels are the same, a setting is
            out of range, or no pair could be judged.

    Example:
        >>> fitted = fit_thresholds([-0.9, -0.5, -0.1, 0.1, 0.4, 0.8], [False, False, True, False, True, True])
        >>> fitted.thresholds, round(fitted.auc, 2)
        (Thresholds(lower=-0.3, upper=0.25), 0.89)
    """
    if callable(scores) or isinstance(scores, (Evaluator, Embeddings, Runnable)) or is_cross_encoder(scores):
        evaluator = as_evaluator(scores)
        judged = run(_judge(evaluator, labels, language), {})
        return _fit(*judged, **{**settings, "evaluator": evaluator.name})
    return _fit(scores, labels, settings.pop("groups", None), **settings)


async def afit_thresholds(
    evaluator: Judge, pairs: Sequence[Pair], *, language: str = "en", **settings: Any
) -> Fitted:
    """``fit_thresholds`` of an evaluator without blocking the event loop."""
    judge = as_evaluator(evaluator)
    judged = await arun(_judge(judge, pairs, language), {})
    return _fit(*judged, **{**settings, "evaluator": judge.name})


async def _judge(
    evaluator: Evaluator, pairs: Any, language: str
) -> tuple[list[float], list[bool], list[int]]:
    """Confidences, labels and the number of the question of each pair; NaN where one could not be judged."""
    if isinstance(pairs, (str, bytes)) or not isinstance(pairs, Sequence):
        raise InvalidInputError("pairs must be a list of (question, passage, relevant).")
    lots: list[tuple[str, list[Document], list[bool]]] = []
    for place, pair in enumerate(pairs):
        if not isinstance(pair, (tuple, list)) or len(pair) != 3 or not isinstance(pair[0], str):
            raise InvalidInputError(f"Pair {place} is {pair!r:.60}; give (question, passage, relevant).")
        question, passage, relevant = pair
        if not isinstance(passage, (str, Document)):
            raise InvalidInputError(
                f"The passage of pair {place} is a {type(passage).__name__}; give a text or a Document."
            )
        if not lots or lots[-1][0] != question:
            lots.append((question, [], []))
        lots[-1][1].append(passage if isinstance(passage, Document) else Document(passage))
        lots[-1][2].append(relevant)
    scores: list[float] = []
    labels: list[bool] = []
    numbers: dict[str, int] = {}
    groups: list[int] = []
    for question, documents, wanted in lots:
        gradings = await judged_by(evaluator, question, documents, language)
        scores += [
            float("nan") if grading.reason.startswith("not graded") else grading.score for grading in gradings
        ]
        labels += wanted
        groups += [numbers.setdefault(question, len(numbers))] * len(wanted)
    return scores, labels, groups


def _fit(
    scores: Any,
    labels: Any,
    groups: Any,
    *,
    precision: float = 0.8,
    negative_precision: float | None = None,
    recall: float | None = None,
    level: float = 0.95,
    resamples: int = 2_000,
    seed: int = 0,
    evaluator: str | None = None,
) -> Fitted:
    wanted = {"precision": precision, "negative_precision": negative_precision or precision}
    for name, share in wanted.items():
        if not isinstance(share, (int, float)) or not 0.5 < share < 1:
            raise InvalidInputError(f"{name} is {share!r}; give a number above 0.5 and below 1.")
    if recall is not None and (not isinstance(recall, (int, float)) or not 0 < recall <= 1):
        raise InvalidInputError(f"recall is {recall!r}; give a number above 0 and at most 1, or None.")
    ungraded = 0
    if evaluator is not None:
        kept = [place for place, score in enumerate(scores) if score == score]
        ungraded = len(scores) - len(kept)
        if ungraded and not kept:
            raise InvalidInputError(f"{evaluator} could judge none of the {ungraded} pairs.")
        scores, labels = [scores[place] for place in kept], [labels[place] for place in kept]
        groups = [groups[place] for place in kept]
    values, truth = check_labelled(scores, labels)
    notes = [f"{ungraded} pairs could not be judged and were left out"] if ungraded else []
    cut = best_cut(values, truth)
    upper = lowest_upper(values, truth, wanted["precision"])
    opposite = lowest_upper(-values, ~truth, wanted["negative_precision"])
    if upper is None:
        notes.append(f"no confidence is right in {precision:.0%} of the pairs above it: nothing is 'correct'")
    if opposite is None:
        notes.append(
            f"no confidence is right in {wanted['negative_precision']:.0%} of the pairs below it: nothing is "
            "'incorrect'"
        )
    high = 1.0 if upper is None else upper
    low = -1.0 if opposite is None else -opposite
    if recall is not None:
        low = min(low, kept_above(values, truth, recall))
    if low > high:
        low = high = min(max(cut, high), low)
    above, below = truth[values > high], ~truth[values < low]
    auc_interval, accuracy_interval = intervals(
        values, truth, cut, groups, level=level, resamples=resamples, seed=seed
    )
    return Fitted(
        thresholds=Thresholds(low, high),
        cut=cut,
        auc=roc_auc(values, truth),
        auc_interval=auc_interval,
        accuracy=float(((values > cut) == truth).mean()),
        accuracy_interval=accuracy_interval,
        precision=float(above.mean()) if above.size else None,
        negative_precision=float(below.mean()) if below.size else None,
        pairs=int(truth.size),
        relevant=int(truth.sum()),
        ungraded=ungraded,
        notes=tuple(notes),
    )
