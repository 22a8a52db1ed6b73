"""What several pipelines add to each other on one metric."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rag_kit.evaluation.comparing.pairs import got_it

if TYPE_CHECKING:
    import numpy as np

    from rag_kit.evaluation.comparing.matched import Matched


@dataclass(frozen=True)
class Step:
    """A pipeline more to combine: it gains so many questions that none before gets; the set then gets this share."""

    pipeline: str
    gain: int
    share: float


@dataclass(frozen=True)
class Complementarity:
    """What pipelines add to each other on one metric.

    Everything stands on the questions for which every pipeline has a value.

    Args:
        metric: The metric's name.
        threshold: A question is got from this value on (up to it, where less is better).
        pipelines: Names, in order.
        n: Questions for which every pipeline has a value.
        total: Questions in all.
        got: Pipeline -> ids of the questions it gets.
        only: Pipeline -> ids of the questions that it alone gets.
        everyone: Ids that all get.
        nobody: Ids that none gets: no combination helps, the cause lies before retrieval or in the gold.
        union: Share of the questions that at least one gets: what an oracle that always picks the right one reaches.
            ``None`` without questions.
        best_single: Share of the best one alone.
        greedy: Which to combine: first the best one, then whichever adds most, until none adds anything. A tie goes
            to the quicker one.
        matrix: ``matrix[i][j]``: questions that pipeline i gets and j does not; on the diagonal, those that i gets.
    """

    metric: str
    threshold: float
    pipelines: tuple[str, ...]
    n: int
    total: int
    got: Mapping[str, tuple[str, ...]]
    only: Mapping[str, tuple[str, ...]]
    everyone: tuple[str, ...]
    nobody: tuple[str, ...]
    union: float | None
    best_single: float | None
    greedy: tuple[Step, ...]
    matrix: tuple[tuple[int, ...], ...]

    def combine(self, gain: float = 0.0) -> list[str]:
        """Names of the greedy set, as long as each adds more than this share of the questions.

        Args:
            gain: Such as 0.02: one that adds less than two questions in a hundred is not worth its cost.
        """
        return [step.pipeline for step in self.greedy if self.n and step.gain / self.n > gain]

    def records(self) -> list[dict[str, Any]]:
        """A line for each pipeline: what it gets, what it alone gets, its place in the greedy set and its gain."""
        steps = {step.pipeline: (place, step) for place, step in enumerate(self.greedy, start=1)}
        found = []
        for name in self.pipelines:
            place, step = steps.get(name, (None, None))
            found.append({
                "metric": self.metric, "pipeline": name, "got": len(self.got[name]), "only": len(self.only[name]),
                "place": place, "gain": step.gain if step else 0, "share_with_it": step.share if step else None,
                "union": self.union, "n": self.n, "total": self.total,
            })  # fmt: skip
        return found


def complementarity(
    matched: Matched, metric: str, threshold: float, seconds: Sequence[float | None]
) -> Complementarity:
    """Set the pipelines against each other on one metric; ``seconds`` is the latency of each, for ties."""
    import numpy as np

    values = matched.values[metric]
    complete = (values == values).all(axis=1)
    got = got_it(matched, metric, threshold)[complete]
    ids = [key for key, there in zip(matched.examples, complete.tolist(), strict=True) if there]
    times = got.sum(axis=1)
    names = matched.names

    def named(chosen: np.ndarray) -> tuple[str, ...]:
        return tuple(ids[number] for number in np.flatnonzero(chosen))

    count = len(ids)
    both = got.T.astype(int) @ got.astype(int)
    alone = both.diagonal()
    missed = alone[:, None] - both + np.diag(alone)
    return Complementarity(
        metric=metric, threshold=threshold, pipelines=names, n=count, total=matched.questions,
        got={name: named(got[:, i]) for i, name in enumerate(names)},
        only={name: named(got[:, i] & (times == 1)) for i, name in enumerate(names)},
        everyone=named(times == len(names)), nobody=named(times == 0),
        union=float((times > 0).mean()) if count else None,
        best_single=float(alone.max() / count) if count else None,
        greedy=_greedy(got, names, seconds),
        matrix=tuple(map(tuple, missed.tolist())),
    )  # fmt: skip


def _greedy(got: np.ndarray, names: Sequence[str], seconds: Sequence[float | None]) -> tuple[Step, ...]:
    import numpy as np

    steps: list[Step] = []
    left = list(range(len(names)))
    covered = np.zeros(len(got), dtype=bool)
    while left:
        gains = {i: int((got[:, i] & ~covered).sum()) for i in left}
        best = min(left, key=lambda i: (-gains[i], seconds[i] if seconds[i] is not None else float("inf"), i))
        if gains[best] == 0:
            break
        covered |= got[:, best]
        left.remove(best)
        steps.append(Step(names[best], gains[best], float(covered.mean())))
    return tuple(steps)
