"""Why is an answer wrong? The scores of answer and retrieval, low or high, name the cause and the remedy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rag_kit.errors import InvalidInputError, MissingExtraError
from rag_kit.evaluation.diagnosing.cases import CASE_OF, CASES, TABLE, Case, CaseName
from rag_kit.evaluation.diagnosing.choosing import STAND_INS, stand_in
from rag_kit.evaluation.diagnosing.finding import ROLES, Finding, Reading, Role, find, translated

if TYPE_CHECKING:
    import pandas as pd

    from rag_kit.evaluation.runs.results import Results

_THRESHOLD = 0.5


class Diagnosis:
    """What `diagnose` found. ``print`` it, or leave it as the last expression of a Jupyter cell.

    Attributes:
        name: The pipeline.
        rows: One finding for each question.
        counts: Cause -> number of questions; only causes that occur.
        unknown: Questions without a cause, because a score is missing.
        overall: Cause by the means over the questions that have all three scores; ``None`` without any.
        means: ``answer``, ``recall``, ``precision`` -> those means.
        thresholds: ``answer``, ``recall``, ``precision`` -> value from which on a score is high.
        metrics: ``answer``, ``recall``, ``precision`` -> name of the metric.
        language: Of the texts: ``en`` or ``zh``.
    """

    def __init__(
        self, name: str, rows: list[Finding], thresholds: Mapping[Role, float], metrics: Mapping[Role, str],
        language: str,
    ) -> None:  # fmt: skip
        self.name = name
        self.rows = rows
        self.thresholds = dict(thresholds)
        self.metrics = dict(metrics)
        self.language = language
        counts = Counter(row.case for row in rows if row.case is not None)
        self.counts: dict[CaseName, int] = {name: counts[name] for name in CASES if counts[name]}
        self.unknown = sum(1 for row in rows if row.case is None)
        self.means = _means(rows)
        self.overall = _overall(self.means, thresholds)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def diagnosed(self) -> int:
        """Questions with a cause."""
        return len(self.rows) - self.unknown

    @property
    def main(self) -> CaseName | None:
        """The most frequent cause of a low answer score; ``None`` where there is no such question."""
        bad: list[CaseName] = [name for name in self.counts if not name.startswith("right")]
        bad.sort(key=lambda name: -self.counts[name])
        return bad[0] if bad else None

    def case(self, name: CaseName) -> Case:
        """Title, cause and remedies of a case.

        Raises:
            InvalidInputError: If there is no such case.
        """
        if name not in CASE_OF:
            raise InvalidInputError(f"there is no case {name!r:.80}; there are {', '.join(CASES)}")
        return CASE_OF[name]

    def questions(self, case: CaseName | None) -> list[Finding]:
        """The questions with a cause; of ``None``, those without."""
        return [row for row in self.rows if row.case == case]

    def in_language(self, language: Literal["en", "zh"]) -> Diagnosis:
        """The same with texts in another language."""
        wanted = _language(language, [])
        rows = [
            replace(row, hints=tuple(translated(hint, wanted) for hint in row.hints)) for row in self.rows
        ]
        return Diagnosis(self.name, rows, self.thresholds, self.metrics, wanted)

    def to_json(self) -> dict[str, Any]:
        """Everything as plain JSON, the texts in the diagnosis's language."""
        return {
            "name": self.name, "language": self.language, "questions": len(self.rows),
            "diagnosed": self.diagnosed, "unknown": self.unknown, "overall": self.overall, "main": self.main,
            "means": dict(self.means), "thresholds": dict(self.thresholds), "metrics": dict(self.metrics),
            "counts": dict(self.counts),
            "cases": {
                name: {
                    "title": case.title.of(self.language), "cause": case.cause.of(self.language),
                    "remedies": [
                        {"part": r.name, "text": r.text.of(self.language)} for r in case.remedies
                    ],
                }
                for name, case in CASE_OF.items()
                if name in self.counts or name == self.overall
            },
            "rows": [row.to_json() for row in self.rows],
        }  # fmt: skip

    def to_pandas(self) -> pd.DataFrame:
        """One line for each question.

        Raises:
            MissingExtraError: If pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError:
            raise MissingExtraError("eval", "Diagnosis.to_pandas") from None
        records = []
        for row in self.rows:
            record: dict[str, Any] = {"id": row.id, "question": row.question, "case": row.case}
            for role in ROLES:
                reading: Reading = getattr(row, role)
                record |= {reading.metric: reading.value, f"{role}.level": reading.level}
            records.append(record | {"unknown": row.unknown, "hints": "; ".join(row.hints)})
        return pd.DataFrame(records)

    def __str__(self) -> str:
        from rag_kit.evaluation.diagnosing.showing import diagnosis_text

        return diagnosis_text(self)

    def __repr__(self) -> str:
        return f"<Diagnosis of {len(self.rows)} questions: {self.counts}>"

    def _repr_html_(self) -> str:
        from rag_kit.evaluation.diagnosing.showing import diagnosis_html

        return diagnosis_html(self)


def diagnose(
    results: Results | Path | str,
    *,
    thresholds: Mapping[str, float] | float | None = None,
    answer: str | None = None,
    recall: str | None = None,
    precision: str | None = None,
    language: Literal["auto", "en", "zh"] = "auto",
) -> Diagnosis:
    """Say of each question, and of all, why the answer is wrong and which part of this kit remedies it.

    A score is high from its threshold on. Low answer with high recall and precision: the model. High recall, low
    precision: noise. Low recall, high precision: too little was retrieved. Both low: retrieval as a whole. Where
    one of the three has no value, the question has no cause: that is said, with the reason, and not guessed.

    Args:
        results: Of one run, or the folder of one.
        thresholds: One number for all three, or by ``answer``, ``recall``, ``precision`` (or by the metrics'
            names); default: 0.5 each.
        answer: Metric that scores the answer; default: ``answer_correctness``, or where that has no value the first of
            ``factual_correctness``, ``ours_answer_found``, ``ours_nugget_recall`` that has one.
        recall: Metric that says how much of what is needed was retrieved; default: ``context_recall``, or
            ``ours_span_recall``, ``recall@k``, ``hit_rate@k``.
        precision: Metric that says how much of what was retrieved is needed, and whether it stands on top; default:
            ``context_precision``, or ``context_precision_without_reference``, ``map``, ``mrr``.
        language: Of the texts; ``auto``: that of most questions.

    Raises:
        InvalidInputError: If the results lack one of the metrics, or a threshold is out of range.

    Example:
        >>> from rag_kit.evaluation.cells import Cell
        >>> from rag_kit.evaluation.examples import Example
        >>> from rag_kit.evaluation.outputs import Output
        >>> from rag_kit.evaluation.runs.results import Results
        >>> from rag_kit.evaluation.runs.rows import Row
        >>> scores = {"answer_correctness": 0.2, "context_recall": 1.0, "context_precision": 0.3}
        >>> row = Row(Example("q1", "Who?"), Output("Bob."), {name: Cell.ok(v) for name, v in scores.items()})
        >>> found = diagnose(Results("mine", [row]))
        >>> found.rows[0].case, found.case("noise").remedies[0].name
        ('noise', 'rag_kit.retrieval.RerankRetriever')
    """
    run = _load(results)
    given: dict[Role, str | None] = {"answer": answer, "recall": recall, "precision": precision}
    metrics: dict[Role, str] = {
        role: stand_in(run, role) or STAND_INS[role][0] if name is None else name
        for role, name in given.items()
    }
    for role, metric in metrics.items():
        if metric not in run.metrics:
            raise InvalidInputError(
                f"the results of {run.name!r:.80} have no {metric!r:.80}; there are {', '.join(run.metrics)}. "
                f"Evaluate with it, or name another metric: diagnose(results, {role}=...)"
            )
    if len(set(metrics.values())) < len(metrics):
        raise InvalidInputError(
            f"answer, recall and precision are {', '.join(metrics.values())}; give three metrics"
        )
    if not run.rows:
        raise InvalidInputError(f"the results of {run.name!r:.80} have no rows; run evaluate first")
    limits = _thresholds(thresholds, metrics)
    chosen = _language(language, [row.example.question for row in run.rows])
    rows = [find(row, metrics, limits, chosen) for row in run.rows]
    return Diagnosis(run.name, rows, limits, metrics, chosen)


def _load(results: Any) -> Results:
    from rag_kit.evaluation.runs.results import Results

    run = Results.load(results) if isinstance(results, (str, Path)) else results
    if not isinstance(run, Results):
        raise InvalidInputError(
            f"results is a {type(run).__name__}; give the Results of one run, or its folder"
        )
    return run


def _thresholds(given: Any, metrics: Mapping[Role, str]) -> dict[Role, float]:
    limits: dict[Role, float] = dict.fromkeys(ROLES, _THRESHOLD)
    if given is None:
        return limits
    if not isinstance(given, Mapping):
        given = dict.fromkeys(ROLES, given)
    roles: dict[str, Role] = {metric: role for role, metric in metrics.items()} | {
        role: role for role in ROLES
    }
    for name, value in given.items():
        number = isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < float("inf")
        if name not in roles or not number:
            raise InvalidInputError(
                f"thresholds has {name!r:.80}: {value!r:.80}; give numbers for answer, recall and precision"
            )
        limits[roles[name]] = float(value)
    return limits


def _language(language: Any, questions: list[str]) -> str:
    if language not in ("auto", "en", "zh"):
        raise InvalidInputError(f"language is {language!r:.80}; allowed are auto, en, zh")
    if language != "auto":
        return str(language)
    from rag_kit.text import detect_language

    chinese = sum(detect_language(question) == "zh" for question in questions)
    return "zh" if 2 * chinese > len(questions) else "en"


def _means(rows: list[Finding]) -> dict[Role, float]:
    known = [row for row in rows if row.case is not None]
    if not known:
        return {}
    return {role: sum(getattr(row, role).value for row in known) / len(known) for role in ROLES}


def _overall(means: Mapping[Role, float], limits: Mapping[Role, float]) -> CaseName | None:
    if not means:
        return None
    return TABLE[tuple("high" if means[role] >= limits[role] - 1e-9 else "low" for role in ROLES)]
