"""What a search is given, once it is checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rag_kit.evaluation.tuning.pruning import Pruning
from rag_kit.evaluation.tuning.split import Split

if TYPE_CHECKING:
    from rag_kit.evaluation.judge import Judge
    from rag_kit.evaluation.metric import Metric
    from rag_kit.evaluation.tuning.space import SearchSpace


@dataclass(frozen=True)
class Plan:
    """What is searched, and how.

    Args:
        make: From a setting to a pipeline; blocking or a coroutine function.
        space: The settings.
        metric: What they are compared by.
        judge: For metrics that need one.
        split: The questions.
        n_trials: Most settings.
        pruning: When a setting is given up.
        min_coverage: Least share of questions with a value, of those that the default setting has.
        max_concurrency: Questions asked at a time.
        timeout: Seconds for one question.
        prices: As for ``evaluate``.
        seed: Of the proposals.
        told: Called with a line about each setting.
    """

    make: Callable[[dict[str, Any]], Any]
    space: SearchSpace
    metric: Metric
    judge: Judge | None
    split: Split
    n_trials: int
    pruning: Pruning
    min_coverage: float
    max_concurrency: int
    timeout: float | None
    prices: Any
    seed: int
    told: Callable[[str], None]
