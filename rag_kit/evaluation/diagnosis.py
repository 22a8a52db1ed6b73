"""Why is an answer wrong? The scores of answer and retrieval, low or high, name the cause and the remedy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args

from rag_kit.documents.display import Table, one_line
from rag_kit.errors import InvalidInputError
from rag_kit.evaluation.comparison_pairs import check_thresholds
from rag_kit.evaluation.outcomes import ANSWER, NO_ANSWER, count_outcomes, first_metric, outcome_of
from rag_kit.evaluation.runs.results import Results
from rag_kit.evaluation.runs.rows import Row
from rag_kit.evaluation.wording import SpokenResult, check_language, load_texts, main_language

Role = Literal["answer", "recall", "precision"]
Level = Literal["high", "low"]

#: The causes. ``model`` to ``retrieval`` are the four of a low answer score, ``invented`` is an answer where
#: the documents hold none; the others are of a good answer.
CaseName = Literal[
    "model", "noise", "coverage", "retrieval", "invented",
    "right", "right_noisy", "right_unsupported", "right_declined",
]  # fmt: skip
CASES: tuple[CaseName, ...] = get_args(CaseName)
#: (answer, recall, precision) -> cause.
_CASE_BY_LEVELS: Mapping[tuple[Level | None, ...], CaseName] = {
    ("low", "high", "high"): "model",
    ("low", "high", "low"): "noise",
    ("low", "low", "high"): "coverage",
    ("low", "low", "low"): "retrieval",
    ("high", "high", "high"): "right",
    ("high", "high", "low"): "right_noisy",
    ("high", "low", "high"): "right_unsupported",
    ("high", "low", "low"): "right_unsupported",
}

#: Role -> metrics that can play it, best first; ``name@`` stands for any cut-off. Precision at k is not among them:
#: with one relevant passage it cannot pass 1/k, and every question would look noisy.
ROLES: dict[Role, tuple[str, ...]] = {
    "answer": ANSWER,
    "recall": ("context_recall", "ours_span_recall", "ours_span_recall@", "recall@", "hit_rate@"),
    "precision": ("context_precision", "context_precision_without_reference", "map", "map@", "mrr", "mrr@"),
}  # fmt: skip
_GOOD_CITATIONS = (None, "supported", "undecided", "grounded")  # statuses
_OUTCOME_COLUMNS = ("", "right", "wrong", "declined", "of them rightly", "answered anyway", "not known")


@dataclass(frozen=True)
class Remedy:
    """A remedy for a cause, and the part of this kit that provides it."""

    name: str
    text: str


@dataclass(frozen=True)
class Cause:
    """A cause: its key, a short name, what is wrong, and what to do, the cheapest first."""

    name: CaseName
    title: str
    cause: str
    remedies: tuple[Remedy, ...]

    @property
    def good(self) -> bool:
        """Whether the answer is right."""
        return self.name.startswith("right")

    def to_json(self) -> dict[str, Any]:
        """Return the cause as plain JSON."""
        remedies = [{"part": remedy.name, "text": remedy.text} for remedy in self.remedies]
        return {"title": self.title, "cause": self.cause, "good": self.good, "remedies": remedies}


@cache
def case_of(name: CaseName, language: str = "en") -> Cause:
    """Return a cause by its name, with its texts in a language."""
    texts = load_texts("remedies.json")
    position = 1 if language == "zh" else 0  # in each pair of texts
    case = texts["cases"][name]
    parts = [texts["remedies"][key] for key in case["remedies"]]
    remedies = tuple(Remedy(part, pair[position]) for part, *pair in parts)
    return Cause(name, case["title"][position], case["cause"][position], remedies)


@dataclass(frozen=True)
class Finding:
    """The diagnosis of one question: its three scores, the cause, and hints; in English.

    ``values`` and ``levels`` go by ``answer``, ``recall``, ``precision``. ``case`` is ``None`` where one of them has no
    value (``unknown`` says why). ``hints``: the pipeline failed, retrieved nothing, declined, cited wrongly.
    """

    id: str
    question: str
    values: Mapping[Role, float | None]
    levels: Mapping[Role, Level | None]
    case: CaseName | None
    unknown: tuple[str, ...]
    hints: tuple[str, ...]


@dataclass(repr=False, eq=False)
class Diagnosis(SpokenResult):
    """Result of `diagnose`. ``print`` it, or leave it as the last expression of a Jupyter cell.

    ``rows`` has a finding for each question; ``thresholds`` and ``metrics`` go by ``answer``, ``recall`` and
    ``precision``; ``counts`` has the number of questions of each cause that occurs, ``unknown`` of those without one;
    ``outcomes`` how many were answered right or wrong, declined or anyway (`rag_kit.evaluation.outcomes.outcomes`).
    """

    name: str
    rows: list[Finding]
    thresholds: dict[Role, float]
    metrics: dict[Role, str]
    language: str
    outcomes: dict[str, int]

    def __post_init__(self) -> None:
        counts = Counter(row.case for row in self.rows)
        self.counts: dict[CaseName, int] = {name: counts[name] for name in CASES if counts[name]}
        self.unknown = counts[None]

    @property
    def causes(self) -> list[CaseName]:
        """Causes that occur: those of wrong answers first, the most frequent first."""
        return sorted(self.counts, key=lambda name: (case_of(name).good, -self.counts[name]))

    @property
    def main(self) -> CaseName | None:
        """The most frequent cause of a low answer score; ``None`` where there is no such question."""
        return next((name for name in self.causes if not case_of(name).good), None)

    def case(self, name: CaseName) -> Cause:
        """Return title, cause and remedies of a case."""
        return case_of(name, self.language)

    def questions(self, case: CaseName | None) -> list[Finding]:
        """Return the questions with a cause; for ``None``, those without."""
        return [row for row in self.rows if row.case == case]

    def to_json(self) -> dict[str, Any]:
        """Return the diagnosis as plain JSON, the texts in its language."""
        fields = ("name", "language", "unknown", "main", "thresholds", "metrics", "counts", "outcomes")
        return {
            **{key: getattr(self, key) for key in fields},
            "questions": len(self.rows),
            "cases": {name: self.case(name).to_json() for name in self.causes},
            "rows": self._row_records(),
        }

    def __repr__(self) -> str:
        return f"<Diagnosis of {len(self.rows)} questions: {self.counts}>"

    def _row_records(self) -> list[dict[str, Any]]:
        """Return the findings as plain JSON, with their scores by metric."""
        records = []
        for row in self.rows:
            scores = {self.metrics[role]: value for role, value in row.values.items()}
            levels = {f"{role}.level": level for role, level in row.levels.items()}
            record = {"id": row.id, "question": row.question, "case": row.case, **scores, **levels}
            records.append(record | {"unknown": self._join(row.unknown), "hints": self._join(row.hints)})
        return records

    def _join(self, texts: tuple[str, ...]) -> str:
        return ("；" if self.language == "zh" else "; ").join(map(self._say, texts))

    def _english(self) -> tuple[str, list[Table], list[str]]:
        name, total = " ".join(self.name.split()), len(self.rows)
        limits = ", ".join(f"{metric} {self.thresholds[role]:g}" for role, metric in self.metrics.items())
        title = (
            f"{name}: {total - self.unknown} of {total} questions diagnosed\nHigh from: {limits}. A question without "
            "one of the three scores is not diagnosed; nothing is guessed."
        )
        return title, self._tables(), []

    def _tables(self) -> list[Table]:
        """Make four tables: outcomes, causes, remedies, and the questions that were not simply answered right."""
        causes: list[list[Any]] = []
        remedies: list[list[Any]] = []
        for case in map(self.case, self.causes):
            causes.append([case.title, self.counts[case.name], case.cause])
            remedies += [[case.title, remedy.name, remedy.text] for remedy in case.remedies]
        if self.unknown:
            causes.append([self._say("not diagnosed"), self.unknown, ""])
        outcomes = [[one_line(self.name), *self.outcomes.values()]]
        cases = [name for name in (*self.causes, None) if name not in ("right", "right_declined")]
        rows = [self._table_row(row) for name in cases for row in self.questions(name)]
        header, more = ("id", "question", "cause", *ROLES, "also"), "... and {0} more: to_json() has them all"
        return [
            Table(_OUTCOME_COLUMNS, outcomes, "What became of the questions", right=range(1, 7)),
            Table(("cause", "questions", ""), causes, right=[1], width=240),
            Table(("cause", "part", ""), remedies, "Remedies", width=240),
            Table(header, rows, "Question by question", width=48, limit=40, more=more),
        ]

    def _table_row(self, row: Finding) -> list[Any]:
        cause = self._say("not diagnosed") if row.case is None else self.case(row.case).title
        levels = row.levels.items()
        scores = [
            "-" if level is None else f"{row.values[role]:.2f} {self._say(level)}" for role, level in levels
        ]
        return [row.id, row.question, cause, *scores, self._join((*row.unknown, *row.hints))]


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
    precision: noise. Low recall, high precision: too little was retrieved. Both low: retrieval as a whole. A question
    that the documents do not answer (``answerable`` is false) was declined, or answered anyway. Where one of the
    three has no value, the question has no cause: that is said, with the reason, and not guessed.

    Args:
        results: Of one run, or the folder of one.
        thresholds: One number for all three, or by ``answer``, ``recall``, ``precision``; default: 0.5 each.
        answer: Metric that scores the answer; default: the first of `ROLES` that applies to about
            as many questions as any; so for the other two. The table names them.
        recall: Metric that says how much of what is needed was retrieved.
        precision: Metric that says how much of what was retrieved is needed, and whether it stands on top.
        language: Of the texts; ``auto``: that of most questions.

    Raises:
        InvalidInputError: If the results lack one of the metrics, or a threshold is out of range.

    Example:
        >>> from langchain_core.documents import Document
        >>> from rag_kit.evaluation import Example, evaluate
        >>> rag = lambda question: {"answer": "Bob.", "documents": [Document("By Ada.", id="d1")]}
        >>> questions = [Example("q1", "Who wrote it?", answers=("Ada",), relevant={"d1": 1})]
        >>> found = diagnose(evaluate(rag, questions, ["ours_answer_found", "recall@5", "mrr"]))
        >>> found.main, found.case("model").remedies[0].name
        ('model', 'rag_kit.models.chat_model')
    """
    run = Results.load(results) if isinstance(results, (str, Path)) else results
    if not isinstance(run, Results) or not run.rows:
        raise InvalidInputError(
            f"results is {type(run).__name__} without rows; give what evaluate returned, or the folder of one run"
        )
    requested: dict[Role, str | None] = {"answer": answer, "recall": recall, "precision": precision}
    metrics = {role: names[0] for role, names in ROLES.items()} | choose_metrics(run)
    metrics |= {role: name for role, name in requested.items() if name}
    for role, metric in metrics.items():
        if metric not in run.metrics:
            raise InvalidInputError(
                f"the results of {run.name!r:.80} have no {metric!r:.80}; there are {', '.join(run.metrics)}. "
                f"Evaluate with it, or name another metric: diagnose(results, {role}=...)"
            )
    limits: dict[Any, float] = dict.fromkeys(ROLES, 0.5) | check_thresholds(thresholds, ROLES)
    rows = [_diagnose_row(row, metrics, limits) for row in run.rows]
    outcomes = count_outcomes(run, metrics["answer"], limits["answer"])
    if language == "auto":
        language = main_language(row.example.question for row in run.rows)
    return Diagnosis(run.name, rows, limits, metrics, check_language(language), outcomes)


def choose_metrics(results: Results) -> dict[Role, str]:
    """Map each role to the first metric that can play it, has values and applies to about as many questions as any."""
    return {role: name for role, names in ROLES.items() if (name := first_metric(results, names))}


def diagnose_all(results: Mapping[str, Results], language: Any = "auto") -> dict[str, Diagnosis]:
    """Map the name of each run that can be diagnosed to its diagnosis."""
    usable = {name: run for name, run in results.items() if len(choose_metrics(run)) == len(ROLES)}
    return {name: replace(diagnose(run, language=language), name=name) for name, run in usable.items()}


def _diagnose_row(row: Row, metrics: Mapping[Role, str], limits: Mapping[Role, float]) -> Finding:
    """Compare the three scores with their thresholds; name the cause if all three are known."""
    values: dict[Role, float | None] = {}
    levels: dict[Role, Level | None] = {}
    unknown: list[str] = []
    for role, metric in metrics.items():
        cell = row.cells.get(metric)
        values[role], levels[role] = cell.value if cell else None, None
        if cell is None:
            unknown.append(f"{metric}: missing")
        elif cell.value is None:
            reason = f" ({cell.reason})" if cell.reason else ""
            unknown.append(f"{metric}: {cell.status.replace('_', ' ')}{reason}")
        else:
            # less a billionth: Ragas's ContextPrecision of a half comes out as 0.49999999995
            levels[role] = "high" if cell.value >= limits[role] - 1e-9 else "low"
    case = _CASE_BY_LEVELS.get(tuple(levels[role] for role in ROLES))  # None if one of them is None
    # where the documents hold no answer, it is right to decline, whatever the scores
    if row.example.answerable is False and row.output.error is None:
        outcome = outcome_of(row, metrics["answer"], limits["answer"])
        if row.output.status in NO_ANSWER:
            case, unknown = None, ["the question was refused, or a question was asked back"]
        elif outcome != "unknown":
            case, unknown = "right_declined" if outcome == "declined" else "invented", []
    return Finding(row.example.id, row.example.question, values, levels, case, tuple(unknown), _hints_of(row))


def _hints_of(row: Row) -> tuple[str, ...]:
    """Return hints that the output itself gives: it failed, has no passages, declines, or cites wrongly."""
    output = row.output
    hints = []
    if output.error is not None:
        hints.append(f"the pipeline failed: {output.error}")
    elif output.passages == ():
        hints.append("no passage was retrieved")
    if output.declined:
        hints.append("the answer declines")
    if wrong := sum(citation.get("status") not in _GOOD_CITATIONS for citation in output.citations):
        hints.append(f"citations that do not hold: {wrong}")
    return tuple(hints)
