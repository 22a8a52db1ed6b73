"""Results of the benchmark as a table for the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rag_kit.documents.tables import Table, tables_text
from rag_kit.errors import InvalidInputError

_PLAIN = {"p50_ms": "{:.2f}", "p95_ms": "{:.2f}", "queries_per_second": "{:.0f}"}


def format_table(result: Mapping[str, Any]) -> str:
    """One row for each metric, one column for each pipeline, and what was counted.

    Args:
        result: What :func:`rag_kit.evaluation.benchmark` returned.

    Example:
        >>> cell = {"value": 0.5, "low": 0.25, "high": 0.75}
        >>> counts = {"documents": 3, "passages": 3, "queries": 2, "queries_scored": 2}
        >>> print(format_table({"dataset": "sky", "counts": counts,
        ...                     "pipelines": [{"pipeline": "bm25", "ndcg@10": cell, "p50_ms": 0.1}]}))
        sky: 3 documents, 2 queries scored
                 bm25
        ndcg@10  0.500 [0.250, 0.750]
        p50_ms   0.10
        In brackets: 95% bootstrap interval of the mean.
    """
    if not isinstance(result, Mapping) or not result.get("pipelines"):
        raise InvalidInputError(f"result is {result!r:.80}; give what benchmark returned")
    pipelines = result["pipelines"]
    names = [name for name in pipelines[0] if _cell(pipelines[0], name) is not None]
    rows = [[name, *(_cell(entry, name) or "-" for entry in pipelines)] for name in names]
    notes = ["In brackets: 95% bootstrap interval of the mean."]
    notes += [f"{entry['pipeline']}: {note}" for entry in pipelines for note in entry.get("notes", [])]
    title = f"{result['dataset']}: {describe_counts(result['counts'])}"
    return tables_text(title, [Table(["", *(str(entry["pipeline"]) for entry in pipelines)], rows)], notes)


def describe_counts(counts: Mapping[str, int]) -> str:
    """How many documents and queries a result is about, in one line."""
    parts = [f"{counts['documents']} documents"]
    if counts["passages"] != counts["documents"]:
        parts.append(f"{counts['passages']} passages")
    parts.append(f"{counts['queries_scored']} queries scored")
    without = counts.get("queries_without_relevant_documents", 0)
    if without:
        parts.append(f"{without} left out because no document answers them")
    limited = counts["queries"] - without - counts["queries_scored"]
    if limited:
        parts.append(f"{limited} left out by --limit")
    return ", ".join(parts)


def _cell(entry: Mapping[str, Any], name: str) -> str | None:
    value = entry.get(name)
    if isinstance(value, Mapping) and value.keys() == {"value", "low", "high"}:
        return f"{value['value']:.3f} [{value['low']:.3f}, {value['high']:.3f}]"
    if name in _PLAIN and value is not None:
        return _PLAIN[name].format(value)
    return None
