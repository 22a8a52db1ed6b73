"""What the page shows, as plain JSON: all pipelines side by side, every text once, nothing that could act."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from rag_kit.errors import InvalidInputError, RagKitError
from rag_kit.evaluation.reporting.cleaning import cleaned, masked, plain
from rag_kit.evaluation.reporting.findings import (
    by_pipeline,
    cases_data,
    comparison_data,
    diagnosed_rows,
    diagnosis_data,
)
from rag_kit.evaluation.reporting.questions import Texts, questions
from rag_kit.evaluation.reporting.shapes import ResultsLike, SummaryLike, metric_names, quantile, why_empty

FORMAT = "rag_kit.report/1"

_COUNTS = ("n", "total", "undefined", "errors", "not_applicable", "missing")


def report_payload(
    results: Sequence[ResultsLike],
    *,
    names: Sequence[str] | None = None,
    comparison: Any = None,
    diagnosis: Any = None,
    title: str | None = None,
    language: str = "en",
    notes: Sequence[str] = (),
) -> dict[str, Any]:
    """Gather results of one or several pipelines for the page.

    Every text has passed ``clean_text``: control and bidirectional characters are visible escapes. Errors, reasons,
    notes and settings have passed the masking of keys, too. Numbers that are not finite become ``None``.

    Args:
        results: One or several pipelines; questions are matched by their id.
        names: Names of the pipelines; default: those of the results, made different where two are the same.
        comparison: What ``compare`` gave.
        diagnosis: What ``diagnose`` gave: one, one for each pipeline, or name -> diagnosis.
        title: Title of the page.
        language: ``"en"`` or ``"zh"``: the language the page starts in.
        notes: What the reader should know; shown below the scores.

    Returns:
        Plain JSON, as the page's scripts read it.

    Raises:
        InvalidInputError: If there is no result, or the language is another one.

    Example:
        >>> from types import SimpleNamespace as Any
        >>> from rag_kit.evaluation import Cell, Example, Output
        >>> row = Any(example=Example("q1", "Why?"), output=Output("So."), cells={"mrr": Cell.ok(0.5)})
        >>> mean = Any(mean=0.5, low=None, high=None, n=1, total=1, undefined=0, errors=0, not_applicable=0)
        >>> results = Any(name="mine", rows=[row], metrics=["mrr"], manifest={}, summary=lambda: {"mrr": mean})
        >>> report_payload([results])["questions"][0]["runs"][0]["cells"]["mrr"]["value"]
        0.5
    """
    if not results:
        raise InvalidInputError("there are no results to report; give at least one")
    if language not in ("en", "zh"):
        raise InvalidInputError(f"language is {language!r:.80}; allowed are 'en' and 'zh'")
    labels = different(names or [str(one.name) for one in results])
    texts = Texts()
    diagnosed = by_pipeline(diagnosis, labels)
    manifests = [dict(one.manifest) if isinstance(one.manifest, Mapping) else {} for one in results]
    return {
        "format": FORMAT,
        "title": None if title is None else cleaned(title),
        "language": language,
        "created": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "dataset": _first(manifests, "dataset"),
        "judge": _first(manifests, "judge"),
        "pipelines": [
            _pipeline(label, one, manifest)
            for label, one, manifest in zip(labels, results, manifests, strict=True)
        ],
        "metrics": _metrics(results, manifests),
        "questions": questions(results, diagnosed_rows(diagnosed, len(labels)), texts),
        "texts": texts.all,
        "comparison": plain(comparison_data(comparison)),
        "diagnosis": plain(diagnosis_data(diagnosed)),
        "cases": plain(cases_data(diagnosed)),
        "notes": [masked(note) for note in notes],
    }


def _pipeline(label: str, results: ResultsLike, manifest: Mapping[str, Any]) -> dict[str, Any]:
    outputs = [row.output for row in results.rows]
    answered = [output for output in outputs if output.error is None]
    seconds = [output.seconds for output in answered if output.seconds > 0]
    cells = [cell for row in results.rows for cell in row.cells.values()]
    count = len(outputs) or 1
    return {
        "name": cleaned(label),
        "questions": len(outputs),
        "failed": len(outputs) - len(answered),
        "p50": quantile(seconds, 0.5),
        "p95": quantile(seconds, 0.95),
        "calls": sum(output.calls for output in outputs) / count,
        "tokens": sum(output.tokens for output in outputs) / count,
        "money": _money(results),
        "judge_calls": sum(cell.calls for cell in cells),
        "judge_tokens": sum(cell.tokens for cell in cells),
        "manifest": plain(manifest),
    }


def _money(results: ResultsLike) -> float | None:
    """Of the pipeline, a question; None unless the price of every question is known."""
    money: Callable[[], list[float | None]] | None = getattr(results, "money", None)
    known = [] if money is None else money()
    if not known or None in known:
        return None
    return sum(cost for cost in known if cost is not None) / len(known)


def _metrics(results: Sequence[ResultsLike], manifests: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    names = list(dict.fromkeys(name for one in results for name in metric_names(one)))
    summaries = [one.summary() for one in results]
    found = []
    for name in names:
        about = _about(name, results, manifests)
        values = [
            cell.value for one in results for row in one.rows
            if (cell := row.cells.get(name)) is not None and cell.value is not None
        ]  # fmt: skip
        found.append(
            {
                "name": cleaned(name),
                **about,
                "low": min([about["low"], *values]),
                "high": max([about["high"], *values]),
                "summary": [_summary(one.get(name)) for one in summaries],
                "why": [None if (why := why_empty(one, name)) is None else masked(why) for one in results],
            }
        )
    return found


def _about(
    name: str, results: Sequence[ResultsLike], manifests: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Stage, source and range: of the object, of the table of metrics, else as most metrics have them."""
    from rag_kit.evaluation.scorers import get_metric

    metric: Any = next((m for one in results for m in one.metrics if getattr(m, "name", None) == name), None)
    if metric is None:
        try:
            metric = get_metric(name)
        except RagKitError:  # a user's own, or its extra is not installed here
            metric = None
    notes: Mapping[str, Any] = {}
    for manifest in manifests:
        recorded = manifest.get("metrics")
        for entry in recorded if isinstance(recorded, list) else ():
            if isinstance(entry, Mapping) and entry.get("name") == name:
                notes = entry

    def read(key: str, default: Any) -> Any:
        value = notes.get(key, default) if metric is None else getattr(metric, key, default)
        return value if isinstance(value, (str, int, float)) else default

    def end(key: str, default: float) -> float:
        value = read(key, default)
        return default if isinstance(value, str) or not math.isfinite(value) else float(value)

    return {
        "stage": str(read("stage", "")), "source": str(read("source", "")),
        "higher": bool(read("higher_is_better", True)),
        "low": end("low", 0.0), "high": end("high", 1.0),
    }  # fmt: skip


def _summary(summary: SummaryLike | None) -> dict[str, Any] | None:
    if summary is None:
        return None
    found: dict[str, Any] = {key: getattr(summary, key) for key in ("mean", "low", "high")}
    return found | {key: getattr(summary, key, 0) for key in _COUNTS}


def _first(manifests: Sequence[Mapping[str, Any]], key: str) -> str | None:
    """A name out of the manifests, where all agree."""
    values = []
    for manifest in manifests:
        value = manifest.get(key)
        if isinstance(value, Mapping):
            value = value.get("name") or value.get("model")
        values.append(value)
    same = values and all(value == values[0] for value in values)
    return masked(values[0]) if same and isinstance(values[0], str) else None


def different(names: Sequence[str]) -> list[str]:
    """Names made different by a number behind those that come again."""
    found: list[str] = []
    for name in names:
        label, number = name, 1
        while label in found:
            number += 1
            label = f"{name} ({number})"
        found.append(label)
    return found
