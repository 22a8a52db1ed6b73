"""Two pipelines on one metric: how far apart they are, and whether that is more than luck."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

from rag_kit.evaluation.comparing.intervals import column_intervals
from rag_kit.evaluation.comparing.significance import Correction, SignFlip, adjust, mcnemar_p, sign_flip_tests

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np

    from rag_kit.evaluation.comparing.matching import Matched

_RESAMPLES = 10_000
_LARGE = 500
"""Questions above which fewer resamples are drawn: with twenty pipelines they would take minutes. 0224 has figures."""
_RESAMPLES_OF_LARGE = 2_500


@dataclass(frozen=True)
class Pair:
    """A pipeline against another one, over the questions that both have an ok cell for.

    Args:
        metric: The metric's name.
        pipeline: The first.
        other: The second: the baseline, where there is one.
        n: Questions that both have a value for; on no other does anything here stand.
        difference: Mean of first minus second; ``None`` without such questions.
        low: Lower end of its paired bootstrap interval; ``None`` below two questions.
        high: Upper end.
        wins: Questions on which the first does better.
        losses: Questions on which the second does.
        p: p-value of the sign-flip test; ``None`` without questions.
        method: ``exact``, ``permutation``, or ``none`` where every difference is zero.
        p_adjusted: The same, corrected for all tests of the comparison.
        hits: ``{"pipeline", "other", "only_pipeline", "only_other"}``: questions that each gets, where the metric
            is one of hits or a threshold was given; else ``None``.
        mcnemar_p: p-value of McNemar's exact test on them.
        mcnemar_p_adjusted: The same, corrected.
        one_test: Whether both tests are the same one, as for a metric of hits; then they count once.
        better: The name of the better one, where the corrected p-value is below ``1 - level``; else ``None``.
    """

    metric: str
    pipeline: str
    other: str
    n: int
    difference: float | None
    low: float | None
    high: float | None
    wins: int
    losses: int
    p: float | None
    method: str
    p_adjusted: float | None
    hits: dict[str, int] | None = None
    mcnemar_p: float | None = None
    mcnemar_p_adjusted: float | None = None
    one_test: bool = False
    better: str | None = None

    def to_json(self) -> dict[str, Any]:
        """As plain JSON."""
        return asdict(self)


def is_hits(values: np.ndarray) -> bool:
    """Whether all values are 0 or 1."""
    present = values[values == values]
    return bool(len(present)) and bool(((present == 0) | (present == 1)).all())


def compare_pairs(
    matched: Matched,
    *,
    baseline: str | None,
    level: float,
    correction: Correction,
    thresholds: Mapping[str, float],
) -> list[Pair]:
    """Test every pipeline against the baseline, or every two against each other; metric by metric."""
    import numpy as np

    couples = _couples(matched, baseline)
    first, second = (np.array([couple[side] for couple in couples]) for side in (0, 1))
    blocks = [
        matched.values[metric][:, first] - matched.values[metric][:, second] for metric in matched.metrics
    ]
    table = np.concatenate(blocks, axis=1)
    counts = (~np.isnan(table)).sum(axis=0).tolist()
    resamples = _RESAMPLES if matched.questions <= _LARGE else _RESAMPLES_OF_LARGE
    intervals = column_intervals(table, level=level, n=resamples)
    tests = sign_flip_tests(np.nan_to_num(table, nan=0.0))
    drafts: list[dict[str, Any]] = []
    for number, (metric, (i, j)) in enumerate((m, c) for m in matched.metrics for c in couples):
        column = table[:, number]
        column = column[column == column]
        sign = -1 if metric in matched.lower else 1
        drafts.append(
            {
                "metric": metric, "pipeline": matched.names[i], "other": matched.names[j], "n": counts[number],
                "difference": float(column.mean()) if len(column) else None,
                "low": intervals[number][0], "high": intervals[number][1],
                "wins": int((sign * column > 0).sum()), "losses": int((sign * column < 0).sum()),
                **_tested(tests[number], len(column)),
                **_hits(matched, metric, i, j, thresholds),
            }
        )  # fmt: skip
    _correct(drafts, correction)
    return [Pair(**draft, better=_better(draft, matched, level)) for draft in drafts]


def _couples(matched: Matched, baseline: str | None) -> list[tuple[int, int]]:
    if baseline is None:
        return list(combinations(range(len(matched.names)), 2))
    base = matched.index(baseline)
    return [(number, base) for number in range(len(matched.names)) if number != base]


def _tested(test: SignFlip, n: int) -> dict[str, Any]:
    return {"p": test.p if n else None, "method": test.method if n else "none"}


def _hits(matched: Matched, metric: str, i: int, j: int, thresholds: Mapping[str, float]) -> dict[str, Any]:
    values = matched.values[metric]
    if metric not in thresholds and not is_hits(values):
        return {}
    got = got_it(matched, metric, thresholds.get(metric, 0.5))
    both = (values[:, i] == values[:, i]) & (values[:, j] == values[:, j])
    one, two = got[both, i], got[both, j]
    only_one, only_two = int((one & ~two).sum()), int((two & ~one).sum())
    hits = {
        "pipeline": int(one.sum()), "other": int(two.sum()), "only_pipeline": only_one, "only_other": only_two,
    }  # fmt: skip
    return {"hits": hits, "mcnemar_p": mcnemar_p(only_one, only_two) if both.any() else None}


def got_it(matched: Matched, metric: str, threshold: float) -> np.ndarray:
    """Whether each pipeline gets each question: questions by pipelines; False where there is no value."""
    values = matched.values[metric]
    return values <= threshold if metric in matched.lower else values >= threshold


def _correct(drafts: list[dict[str, Any]], correction: Correction) -> None:
    """One family of tests: every sign-flip test, and McNemar's where it is another test than that one."""
    places: list[tuple[dict[str, Any], str]] = []
    for draft in drafts:
        draft["p_adjusted"] = None
        if draft["p"] is not None:
            places.append((draft, "p"))
        if draft.get("mcnemar_p") is not None:
            draft["one_test"] = _one_test(draft)
            if not draft["one_test"]:
                places.append((draft, "mcnemar_p"))
    adjusted = adjust([draft[name] for draft, name in places], correction)
    for (draft, name), p in zip(places, adjusted, strict=True):
        draft[f"{name}_adjusted"] = p
    for draft in drafts:
        if draft.get("one_test"):
            draft["mcnemar_p_adjusted"] = draft["p_adjusted"]


def _one_test(draft: dict[str, Any]) -> bool:
    hits = draft["hits"]
    counts = (hits["only_pipeline"], hits["only_other"])
    return counts == (draft["wins"], draft["losses"]) and abs(draft["mcnemar_p"] - draft["p"]) < 1e-9


def _better(draft: dict[str, Any], matched: Matched, level: float) -> str | None:
    p, difference = draft["p_adjusted"], draft["difference"]
    if p is None or p >= 1 - level or not difference:
        return None
    first = (difference > 0) != (draft["metric"] in matched.lower)
    return str(draft["pipeline"] if first else draft["other"])
