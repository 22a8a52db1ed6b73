"""Whether more of a metric is better, for results that may be of a metric that is not known here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rag_kit.errors import RagKitError

if TYPE_CHECKING:
    from rag_kit.evaluation.runs.results import Results


def higher_is_better(results: Results, metric: str) -> bool:
    """As the manifest of the run says it, else the metric itself; one that is not known is better with more.

    Args:
        results: What ``evaluate`` gave.
        metric: Its name.

    Example:
        >>> from rag_kit.evaluation import Results
        >>> of_run = [{"name": "ours_mistakes", "higher_is_better": False}]
        >>> higher_is_better(Results("mine", [], ("ours_mistakes",), {"metrics": of_run}), "ours_mistakes")
        False
    """
    entries = results.manifest.get("metrics")
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, Mapping) and entry.get("name") == metric and "higher_is_better" in entry:
            return bool(entry["higher_is_better"])
    from rag_kit.evaluation.scorers import get_metric

    try:
        return get_metric(metric).higher_is_better
    except RagKitError:  # of the user's own, or of an extra that is not installed
        return True
