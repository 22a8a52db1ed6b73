"""The same comparison on parts of the questions: by type, language, length, or any tag."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from rag_kit.errors import InvalidInputError
from rag_kit.evaluation.comparing.intervals import column_intervals

if TYPE_CHECKING:
    from rag_kit.evaluation.comparing.matching import Matched
    from rag_kit.evaluation.examples import Example

FEW = 5
"""Questions below which a slice gets no interval: the bootstrap of three values only looks sure."""

NOT_SAID = "(not said)"

_RESAMPLES = 2_000
_CJK = r"\u3400-\u9fff\uf900-\ufaff\u3040-\u30ff\uac00-\ud7af"
_WORD = re.compile(rf"[{_CJK}]|[^\W_{_CJK}]+")
_BUILT_IN = ("type", "language", "length")


@dataclass(frozen=True)
class Slice:
    """One metric of one pipeline on a part of the questions.

    Args:
        by: What the questions are parted by: ``type``, ``language``, ``length`` or a tag.
        value: Which part.
        metric: The metric's name.
        pipeline: The pipeline's name.
        mean: Mean over those that have a value; ``None`` without any.
        low: Lower end of its interval; ``None`` below five values.
        high: Upper end.
        n: Questions of the part that have a value.
        total: Questions of the part.
    """

    by: str
    value: str
    metric: str
    pipeline: str
    mean: float | None
    low: float | None
    high: float | None
    n: int
    total: int

    def to_json(self) -> dict[str, Any]:
        """As plain JSON."""
        return asdict(self)


def check_slices(examples: Iterable[Example], slices: Iterable[str] | str) -> tuple[str, ...]:
    """The slices wanted.

    Raises:
        InvalidInputError: If one is neither built in nor a tag of any example.
    """
    if not isinstance(slices, Iterable):
        raise InvalidInputError(f"slices is {slices!r:.80}; give names of slices, or () for none")
    wanted = (slices,) if isinstance(slices, str) else tuple(slices)
    tags = {tag for example in examples for tag in example.tags}
    for name in wanted:
        if not isinstance(name, str) or (name not in _BUILT_IN and name not in tags):
            raise InvalidInputError(
                f"no example has the tag {name!r:.80} to slice by; allowed are "
                f"{', '.join(dict.fromkeys([*_BUILT_IN, *sorted(tags)]))}"
            )
    return tuple(dict.fromkeys(wanted))


def slice_scores(matched: Matched, slices: Sequence[str], *, level: float) -> list[Slice]:
    """Scores of every pipeline on every part; parts in order of size."""
    import numpy as np

    found = []
    examples = list(matched.examples.values())
    for by in slices:
        labels = _labels(examples, by)
        array = np.array(labels, dtype=object)
        for value in _ordered(labels, by):
            rows = array == value
            table = np.concatenate([matched.values[metric][rows] for metric in matched.metrics], axis=1)
            intervals = column_intervals(table, level=level, n=_RESAMPLES)
            for number, (metric, name) in enumerate((m, p) for m in matched.metrics for p in matched.names):
                column = table[:, number]
                column = column[column == column]
                low, high = intervals[number] if len(column) >= FEW else (None, None)
                mean = float(column.mean()) if len(column) else None
                found.append(Slice(by, value, metric, name, mean, low, high, len(column), int(rows.sum())))
    return found


def _labels(examples: Sequence[Example], by: str) -> list[str]:
    if by == "length":
        return _lengths([example.question for example in examples])
    if by == "language":
        from rag_kit.text import detect_language

        return [example.tags.get("language") or detect_language(example.question) for example in examples]
    return [example.tags.get(by) or NOT_SAID for example in examples]


def _lengths(questions: Sequence[str]) -> list[str]:
    """Thirds of the set by words; a Chinese character counts as a word. The limits stand in the names."""
    counts = [len(_WORD.findall(question)) for question in questions]
    ordered = sorted(counts)
    first, second = ordered[len(ordered) // 3], ordered[2 * len(ordered) // 3]
    names = (f"short (up to {first} words)", f"medium (up to {second} words)", f"long (over {second} words)")
    return [names[(count > first) + (count > second)] for count in counts]


def _ordered(labels: Sequence[str], by: str) -> list[str]:
    counts = Counter(labels)
    if by == "length":
        order = ("short", "medium", "long")
        return sorted(counts, key=lambda label: order.index(label.split(" ")[0]))
    return sorted(counts, key=lambda label: (label == NOT_SAID, -counts[label], label))
