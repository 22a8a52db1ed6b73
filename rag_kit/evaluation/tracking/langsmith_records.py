"""Rows and cells in the form that LangSmith stores."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from rag_kit.evaluation.cells import Cell
from rag_kit.evaluation.runs.keys import digest
from rag_kit.evaluation.runs.results import Row
from rag_kit.evaluation.tracking import content

_NAMESPACE = uuid.UUID("6a0c6d1e-3f0b-5b44-9a53-2f1f3f5c7d10")
#: Most decimals of a score that LangSmith takes; the whole value is in the feedback's metadata.
_DECIMALS = 4


def run_record(row: Row, run: str, session: str, example: str) -> dict[str, Any]:
    """A row as a run of an experiment."""
    # LangSmith refuses runs of more than 24 hours ago, so a run ends now and takes as long as it took
    end = datetime.now(UTC)
    start = end - timedelta(seconds=min(max(row.output.seconds, 0.0), 3600.0))
    body = {
        "id": run, "trace_id": run, "dotted_order": f"{start:%Y%m%dT%H%M%S%f}Z{run}", "name": "rag-kit",
        "run_type": "chain", "session_id": session, "reference_example_id": example,
        "start_time": start.isoformat(), "end_time": end.isoformat(),
        "inputs": content.example_inputs(row.example), "outputs": content.run_output(row.output),
        "extra": {"metadata": {"example": content.clean_text(row.example.id), "calls": row.output.calls,
                               "tokens": row.output.tokens, "seconds": row.output.seconds}},
    }  # fmt: skip
    error = content.error_text(row)
    return body if error is None else {**body, "error": error}


def feedback_record(name: str, cell: Cell, run: str, session: str) -> dict[str, Any]:
    """A cell as feedback; without a value there is no score, and the status is the feedback's value."""
    reason = content.reason_text(cell)
    body: dict[str, Any] = {
        "id": record_id(run, name), "run_id": run, "trace_id": run, "session_id": session,
        "key": content.clean_text(name),
        "feedback_source": {"type": "api", "metadata": {"status": cell.status, "calls": cell.calls,
                                                        "tokens": cell.tokens, "seconds": cell.seconds}},
    }  # fmt: skip
    if cell.value is None:
        body["value"] = cell.status
        body["comment"] = f"{cell.status}: {reason}" if reason else cell.status
        body["error"] = cell.status == "error"
        return body
    body["score"] = round(float(cell.value), _DECIMALS)
    body["feedback_source"]["metadata"]["value"] = cell.value
    if reason:
        body["comment"] = reason
    return body


def differs(before: Mapping[str, Any], body: Mapping[str, Any]) -> bool:
    """Whether an example that is there must be changed; metadata of others in it stay."""
    metadata = before.get("metadata")
    metadata = metadata if isinstance(metadata, Mapping) else {}
    return (
        before.get("inputs") != body["inputs"]
        or (before.get("outputs") or {}) != body["outputs"]
        or any(metadata.get(name) != value for name, value in body["metadata"].items())
    )


def record_id(*parts: str) -> str:
    """An id that follows from what it is of, so that writing twice finds it."""
    return str(uuid.uuid5(_NAMESPACE, digest(parts)))
