"""The comparison and the diagnosis, as the page reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rag_kit.errors import InvalidInputError


def comparison_data(comparison: Any) -> dict[str, Any] | None:
    """What the page shows of a comparison; lists of ids that it does not need are left out.

    Args:
        comparison: What ``compare`` gave, or its ``to_json()``.
    """
    if not comparison:
        return None
    record = comparison if isinstance(comparison, Mapping) else comparison.to_json()
    keys = ("pipelines", "metrics", "baseline", "level", "correction", "tests", "notes", "pairs", "slices")
    found = {key: record[key] for key in keys}
    found["complementarity"] = {
        metric: {key: item for key, item in one.items() if key not in ("got", "everyone")}
        for metric, one in record["complementarity"].items()
    }
    return found


def by_pipeline(diagnosis: Any, names: Sequence[str]) -> dict[int, Any]:
    """Number of the pipeline -> its diagnosis.

    Args:
        diagnosis: One, several (in the order of the pipelines, or named as they are), or name -> diagnosis.
        names: The pipelines.

    Raises:
        InvalidInputError: If one belongs to no pipeline of the report.

    Example:
        >>> by_pipeline({"dense": "D"}, ["bm25", "dense"])
        {1: 'D'}
    """
    if not diagnosis and not hasattr(diagnosis, "rows"):
        return {}
    if isinstance(diagnosis, Mapping):
        pairs = [(str(name), one) for name, one in diagnosis.items()]
    else:
        several = [diagnosis] if hasattr(diagnosis, "rows") else list(diagnosis)
        if len(several) == len(names):
            return dict(enumerate(several))
        pairs = [(str(one.name), one) for one in several]
    found: dict[int, Any] = {}
    for name, one in pairs:
        if name not in names:
            raise InvalidInputError(
                f"the diagnosis is of {name!r:.80}, which is no pipeline of the report; there are {', '.join(names)}"
            )
        found[list(names).index(name)] = one
    return found


def diagnosis_data(found: Mapping[int, Any]) -> list[dict[str, Any]] | None:
    """Causes of each pipeline with their remedies, those of wrong answers first."""
    if not found:
        return None
    return [
        {
            "pipeline": number,
            "overall": one.overall,
            "unknown": one.unknown,
            "questions": len(one.rows),
            "thresholds": {one.metrics[role]: limit for role, limit in one.thresholds.items()},
            "causes": sorted(
                ({"cause": name, "count": count} for name, count in one.counts.items()),
                key=lambda cause: (cause["cause"].startswith("right"), -cause["count"]),
            ),
        }
        for number, one in found.items()
    ]


def cases_data(found: Mapping[int, Any]) -> dict[str, Any]:
    """Every cause that occurs: its title, its text and its remedies in both languages."""
    cases: dict[str, Any] = {}
    for one in found.values():
        for name in [*one.counts, *([one.overall] if one.overall else [])]:
            case = one.case(name)
            cases[name] = {
                "label": _both(case.title),
                "text": _both(case.cause),
                "remedies": [{"part": each.name, "text": _both(each.text)} for each in case.remedies],
                "good": name.startswith("right"),
            }
    return cases


def diagnosed_rows(found: Mapping[int, Any], pipelines: int) -> list[dict[str, Any]]:
    """For each pipeline: id of a question -> its cause, or why there is none, and what else its row shows."""
    return [
        {
            row.id: {"cause": row.case, "unknown": row.unknown, "hints": list(row.hints)}
            for row in (found[number].rows if number in found else ())
        }
        for number in range(pipelines)
    ]


def _both(text: Any) -> dict[str, str]:
    return {"en": text.en, "zh": text.zh}
