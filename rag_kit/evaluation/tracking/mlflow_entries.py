"""What MLflow is given of results: params, metrics, files."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from rag_kit._redact import redact
from rag_kit.evaluation.runs.manifest import clean
from rag_kit.evaluation.runs.results import Results
from rag_kit.evaluation.tracking import content

#: Older servers take no longer values.
MAX_VALUE = 500
MAX_KEY = 250
MAX_PARAMS = 400
TABLE = "rows.json"
_PARTS = ("dataset", "pipeline", "judge", "versions", "commit", "prices", "settings")
_COUNTS = ("n", "undefined", "errors", "not_applicable", "missing")


def params_of(results: Results) -> dict[str, str]:
    """Settings from the manifest, flattened (``settings.timeout``); no key, bounded in number and length.

    Example:
        >>> from rag_kit.evaluation import Example, Output, Row
        >>> results = Results("mine", [Row(Example("1", "Who?"), Output())], manifest={"settings": {"a": {"b": 1}}})
        >>> params_of(results)["settings.a.b"]
        '1'
    """
    given = clean({part: results.manifest[part] for part in _PARTS if results.manifest.get(part) is not None})
    found: dict[str, str] = {"name": _short(content.clean_text(results.name))}
    for key, value in _leaves(given, ""):
        if len(found) >= MAX_PARAMS:
            break
        found.setdefault(entry_key(key), _short(content.clean_text(value)))
    return found


def metrics_of(results: Results) -> dict[str, float]:
    """The summary of each metric; what has no value (a mean of nothing) is not there."""
    found: dict[str, float] = {"examples": float(results.examples), "rows": float(len(results))}
    found["rows_failed"] = float(sum(row.output.error is not None for row in results.rows))
    for name, summary in results.summary().items():
        for part in ("mean", "low", "high"):
            if (value := getattr(summary, part)) is not None:
                found[f"{entry_key(name)}/{part}"] = float(value)
        found[f"{entry_key(name)}/coverage"] = summary.coverage
        found |= {f"{entry_key(name)}/{part}": float(getattr(summary, part)) for part in _COUNTS}
    for part in ("calls", "tokens"):
        found[f"pipeline/{part}"] = float(sum(getattr(row.output, part) for row in results.rows))
        found[f"judge/{part}"] = float(
            sum(getattr(cell, part) for row in results.rows for cell in row.cells.values())
        )
    return found


def write_files(results: Results, folder: Path) -> list[str]:
    """The folder of the results, and a table that MLflow's pages show; paths of the files."""
    _without_keys(results).save(folder / "results")
    (folder / "results" / ".lock").unlink(missing_ok=True)
    names = ["id", "question", "reference", "answer", "error", "passages"]
    names += [f"{metric}{part}" for metric in results.metrics for part in ("", ".status", ".reason")]
    lines = []
    for row in results.rows:
        line: list[Any] = [
            row.example.id, row.example.question, row.example.reference, row.output.answer,
            content.error_text(row), [passage.id for passage in row.output.passages or ()],
        ]  # fmt: skip
        for metric in results.metrics:
            cell = row.cells.get(metric)
            line += (
                [None, "missing", ""]
                if cell is None
                else [cell.value, cell.status, content.reason_text(cell)]
            )
        lines.append(content.storable(line))
    text = json.dumps({"columns": names, "data": lines}, ensure_ascii=False, allow_nan=False)
    (folder / TABLE).write_text(text, encoding="utf-8")
    return sorted(each.relative_to(folder).as_posix() for each in folder.rglob("*") if each.is_file())


def _without_keys(results: Results) -> Results:
    """Runs keep no key anyway; results that were put together by hand may."""
    rows = []
    for row in results.rows:
        output = row.output
        if output.error is not None:
            output = replace(output, error=redact(output.error))
        cells = {name: replace(cell, reason=redact(cell.reason)) for name, cell in row.cells.items()}
        rows.append(replace(row, output=output, cells=cells))
    return Results(results.name, rows, results.metrics, clean(results.manifest), results.total)


def entry_key(name: str) -> str:
    """A name that MLflow takes: letters of any script, digits, and ``_ - .`` and blanks.

    Example:
        >>> entry_key("回答/正确 (v2)")
        '回答_正确 _v2_'
    """
    key = re.sub(r"[^\w.\- ]", "_", content.clean_text(name))[:MAX_KEY]
    return key if key.strip(". ") else f"_{key}"


def _leaves(value: Any, key: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping) and value:
        for name, item in value.items():
            yield from _leaves(item, f"{key}.{name}" if key else str(name))
    elif isinstance(value, str):
        yield key, value
    else:
        yield key, json.dumps(value, ensure_ascii=False)


def _short(text: str) -> str:
    return text if len(text) <= MAX_VALUE else text[: MAX_VALUE - 3] + "..."
