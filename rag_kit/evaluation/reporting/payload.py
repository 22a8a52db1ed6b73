"""What the page shows, as plain JSON: all pipelines side by side, every text once, nothing that could act."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from rag_kit._redact import redact
from rag_kit.documents import clean_text, to_plain
from rag_kit.errors import InvalidInputError, RagKitError
from rag_kit.evaluation.cells import Cell
from rag_kit.evaluation.examples import Example
from rag_kit.evaluation.outputs import Output, Passage
from rag_kit.evaluation.reporting.findings import (
    by_pipeline,
    cases_data,
    comparison_data,
    diagnosed_rows,
    diagnosis_data,
)
from rag_kit.evaluation.reporting.shapes import ResultsLike, RowLike, SummaryLike, metric_names, quantile

FORMAT = "rag_kit.report/1"
MAX_TEXT = 20_000
"""Characters of one text; the rest is cut and counted. A page of 2,000 questions has to open on a phone."""
MAX_EXTRA = 4_000
"""Characters, as JSON, of one field of a pipeline's result that the kit does not know."""

_COUNTS = ("n", "total", "undefined", "errors", "not_applicable", "missing")
_WHERE = ("file", "source", "title")
_PLACE = ("page", "sheet", "slide", "heading")


def payload(
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
        >>> row = Any(example=Example("q1", "Why?"), output=Output("So."), cells={"mrr": Cell.ok(0.5)})
        >>> mean = Any(mean=0.5, low=None, high=None, n=1, total=1, undefined=0, errors=0, not_applicable=0)
        >>> results = Any(name="mine", rows=[row], metrics=["mrr"], manifest={}, summary=lambda: {"mrr": mean})
        >>> payload([results])["questions"][0]["runs"][0]["cells"]["mrr"]["value"]
        0.5
    """
    if not results:
        raise InvalidInputError("there are no results to report; give at least one")
    if language not in ("en", "zh"):
        raise InvalidInputError(f"language is {language!r:.80}; allowed are 'en' and 'zh'")
    labels = different(names or [str(one.name) for one in results])
    texts = _Texts()
    diagnosed = by_pipeline(diagnosis, labels)
    manifests = [dict(one.manifest) if isinstance(one.manifest, Mapping) else {} for one in results]
    return {
        "format": FORMAT,
        "title": None if title is None else _text(title),
        "language": language,
        "created": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "dataset": _first(manifests, "dataset"),
        "judge": _first(manifests, "judge"),
        "pipelines": [
            _pipeline(label, one, manifest)
            for label, one, manifest in zip(labels, results, manifests, strict=True)
        ],
        "metrics": _metrics(results, manifests),
        "questions": _questions(results, diagnosed_rows(diagnosed, len(labels)), texts),
        "texts": texts.all,
        "comparison": _safe(comparison_data(comparison)),
        "diagnosis": _safe(diagnosis_data(diagnosed)),
        "cases": _safe(cases_data(diagnosed)),
        "notes": [_masked(note) for note in notes],
    }


class _Texts:
    """Each text once: pipelines find the same passages for the same questions."""

    def __init__(self) -> None:
        self.all: list[str] = []
        self._numbers: dict[str, int] = {}

    def number(self, text: str) -> int:
        shown = _text(text)
        found = self._numbers.get(shown)
        if found is None:
            found = self._numbers[shown] = len(self.all)
            self.all.append(shown)
        return found


def _pipeline(label: str, results: ResultsLike, manifest: Mapping[str, Any]) -> dict[str, Any]:
    outputs = [row.output for row in results.rows]
    answered = [output for output in outputs if output.error is None]
    seconds = [output.seconds for output in answered if output.seconds > 0]
    cells = [cell for row in results.rows for cell in row.cells.values()]
    count = len(outputs) or 1
    return {
        "name": _text(label),
        "questions": len(outputs),
        "failed": len(outputs) - len(answered),
        "p50": quantile(seconds, 0.5),
        "p95": quantile(seconds, 0.95),
        "calls": sum(output.calls for output in outputs) / count,
        "tokens": sum(output.tokens for output in outputs) / count,
        "money": _money(results),
        "judge_calls": sum(cell.calls for cell in cells),
        "judge_tokens": sum(cell.tokens for cell in cells),
        "manifest": _safe(manifest),
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
                "name": _text(name),
                **about,
                "low": min([about["low"], *values]),
                "high": max([about["high"], *values]),
                "summary": [_summary(one.get(name)) for one in summaries],
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
        if isinstance(recorded, Mapping) and isinstance(recorded.get(name), Mapping):
            notes = recorded[name]

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


def _questions(
    results: Sequence[ResultsLike], diagnosed: Sequence[Mapping[str, Any]], texts: _Texts
) -> list[dict[str, Any]]:
    examples: dict[str, Example] = {}
    for one in results:
        for row in one.rows:
            examples.setdefault(row.example.id, row.example)
    rows = [{row.example.id: row for row in one.rows} for one in results]
    return [
        {
            **_example(example),
            "runs": [
                _run(of_pipeline[example.id], found.get(example.id), texts)
                if example.id in of_pipeline
                else None
                for of_pipeline, found in zip(rows, diagnosed, strict=True)
            ],
        }
        for example in examples.values()
    ]


def _example(example: Example) -> dict[str, Any]:
    return {
        "id": _text(example.id),
        "question": _text(example.question),
        "reference": None if example.reference is None else _text(example.reference),
        "answers": [_text(answer) for answer in example.answers],
        "relevant": {_text(key): grade for key, grade in example.relevant.items()},
        "answerable": example.answerable,
        "history": [
            {key: _text(str(turn[key])) for key in ("question", "answer")} for turn in example.history
        ],
        "tags": {_text(key): _text(value) for key, value in example.tags.items()},
    }


def _run(row: RowLike, diagnosis: Any, texts: _Texts) -> dict[str, Any]:
    output, example = row.output, row.example
    passages = output.passages
    return {
        "answer": None if output.answer is None else _text(output.answer),
        "status": None if output.status is None else _text(str(output.status)),
        "error": None if output.error is None else _masked(output.error),
        "queries": [_text(query) for query in output.queries],
        "citations": [_citation(citation) for citation in output.citations],
        "passages": None if passages is None else [_passage(each, example, texts) for each in passages],
        "messages": _shown([*output.messages], _text),
        "notes": [_masked(note) for note in output.notes],
        "seconds": _shown(output.seconds, _text),
        "calls": output.calls,
        "tokens": output.tokens,
        "extra": _extra(output),
        "diagnosis": _safe(diagnosis),
        "cells": {_text(name): _cell(cell) for name, cell in row.cells.items()},
    }


def _citation(citation: Mapping[str, Any]) -> dict[str, Any]:
    keys = (
        "number",
        "statement",
        "quote",
        "status",
        "reason",
        "score",
        "file",
        "source",
        "title",
        "page",
        "heading",
    )
    found = {key: _shown(citation.get(key), _text) for key in keys}
    found["status"] = str(found["status"]) if found["status"] else "undefined"
    return found


def _passage(passage: Passage, example: Example, texts: _Texts) -> dict[str, Any]:
    provenance = passage.provenance
    stages = provenance.get("stages")
    notes = provenance.get("notes")
    grades = [example.relevant[name] for name in passage.ids if name in example.relevant]
    return {
        "id": _text(passage.id),
        "text": texts.number(passage.text),
        "where": _where(passage),
        "score": _shown(provenance.get("score"), _text),
        "stages": [_stage(stage) for stage in stages or () if isinstance(stage, Mapping)],
        "notes": [_masked(str(note)) for note in notes or ()],
        "grade": max(grades) if grades else None,
    }


def _stage(stage: Mapping[str, Any]) -> dict[str, Any]:
    found = {key: _shown(stage.get(key), _text) for key in ("rank", "score", "weight")}
    return found | {key: _text(str(stage.get(key) or "")) for key in ("stage", "retriever", "query")}


def _where(passage: Passage) -> str:
    metadata = passage.metadata
    name = next((str(metadata[key]) for key in _WHERE if metadata.get(key)), passage.id)
    places = [
        str(metadata[key]) if key == "heading" else f"{key} {metadata[key]}"
        for key in _PLACE if metadata.get(key) not in (None, "")
    ]  # fmt: skip
    return _text(" · ".join([name, *places]))


def _cell(cell: Cell) -> dict[str, Any]:
    return {
        "value": cell.value, "status": cell.status, "reason": _masked(cell.reason), "calls": cell.calls,
        "tokens": cell.tokens, "seconds": _shown(cell.seconds, _text), "details": _safe(cell.details) or None,
    }  # fmt: skip


def _extra(output: Output) -> dict[str, Any] | None:
    """Fields of the result that are small enough to read; the others are named with their size."""
    found: dict[str, Any] = {}
    for key, value in output.extra.items():
        if value in (None, "", [], {}):
            continue
        size = len(str(value))
        found[_text(str(key))] = _safe(value) if size <= MAX_EXTRA else f"({size:,} characters, not shown)"
    return found or None


def _first(manifests: Sequence[Mapping[str, Any]], key: str) -> str | None:
    """A name out of the manifests, where all agree."""
    values = []
    for manifest in manifests:
        value = manifest.get(key)
        if isinstance(value, Mapping):
            value = value.get("name") or value.get("model")
        values.append(value)
    same = values and all(value == values[0] for value in values)
    return _masked(values[0]) if same and isinstance(values[0], str) else None


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


def _text(text: str) -> str:
    shown = clean_text(text.replace("\r\n", "\n"))
    return shown if len(shown) <= MAX_TEXT else f"{shown[:MAX_TEXT]} … (+{len(shown) - MAX_TEXT:,})"


def _masked(text: str) -> str:
    return _text(redact(text))


def _safe(value: Any) -> Any:
    return _shown(value, _masked)


def _shown(value: Any, text: Callable[[str], str], depth: int = 0) -> Any:
    """Plain JSON with every text cleaned; what nests deeper than 12 levels becomes a text."""
    if depth == 0:
        value = to_plain(value)
    if isinstance(value, str):
        return text(value)
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if depth > 12:
        return text(str(value))
    if isinstance(value, Mapping):
        return {text(str(key)): _shown(item, text, depth + 1) for key, item in value.items()}
    if isinstance(value, Iterable):
        return [_shown(item, text, depth + 1) for item in value]
    return text(str(value))
