"""``rows.jsonl``: each line is a part of a row, or a whole one; later lines of an example add to its earlier ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rag_kit.documents.append_log import read_log
from rag_kit.evaluation.runs.results import Row, row_from_json

_PARTS = ("cells", "usage", "keys")


def read_rows(path: Path) -> Iterator[tuple[int, dict[str, Any] | None]]:
    """``(line number from 1, record)`` of ``rows.jsonl``; ``None`` for a line that is half written, or damaged."""
    for number, record in read_log(path):
        yield number, record if _is_record(record) else None


def _is_record(record: Any) -> bool:
    """Whether a line has the form of one of ours; what its parts hold is seen when they are read."""
    return (
        isinstance(record, dict)
        and isinstance(record.get("id"), str)
        and all(isinstance(record.get(part, {}), dict) for part in (*_PARTS, "other"))
        and all(isinstance(record.get("other", {}).get(part, {}), dict) for part in _PARTS)
        and all(isinstance(key, str) for key in record.get("keys", {}).values())
    )


def add(rows: dict[str, dict[str, Any]], record: dict[str, Any]) -> None:
    """Put a record to what is known of its example.

    One with an output begins the row anew, since cells speak of the output that they were computed from.
    """
    key = record["id"]
    if "output" in record or key not in rows:
        rows[key] = {**record, **{part: dict(record.get(part, {})) for part in _PARTS}}
        return
    known = rows[key]
    for part in _PARTS:
        known[part].update(record.get(part, {}))
    known.update({name: value for name, value in record.items() if name not in _PARTS})


def to_row(record: Mapping[str, Any]) -> Row | None:
    """The row that the records of an example make; ``None`` while there is no output, or if it is damaged."""
    try:
        return row_from_json(record)
    except (ValueError, TypeError, AttributeError, KeyError):
        return None
