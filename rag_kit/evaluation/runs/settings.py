"""The arguments of a run, checked once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_kit.concurrency import Budget, check_seconds
from rag_kit.errors import InvalidInputError
from rag_kit.evaluation.examples import Example
from rag_kit.evaluation.metric import Metric
from rag_kit.evaluation.runs.asking import Ask
from rag_kit.evaluation.runs.prices import Prices
from rag_kit.evaluation.runs.progress import Progress

if TYPE_CHECKING:
    from rag_kit.evaluation.judge.judge import Judge


@dataclass(frozen=True)
class Settings:
    """What ``evaluate`` was called with.

    Raises:
        InvalidInputError: If one of them is not allowed.
    """

    name: str
    version: str | None
    ask: Ask
    hash_pipeline: Callable[[], str]
    whole: bool
    examples: tuple[Example, ...]
    dataset: str | None
    metrics: tuple[Metric, ...]
    judge: Judge | None
    out: Path | None
    max_concurrency: int
    timeout: float | None
    metric_timeout: float | None
    caps: dict[str, Any]
    prices: Prices
    progress: bool | Callable[[Progress], None]
    retry_errors: bool

    def __post_init__(self) -> None:
        for name in ("name", "version"):
            value = getattr(self, name)
            if not (isinstance(value, str) and value.strip()) and not (name == "version" and value is None):
                raise InvalidInputError(f"{name} is {value!r:.80}; give a text that is not blank")
        width = self.max_concurrency
        if isinstance(width, bool) or not isinstance(width, int) or not 1 <= width <= 10_000:
            raise InvalidInputError(f"max_concurrency is {width!r:.80}; give a whole number from 1 to 10000")
        if not isinstance(self.progress, bool) and not callable(self.progress):
            raise InvalidInputError(f"progress is {self.progress!r:.80}; give True, False or a function")
        if self.judge is not None and not hasattr(self.judge, "fingerprint"):
            raise InvalidInputError(
                f"judge is a {type(self.judge).__name__}; give a Judge (of a name or a chat model: Judge(...)), or None"
            )
        check_seconds("timeout", self.timeout)
        check_seconds("metric_timeout", self.metric_timeout)
        Budget(**self.caps)  # refuses what makes no sense

    def plain(self) -> dict[str, Any]:
        """As JSON, for the manifest."""
        return {
            "max_concurrency": self.max_concurrency, "timeout": self.timeout, "metric_timeout": self.metric_timeout,
            **self.caps, "retry_errors": self.retry_errors,
        }  # fmt: skip


def take_examples(dataset: Any) -> tuple[tuple[Example, ...], str | None]:
    """The examples of a set, a sequence, or a file, and the set's name.

    Raises:
        InvalidInputError: If there is none, one is no example, or an id comes twice.
    """
    if isinstance(dataset, (str, Path)):
        from rag_kit.evaluation.sets import EvaluationSet

        dataset = EvaluationSet.load(dataset)
    try:
        examples = tuple(dataset)
    except TypeError:
        raise InvalidInputError(
            f"the dataset is a {type(dataset).__name__}; give an EvaluationSet, a list of Examples, or a path"
        ) from None
    wrong = [type(each).__name__ for each in examples if not isinstance(each, Example)]
    if wrong:
        frame = callable(getattr(dataset, "to_dict", None))
        how = "EvaluationSet.from_pandas reads a frame" if frame else "EvaluationSet.load reads a file"
        raise InvalidInputError(f"the dataset holds a {wrong[0]}; give objects of the class Example ({how})")
    if not examples:
        raise InvalidInputError("the dataset holds no example; there is nothing to evaluate")
    seen: set[str] = set()
    for example in examples:
        if example.id in seen:
            raise InvalidInputError(
                f"the id {example.id!r:.80} comes twice in the dataset; give each its own"
            )
        seen.add(example.id)
    name = getattr(dataset, "name", None)
    return examples, name if isinstance(name, str) else None
