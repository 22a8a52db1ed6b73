"""Ranking metrics by ir-measures (trec_eval): a row for each query first, means second."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from rag_kit.errors import InvalidInputError, MissingExtraError

DEFAULT_METRICS = ("ndcg@10", "recall@10", "recall@100", "mrr@10", "map", "hit_rate@1", "hit_rate@10")
"""What the benchmark measures."""

_NAMES = {
    "ndcg": "nDCG",
    "recall": "R",
    "precision": "P",
    "mrr": "RR",
    "map": "AP",
    "hit_rate": "Success",
}
_NEEDS_CUTOFF = ("recall", "precision", "hit_rate")
_PATTERN = re.compile(r"(?P<name>[a-z_]+)(?:@(?P<cutoff>[1-9][0-9]{0,5}))?")


@dataclass(frozen=True)
class RetrievalScores:
    """Scores of one run.

    Args:
        metrics: Names of the metrics, in order.
        per_query: Query id -> metric -> score from 0 to 1; the queries in the order of the judgements.
        unjudged: Queries of the run that no relevant document is known for; they are not scored.
    """

    metrics: tuple[str, ...]
    per_query: Mapping[str, Mapping[str, float]]
    unjudged: tuple[str, ...] = ()

    def values(self, metric: str) -> list[float]:
        """The metric's score of each query, in order."""
        return [row[metric] for row in self.per_query.values()]

    def mean(self, metric: str) -> float:
        """Mean of the metric over the scored queries."""
        values = self.values(metric)
        return math.fsum(values) / len(values)

    def means(self) -> dict[str, float]:
        """Mean of every metric over the scored queries."""
        return {metric: self.mean(metric) for metric in self.metrics}


def retrieval_metrics(
    run: Mapping[str, Sequence[str]],
    qrels: Mapping[str, Mapping[str, int]],
    metrics: Iterable[str] = DEFAULT_METRICS,
) -> RetrievalScores:
    """Score rankings against relevance judgements.

    A query with a relevant document that the run lacks scores 0; a query without a relevant document
    cannot be scored and is listed as unjudged. nDCG has linear gains (trec_eval; Järvelin and Kekäläinen,
    2002); ``ndcg_exp`` takes ``2**grade - 1`` instead. ``map`` looks at the whole ranking.

    Args:
        run: Query id -> document ids, best first. Of a document that comes twice the first place counts.
        qrels: Query id -> document id -> grade; above 0 is relevant.
        metrics: Names such as ``"ndcg@10"``; allowed are ndcg, ndcg_exp, recall, precision, mrr, map and
            hit_rate, followed by ``@`` and a rank (recall, precision and hit_rate need one).

    Raises:
        InvalidInputError: If a metric is unknown or no query can be scored.
        MissingExtraError: If ir-measures is not installed.

    Example:
        >>> scores = retrieval_metrics({"q1": ["b", "a"]}, {"q1": {"a": 1}}, ["mrr@10", "hit_rate@1"])
        >>> scores.means()
        {'mrr@10': 0.5, 'hit_rate@1': 0.0}
    """
    require_ir_measures()
    names = tuple(dict.fromkeys(metrics))
    measures = {name: _measure(name) for name in names}
    for label, given, inner in (("run", run, Iterable), ("qrels", qrels, Mapping)):
        if not isinstance(given, Mapping) or not all(isinstance(each, inner) for each in given.values()):
            raise InvalidInputError(
                f"{label} is {given!r:.80}; give query -> ids, best first (run), and query -> id -> grade (qrels)"
            )
    judged = {
        query: dict(grades) for query, grades in qrels.items() if any(grade > 0 for grade in grades.values())
    }
    if not judged:
        raise InvalidInputError("no query has a relevant document; give qrels with a grade above 0")
    # trec_eval sorts by score and breaks ties by id, so the score must be the rank itself.
    scored_run = {
        query: {doc: -float(rank) for rank, doc in enumerate(dict.fromkeys(run.get(query, ())), start=1)}
        for query in judged
    }
    rows: dict[str, dict[str, float]] = {query: dict.fromkeys(names, 0.0) for query in judged}
    for exponential in (False, True):
        wanted = {name: m for name, (m, is_exponential) in measures.items() if is_exponential is exponential}
        if wanted:
            _fill(rows, wanted, _exponential(judged) if exponential else judged, scored_run)
    return RetrievalScores(names, rows, tuple(query for query in run if query not in judged))


def ndcg(
    ranking: Sequence[int],
    *,
    k: int | None = None,
    exponential: bool = False,
    ideal: Sequence[int] | None = None,
) -> float:
    """NDCG of one list of grades in ranked order.

    Args:
        ranking: Grades, best-ranked first.
        k: Look at the first ``k`` only.
        exponential: Gain ``2**grade - 1`` instead of the grade itself.
        ideal: Grades of all relevant documents, where the list does not hold them all.

    Returns:
        A score from 0 to 1; 0 when nothing is relevant.

    Raises:
        InvalidInputError: If a list holds something else than grades, or ``k`` is no whole number from 1.

    Example:
        >>> round(ndcg([3, 2, 3, 0, 1, 2]), 10), round(ndcg([3, 2, 3, 0, 1, 2], exponential=True), 10)
        (0.9608081943, 0.9488107486)
    """
    for label, given in (("ranking", ranking), ("ideal", ideal)):
        if not (_are_grades(given) or (given is None and label == "ideal")):
            raise InvalidInputError(
                f"{label} is {given!r:.80}; give a list of grades below 1000, best-ranked first"
            )
    if k is not None and (type(k) is not int or k < 1):
        raise InvalidInputError(f"k is {k!r:.60}; give a whole number from 1, or None")

    def gain(grades: Sequence[int]) -> float:
        return math.fsum(
            (2.0**grade - 1.0 if exponential else float(grade)) / math.log2(rank + 1)
            for rank, grade in enumerate(grades[:k], start=1)
            if grade > 0
        )

    best = gain(sorted(ranking if ideal is None else ideal, reverse=True))
    return gain(ranking) / best if best else 0.0


def _are_grades(given: Any) -> bool:
    """Whether these are numbers that gains can be made of; the system's floats end at 2**1024."""
    if isinstance(given, (str, bytes)) or not isinstance(given, Sequence):
        return False
    return all(isinstance(grade, (int, float)) and grade == grade and grade < 1000 for grade in given)


def require_ir_measures() -> None:
    """Check that ir-measures is there, without the half second that importing it and SciPy takes.

    Raises:
        MissingExtraError: If it is not installed.
    """
    if find_spec("ir_measures") is None:
        raise MissingExtraError("eval", "Scoring a ranking (recall@10, ndcg@10, ...)")


def _measure(name: str) -> tuple[Any, bool]:
    """The ir-measures measure of a metric's name, and whether its gains are exponential."""
    import ir_measures

    match = _PATTERN.fullmatch(name)
    base = match["name"] if match else ""
    exponential = base == "ndcg_exp"
    base = "ndcg" if exponential else base
    cutoff = int(match["cutoff"]) if match and match["cutoff"] else None
    if base not in _NAMES or (base in _NEEDS_CUTOFF and cutoff is None):
        raise InvalidInputError(
            f"unknown metric {name!r}; allowed are ndcg, ndcg@K, ndcg_exp@K, recall@K, precision@K, "
            "mrr, mrr@K, map, map@K and hit_rate@K with a whole number K from 1"
        )
    measure = getattr(ir_measures, _NAMES[base])
    return (measure if cutoff is None else measure @ cutoff), exponential


def _exponential(qrels: Mapping[str, Mapping[str, int]]) -> dict[str, dict[str, int]]:
    # The gains are mapped here: ir-measures mixes up plain and mapped nDCG asked for in one call, and
    # its own exponential nDCG starts a perl script.
    return {q: {doc: 2 ** max(grade, 0) - 1 for doc, grade in grades.items()} for q, grades in qrels.items()}


def _fill(
    rows: dict[str, dict[str, float]],
    measures: Mapping[str, Any],
    qrels: Mapping[str, Mapping[str, int]],
    run: Mapping[str, Mapping[str, float]],
) -> None:
    import ir_measures

    names = {measure: name for name, measure in measures.items()}
    for cell in ir_measures.iter_calc(list(names), qrels, run):
        rows[cell.query_id][names[cell.measure]] = float(cell.value)
