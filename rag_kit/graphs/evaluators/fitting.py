"""Thresholds fitted on labelled pairs, and how good an evaluator is on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from langchain_core.cross_encoders import BaseCrossEncoder
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseLanguageModel
from langchain_core.runnables import Runnable

from rag_kit.concurrency.steps import arun, run
from rag_kit.errors import InvalidInputError
from rag_kit.graphs.evaluators.base import UNGRADED, Evaluator, judged_by
from rag_kit.graphs.evaluators.coerce import as_evaluator
from rag_kit.graphs.evaluators.thresholds import Thresholds

if TYPE_CHECKING:
    import numpy as np

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
        accuracy: Share of pairs on the right side of ``cut``.
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
    accuracy: float
    precision: float | None
    negative_precision: float | None
    pairs: int
    relevant: int
    ungraded: int = 0
    notes: tuple[str, ...] = ()


def fit_thresholds(
    scores: Sequence[float] | Judge,
    labels: Sequence[int] | Sequence[Pair],
    *,
    precision: float = 0.8,
    recall: float | None = None,
    language: str = "en",
) -> Fitted:
    """Find the thresholds of an evaluator on labelled pairs.

    ``upper`` is the lowest confidence above which the share of relevant passages is at least ``precision``;
    ``lower`` the highest below which the share of passages that are not is at least that. Where an evaluator separates
    so well that the two would cross, both lie at the cut of best accuracy between them.

    Args:
        scores: Confidences from -1 to 1; or an evaluator (or what ``as_evaluator`` makes one of), which judges the
            pairs.
        labels: Whether each is relevant; or pairs ``(question, passage, relevant)``. Pairs of one question that
            follow each other are judged together, in the order given, as a graph would.
        precision: What "correct" and "incorrect" must be worth, above 0.5 and below 1.
        recall: Share of relevant pairs that must not lie below ``lower``, which is lowered where more would; None
            for no such rule. Where "incorrect" means to decline, this is the share of answers that are kept.
        language: Language of an evaluator's prompts.

    Returns:
        The thresholds, with AUC and accuracy.

    Raises:
        InvalidInputError: The lengths differ, a confidence is no finite number, all labels are the same, a setting is
            out of range, or no pair could be judged.

    Example:
        >>> fitted = fit_thresholds([-0.9, -0.5, -0.1, 0.1, 0.4, 0.8], [False, False, True, False, True, True])
        >>> fitted.thresholds, round(fitted.auc, 2)
        (Thresholds(lower=-0.3, upper=0.25), 0.89)
    """
    if isinstance(scores, (Sequence, str)) or hasattr(scores, "tolist"):
        return _fit(scores, labels, precision, recall)
    return _fit(*run(_judge(as_evaluator(scores), labels, language), {}), precision, recall)


async def afit_thresholds(
    evaluator: Judge,
    pairs: Sequence[Pair],
    *,
    precision: float = 0.8,
    recall: float | None = None,
    language: str = "en",
) -> Fitted:
    """``fit_thresholds`` of an evaluator without blocking the event loop."""
    judged = await arun(_judge(as_evaluator(evaluator), pairs, language), {})
    return _fit(*judged, precision, recall)


async def _judge(evaluator: Evaluator, pairs: Any, language: str) -> tuple[list[float | None], list[bool]]:
    """Confidence and label of each pair; None where one could not be judged."""
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
    scores: list[float | None] = []
    for question, documents, _ in lots:
        gradings = await judged_by(evaluator, question, documents, language)
        scores += [None if one.reason.startswith(UNGRADED) else one.score for one in gradings]
    labels = [label for _, _, wanted in lots for label in wanted]
    if scores and all(score is None for score in scores):
        raise InvalidInputError(f"{evaluator.name} could judge none of the {len(scores)} pairs.")
    return scores, labels


def _fit(scores: Any, labels: Any, precision: float, recall: float | None) -> Fitted:
    if not 0.5 < precision < 1:
        raise InvalidInputError(f"precision is {precision!r}; give a number above 0.5 and below 1.")
    if recall is not None and not 0 < recall <= 1:
        raise InvalidInputError(f"recall is {recall!r}; give a number above 0 and at most 1, or None.")
    values, truth, ungraded = _labelled(scores, labels)
    notes = [f"{ungraded} pairs could not be judged and were left out"] if ungraded else []
    upper = _least_upper(values, truth, precision)
    opposite = _least_upper(-values, ~truth, precision)
    for found, side, action in ((upper, "above", "correct"), (opposite, "below", "incorrect")):
        if found is None:
            notes.append(
                f"no confidence is right in {precision:.0%} of the pairs {side} it: nothing is {action!r}"
            )
    cut = _best_cut(values, truth)
    high = 1.0 if upper is None else upper
    low = -1.0 if opposite is None else -opposite
    if recall is not None:
        relevant = sorted(values[truth])
        low = min(low, float(relevant[int((1 - recall) * len(relevant) + 1e-9)]))
    if low > high:
        low = high = min(max(cut, high), low)
    above, below = truth[values > high], ~truth[values < low]
    return Fitted(
        thresholds=Thresholds(low, high),
        cut=cut,
        auc=roc_auc(values, truth),
        accuracy=float(((values > cut) == truth).mean()),
        precision=float(above.mean()) if above.size else None,
        negative_precision=float(below.mean()) if below.size else None,
        pairs=int(truth.size),
        relevant=int(truth.sum()),
        ungraded=ungraded,
        notes=tuple(notes),
    )


def _labelled(scores: Any, labels: Any) -> tuple[np.ndarray, np.ndarray, int]:
    """Confidences and labels as arrays, without the pairs that could not be judged, and the number of those."""
    import numpy as np

    if len(scores) != len(labels):
        raise InvalidInputError(
            f"{len(scores)} scores and {len(labels)} labels were given; give one label a score."
        )
    kept = [(score, label) for score, label in zip(scores, labels, strict=True) if score is not None]
    for score, label in kept:
        if not isinstance(score, (int, float)) or not -1 <= score <= 1:  # NaN fails the comparison too
            raise InvalidInputError(f"A score is {score!r:.40}; a confidence is a number from -1 to 1.")
        if label not in (0, 1):
            raise InvalidInputError(f"A label is {label!r:.40}; give true (relevant) or false.")
    truth = np.asarray([label for _, label in kept], dtype=bool)
    if truth.all() or not truth.any():
        raise InvalidInputError(
            f"{int(truth.sum())} of {truth.size} pairs are relevant; thresholds need pairs of both kinds."
        )
    return np.asarray([score for score, _ in kept], dtype=np.float64), truth, len(scores) - len(kept)


def roc_auc(scores: np.ndarray, truth: np.ndarray) -> float:
    """How often a relevant one is above one that is not; ties count half.

    Example:
        >>> import numpy as np
        >>> roc_auc(np.array([0.1, 0.2, 0.2, 0.4]), np.array([False, True, False, True]))
        0.875
    """
    import numpy as np

    others = np.sort(scores[~truth])
    below = np.searchsorted(others, scores[truth], "left") + np.searchsorted(others, scores[truth], "right")
    return float(below.mean() / 2 / others.size)


def _cuts(scores: np.ndarray, truth: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Thresholds between neighbouring confidences and at each end; pairs above each, and the relevant of them."""
    import numpy as np

    distinct = np.unique(scores)
    cuts = np.concatenate([[-1.0], (distinct[:-1] + distinct[1:]) / 2, [1.0]])
    below = np.searchsorted(np.sort(scores), cuts, side="right")
    lost = np.searchsorted(np.sort(scores[truth]), cuts, side="right")
    return cuts, scores.size - below, truth.sum() - lost


def _best_cut(scores: np.ndarray, truth: np.ndarray) -> float:
    """The threshold with the most pairs on their right side; of equal ones the middle one."""
    cuts, above, relevant = _cuts(scores, truth)
    right = 2 * relevant - above  # pairs rightly above, less those wrongly above
    best = (right == right.max()).nonzero()[0]
    return float(cuts[best[len(best) // 2]])


def _least_upper(scores: np.ndarray, truth: np.ndarray, precision: float) -> float | None:
    """The lowest threshold above which at least that share is relevant; None where there is none."""
    cuts, above, relevant = _cuts(scores, truth)
    fine = ((above > 0) & (relevant >= precision * above)).nonzero()[0]
    return float(cuts[fine[0]]) if fine.size else None
