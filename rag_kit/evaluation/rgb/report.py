"""What came out: scores with intervals and coverage, and every reply behind them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from rag_kit.documents.tables import Table, tables_html, tables_text
from rag_kit.evaluation.statistics import bootstrap_interval

NAMES = ("noise_robustness", "negative_rejection", "information_integration", "counterfactual_robustness")


@dataclass(frozen=True)
class AbilityScore:
    """One figure.

    Args:
        ability: One of the four.
        metric: ``accuracy``, ``rejection``, ``error_detection`` or ``error_correction``.
        language: ``"en"`` or ``"zh"``.
        noise_rate: Share of the passages that was noise; ``None`` for counterfactual passages.
        value: The share; ``None`` where no reply counts.
        low: Lower end of the 95% interval (percentile bootstrap).
        high: Upper end.
        n: Replies that it is the mean of.
        total: Questions asked.
        errors: Questions without a reply.
    """

    ability: str
    metric: str
    language: str
    noise_rate: float | None
    value: float | None
    low: float | None
    high: float | None
    n: int
    total: int
    errors: int


@dataclass(frozen=True)
class AbilityReport:
    """The scores of `abilities`.

    Args:
        name: What was tested.
        scores: In the order of the abilities, languages and noise rates.
        cases: One record a question, ability and noise rate: ``ability``, ``id``, ``language``, ``noise_rate``,
            ``question``, ``reply``, ``labels``, ``right``, ``declined``, ``detected``, ``seconds``, ``error``.
        settings: Rates, passages, seed, files, words that decline.
        skipped: Questions of the source that an ability could not use: ability -> reason -> count.
        stopped_by: Which cap ended the run early, if one did.
    """

    name: str
    scores: tuple[AbilityScore, ...]
    cases: tuple[Mapping[str, Any], ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
    skipped: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    stopped_by: str | None = None

    def get(
        self, ability: str, metric: str | None = None, *, language: str, noise_rate: float | None = None
    ) -> AbilityScore:
        """The first score that fits.

        Raises:
            KeyError: If there is none.
        """
        for score in self.scores:
            fits = score.ability == ability and score.language == language
            if fits and metric in (None, score.metric) and noise_rate in (None, score.noise_rate):
                return score
        raise KeyError(f"there is no score of {ability}, {metric}, {language}, {noise_rate}")

    def to_json(self) -> dict[str, Any]:
        """Scores, settings and what was skipped, as plain JSON; no texts."""
        return {
            "name": self.name,
            "settings": dict(self.settings),
            "scores": [asdict(score) for score in self.scores],
            "skipped": {name: dict(reasons) for name, reasons in self.skipped.items()},
            "stopped_by": self.stopped_by,
        }

    def to_pandas(self) -> Any:
        """The scores as a frame."""
        import pandas as pd

        return pd.DataFrame([asdict(score) for score in self.scores])

    def __str__(self) -> str:
        return tables_text(self.name, [self._table()], self._notes())

    def _repr_html_(self) -> str:
        return tables_html(self.name, [self._table()], self._notes())

    def _table(self) -> Table:
        rows = [
            [one.ability, one.metric, one.language, "-" if one.noise_rate is None else f"{one.noise_rate:g}", one.value,
             "-" if one.low is None else f"{one.low:.3f} to {one.high:.3f}",
             f"{one.n} of {one.total}" + (f", {one.errors} failed" if one.errors else "")]
            for one in self.scores
        ]  # fmt: skip
        return Table(["ability", "metric", "language", "noise", "value", "95% interval", "replies"], rows)

    def _notes(self) -> list[str]:
        notes = [
            f"{ability}: {count} questions left out: {reason}"
            for ability, reasons in self.skipped.items()
            for reason, count in reasons.items()
        ]
        return [*notes, f"ended early: {self.stopped_by}"] if self.stopped_by else notes


def scores_of(cases: Sequence[Mapping[str, Any]]) -> tuple[AbilityScore, ...]:
    """The figures of all cases: paper's accuracy, rejection rate, error detection and error correction rate."""
    groups: dict[tuple[str, str, float | None], list[Mapping[str, Any]]] = {}
    for case in cases:
        groups.setdefault((case["ability"], case["language"], case["noise_rate"]), []).append(case)
    found = []
    order = {name: place for place, name in enumerate(NAMES)}
    for (ability, language, rate), group in sorted(
        groups.items(), key=lambda each: (order[each[0][0]], each[0][1], each[0][2] or 0.0)
    ):
        good = [case for case in group if case.get("error") is None]
        columns: list[tuple[str, list[float]]]
        if ability == "negative_rejection":
            columns = [("rejection", [float(case["declined"]) for case in good])]
        else:
            columns = [("accuracy", [float(case["right"]) for case in good])]
        if ability == "counterfactual_robustness":
            detected = [case for case in good if case["detected"]]
            columns += [
                ("error_detection", [float(case["detected"]) for case in good]),
                ("error_correction", [float(case["right"]) for case in detected]),
            ]
        for metric, values in columns:
            low, high = bootstrap_interval(values, n=2000) if values else (None, None)
            mean = sum(values) / len(values) if values else None
            counts = (len(values), len(group), len(group) - len(good))
            found.append(AbilityScore(ability, metric, language, rate, mean, low, high, *counts))
    return tuple(found)
