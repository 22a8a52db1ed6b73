"""What a stored output or cell was computed from, as hashes: it is taken up again only while they are the same."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from rag_kit.documents import to_plain
from rag_kit.evaluation.examples import Example
from rag_kit.evaluation.metric import Metric
from rag_kit.evaluation.outputs import Output

#: Fields of an output that say what it took, and not what it is.
_COST = ("calls", "tokens", "seconds")


def digest(value: Any) -> str:
    """A short hash of plain JSON; the order of keys does not matter.

    Example:
        >>> digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
        True
    """
    text = json.dumps(to_plain(value), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:24]


def output_key(pipeline: str, example: Example, *, whole: bool) -> str:
    """Of an output: the pipeline, and what it is asked.

    Args:
        pipeline: The pipeline's own key.
        example: The example.
        whole: Whether the pipeline may see all of the example, and not only question and history.
    """
    asked = example.to_json() if whole else {"question": example.question, "history": example.history}
    return f"{pipeline}:{digest(asked)}"


def metric_key(metric: Metric, judge: Mapping[str, Any] | None) -> str:
    """Of a metric in a run: its name and settings, and the judge's fingerprint where it asks one."""
    settings = metric.settings()
    return digest(
        {
            "name": metric.name,
            "class": f"{type(metric).__module__}.{type(metric).__qualname__}",
            "settings": settings,
            "judge": _asked_of(metric, settings, judge),
        }
    )


def _asked_of(metric: Metric, settings: Mapping[str, Any], judge: Mapping[str, Any] | None) -> Any:
    """The part of the judge's fingerprint that decides this metric: one that names its prompts depends on no other."""
    if judge is None or not (metric.needs_judge or metric.needs_embeddings):
        return None
    part = dict(judge)
    if not metric.needs_embeddings:
        part.pop("embeddings", None)
    names, prompts = settings.get("prompts"), part.get("prompts")
    if isinstance(names, (list, tuple)) and isinstance(prompts, Mapping):
        part["prompts"] = {key: value for key, value in prompts.items() if key.partition(".")[0] in names}
    return part


def given_digest(example: Example, output: Output) -> str:
    """Of what every metric is given: the example, and what the pipeline gave."""
    given = {name: value for name, value in output.to_json().items() if name not in _COST}
    return digest([example.to_json(), given])


def cell_key(metric: str, given: str) -> str:
    """Of a cell: the metric's key, and the hash of what it was given."""
    return f"{metric}:{given}"
