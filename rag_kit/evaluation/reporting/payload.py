"""What the page shows, as plain JSON: all pipelines side by side, every passage once, nothing that could act."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from rag_kit.errors import RagKitError
from rag_kit.evaluation.reporting.answer import answer_data
from rag_kit.evaluation.reporting.questions import Heads, cleaned, masked, plain, questions
from rag_kit.evaluation.runs.results import why_empty

if TYPE_CHECKING:
    from rag_kit.evaluation.comparing.comparison import Comparison
    from rag_kit.evaluation.diagnosing import Diagnosis
    from rag_kit.evaluation.runs.results import Results


def report_payload(
    results: Mapping[str, Results], comparison: Comparison | None, diagnosis: Mapping[str, Diagnosis]
) -> dict[str, Any]:
    """Gather results of one or several pipelines as plain JSON; questions are matched by their id.

    Every text has passed ``clean_text``: control and bidirectional characters are visible escapes. Errors, reasons,
    notes and settings have passed the masking of keys, too. Numbers that are not finite become ``None``.
    """
    names, runs = list(results), list(results.values())
    metrics = _metrics(runs)
    heads: Heads = {}
    pipelines = [_pipeline(name, one) for name, one in results.items()]
    diagnosed = plain([_diagnosis(names.index(name), one) for name, one in diagnosis.items()]) or None
    findings = [diagnosis[name].rows if name in diagnosis else [] for name in names]
    rows = [
        {row.id: {"cause": row.case, "unknown": row.unknown, "hints": list(row.hints)} for row in one}
        for one in findings
    ]
    return {
        "created": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "dataset": _shared(runs, "dataset"),
        "judge": _shared(runs, "judge"),
        "pipelines": pipelines,
        "metrics": metrics,
        "answer": plain(answer_data(pipelines, metrics, comparison, diagnosed)),
        "questions": questions(runs, _metric_names(runs), rows, heads),
        "passages": list(heads),
        "comparison": plain(_comparison(comparison)) if comparison else None,
        "diagnosis": diagnosed,
        "cases": plain(_cases(diagnosis)),
    }


def _pipeline(name: str, results: Results) -> dict[str, Any]:
    outputs = [row.output for row in results.rows]
    seconds = [output.seconds for output in outputs if output.error is None and output.seconds > 0]
    p50, p95 = np.quantile(seconds, [0.5, 0.95]).tolist() if seconds else (None, None)
    count = len(outputs) or 1
    money = results.money()
    return {
        "name": cleaned(name),
        "failed": sum(1 for output in outputs if output.error is not None),
        "p50": p50,
        "p95": p95,
        "calls": sum(output.calls for output in outputs) / count,
        "tokens": sum(output.tokens for output in outputs) / count,
        "money": None if None in money or not money else sum(cost or 0.0 for cost in money) / count,
        "manifest": plain(results.manifest),
    }


def _metric_names(runs: Sequence[Results]) -> list[str]:
    return list(dict.fromkeys(name for one in runs for name in one.metrics))


def _metrics(runs: Sequence[Results]) -> list[dict[str, Any]]:
    summaries = [one.summary() for one in runs]
    found = []
    for name in _metric_names(runs):
        stage, higher, low, high = _about(name, runs)
        values = [value for one in runs if name in one.metrics for value in one.values(name).values()]
        reasons = [why_empty(one, name) for one in runs]
        found.append(
            {
                "name": cleaned(name),
                "stage": stage,
                "higher": higher,
                "low": min([low, *values]),
                "high": max([high, *values]),
                "summary": [one[name].to_json() if name in one else None for one in summaries],
                "why": [None if reason is None else masked(reason) for reason in reasons],
            }
        )
    return found


def _about(name: str, runs: Sequence[Results]) -> tuple[str, bool, float, float]:
    """Stage, direction and range: of the table of metrics, else of the run's record, else as most metrics have them."""
    from rag_kit.evaluation.scorers import get_metric

    entries = [
        entry for one in runs for entry in one.manifest.get("metrics") or () if isinstance(entry, Mapping)
    ]
    found: Any = next((entry for entry in entries if entry.get("name") == name), {})
    with suppress(RagKitError):  # a user's own, or its extra is not installed here
        metric = get_metric(name)
        found = {key: getattr(metric, key, None) for key in ("stage", "higher_is_better", "low", "high")}
    low, high = (
        end if isinstance(end, (int, float)) and math.isfinite(end) else None
        for end in (found.get("low"), found.get("high"))
    )
    return (
        str(found.get("stage") or ""),
        found.get("higher_is_better") is not False,
        low or 0.0,
        1.0 if high is None else high,
    )


def _shared(runs: Sequence[Results], key: str) -> str | None:
    """A name out of the manifests, where all agree."""
    values = [one.manifest.get(key) for one in runs]
    names = {str(v.get("name") or v.get("model")) if isinstance(v, Mapping) else str(v) for v in values if v}
    return masked(names.pop()) if len(names) == 1 and all(values) else None


def _comparison(comparison: Comparison) -> dict[str, Any]:
    """What the page shows of a comparison; lists of ids that it does not need are left out."""
    record = comparison.to_json()
    together = record["complementarity"]
    return {
        **{
            key: record[key]
            for key in ("pipelines", "metrics", "level", "correction", "tests", "notes", "pairs", "slices")
        },
        "complementarity": {
            name: {key: one[key] for key in ("n", "only", "nobody")} for name, one in together.items()
        },
    }


def _diagnosis(pipeline: int, one: Diagnosis) -> dict[str, Any]:
    """Causes of a pipeline, those of wrong answers first."""
    return {
        "pipeline": pipeline, "overall": one.overall, "unknown": one.unknown, "questions": len(one.rows),
        "thresholds": {one.metrics[role]: limit for role, limit in one.thresholds.items()},
        "causes": sorted(
            ({"cause": name, "count": count} for name, count in one.counts.items()),
            key=lambda cause: (cause["cause"].startswith("right"), -cause["count"]),
        ),
    }  # fmt: skip


def _cases(found: Mapping[str, Diagnosis]) -> dict[str, Any]:
    """Every cause that occurs: its title, its text and its remedies in both languages."""
    occurring = {name: one for one in found.values() for name in [*one.counts, one.overall] if name}
    return {
        name: {
            "label": vars(case.title), "text": vars(case.cause), "good": name.startswith("right"),
            "remedies": [{"part": each.name, "text": vars(each.text)} for each in case.remedies],
        }
        for name, one in occurring.items()
        for case in [one.case(name)]
    }  # fmt: skip
