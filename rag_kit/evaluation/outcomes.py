"""Outcomes of the questions: answered right or wrong, declined, or answered without basis."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rag_kit.evaluation._files import import_extra
from rag_kit.evaluation.comparison_scores import name_runs
from rag_kit.evaluation.runs.results import Results
from rag_kit.evaluation.runs.rows import Row

if TYPE_CHECKING:
    import pandas as pd

#: ``right`` and ``wrong``: answered, by the score of the answer; ``declined``: it says that the documents hold no
#: answer; ``invented``: answered, though they hold none; ``unknown``: it failed, was refused, has no score, or is
#: empty where there is no answer.
Outcome = Literal["right", "wrong", "declined", "invented", "unknown"]
#: Metrics that score an answer, best first.
ANSWER = ("answer_correctness", "factual_correctness", "ours_answer_found")
_MIN_COVERAGE = 0.9  # share of the questions of the widest metric that a better one needs
LIMIT = 0.5  # from which a score counts as right
NO_ANSWER = ("refused", "clarify")  # statuses that are neither an answer nor a decline
_COLUMNS = ("right", "wrong", "declined", "declined_rightly", "invented", "unknown")


def first_metric(results: Results, names: Sequence[str] = ANSWER) -> str | None:
    """Return the first of ``names`` (``recall@``: any number) that has values and covers the questions as well as any.

    One that applies to less than nine tenths of the questions of the widest is passed over; ``None`` without values.
    """
    with_values = [metric for metric in results.metrics if results.values(metric)]
    usable = [m for name in names for m in with_values if name in (m, f"{m.partition('@')[0]}@")]
    covered = {}  # metric -> number of questions that it applies to
    for metric in usable:
        statuses = [cell.status for cell in results.cells(metric).values()]
        covered[metric] = len(statuses) - statuses.count("not_applicable")
    return next((m for m in usable if covered[m] >= _MIN_COVERAGE * max(covered.values())), None)


def outcome_of(row: Row, metric: str | None, limit: float = LIMIT) -> Outcome:
    """Return the outcome of one question, by a metric that scores its answer."""
    output, cell = row.output, row.cells.get(metric or "")
    if output.error is not None or output.answer is None or output.status in NO_ANSWER:
        return "unknown"
    if output.declined:
        return "declined"
    if row.example.answerable is False:
        return "invented" if output.answer.strip() else "unknown"
    if cell is None or cell.value is None:
        return "unknown"
    return "right" if cell.value >= limit - 1e-9 else "wrong"  # a sum of floats may be a little less


def count_outcomes(results: Results, metric: str | None, limit: float = LIMIT) -> dict[str, int]:
    """Count questions by outcome; ``declined_rightly`` are the declined ones that have no answer."""
    counts = Counter[str]()
    for row in results.rows:
        outcome = outcome_of(row, metric, limit)
        counts[outcome] += 1
        if outcome == "declined" and row.example.answerable is False:
            counts["declined_rightly"] += 1
    return {name: counts[name] for name in _COLUMNS}


def outcomes(
    results: Results | Path | str | Mapping[str, Any] | Iterable[Any],
    *,
    answer: str | None = None,
    threshold: float = LIMIT,
) -> pd.DataFrame:
    """Count how many questions each pipeline answered right, wrong, declined, or answered anyway.

    Args:
        results: Of one run or several, or their folders; a mapping names them.
        answer: Metric that scores answers; default: the first of `ANSWER` that covers the questions.
        threshold: The score from which an answer is right.

    Returns:
        One line for each pipeline: ``right``, ``wrong``, ``declined``, of these ``declined_rightly``, ``invented``,
        and ``unknown``: it failed, was refused, asked back, or has no score.

    Raises:
        InvalidInputError: If there are no results, or no such metric.
        MissingExtraError: If pandas is not installed.

    Example:
        >>> from rag_kit.evaluation import Example, evaluate
        >>> questions = [Example("q1", "Who?", answers=("Ada",)), Example("q2", "When?", answerable=False)]
        >>> run = evaluate(lambda question: "It was Ada.", questions, "ours_answer_found", name="rag", progress=False)
        >>> outcomes(run).loc["rag"].to_dict()
        {'right': 1, 'wrong': 0, 'declined': 0, 'declined_rightly': 0, 'invented': 1, 'unknown': 0}
    """
    pandas = import_extra("pandas", "outcomes")
    runs = name_runs(results, least=1)
    for run in runs.values() if answer else ():
        run.cells(str(answer))  # refuses one that is not there
    counts = {name: count_outcomes(run, answer or first_metric(run), threshold) for name, run in runs.items()}
    frame: pd.DataFrame = pandas.DataFrame.from_dict(counts, orient="index", columns=list(_COLUMNS))
    return frame
