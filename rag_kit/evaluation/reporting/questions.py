"""One question after the other: the example, what each pipeline gave, what each metric says of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from rag_kit.documents import clean_text, redact
from rag_kit.documents.identity import to_plain
from rag_kit.evaluation.cells import Cell
from rag_kit.evaluation.examples import Example
from rag_kit.evaluation.outputs import Passage
from rag_kit.evaluation.runs.results import Results
from rag_kit.evaluation.runs.rows import Row

MAX_TEXT = 20_000  # characters of one text: a page of 2,000 questions has to open on a phone

_CITED = (
    "number", "statement", "quote", "status", "reason", "score", "file", "source", "title", "page", "heading"
)  # fmt: skip
_STAGE = ("stage", "retriever", "rank", "score", "weight", "query")
_LOCATION = ("page", "sheet", "slide", "heading")

#: Id, text and source (pairs such as ``("page", "3")``) of a passage -> its number, the same in all pipelines.
Heads = dict[tuple[str, str, tuple[tuple[str, str], ...]], int]


def questions(
    results: Sequence[Results], metrics: Sequence[str], diagnosed: Sequence[Mapping[str, Any]], heads: Heads
) -> list[dict[str, Any]]:
    """List all questions of all pipelines, in the order in which they come first.

    The cells of a run are in the order of ``metrics``. A passage is named by its number in ``heads``, filled in here.
    ``diagnosed`` has for each pipeline: id of a question -> what the diagnosis says of it.
    """
    rows_by_id = [{row.example.id: row for row in run.rows} for run in results]
    examples: dict[str, Example] = {}
    for run in results:
        for row in run.rows:
            examples.setdefault(row.example.id, row.example)
    has_turns = any(example.history for example in examples.values())
    described = []
    for key, example in examples.items():
        runs = [
            _row_json(rows[key], metrics, causes.get(key), heads) if key in rows else None
            for rows, causes in zip(rows_by_id, diagnosed, strict=True)
        ]
        described.append({**_example_json(example, with_turn=has_turns), "runs": runs})
    return described


def cleaned(text: str) -> str:
    """Escape control and bidirectional characters of a text, and cut it to ``MAX_TEXT`` characters."""
    clean = clean_text(text.replace("\r\n", "\n"))
    return clean if len(clean) <= MAX_TEXT else f"{clean[:MAX_TEXT]} … (+{len(clean) - MAX_TEXT:,})"


@lru_cache(maxsize=1024)  # names of fields and usual reasons come thousands of times
def masked(text: str) -> str:
    """Clean a text and mask keys in it: for errors, reasons and settings."""
    return cleaned(redact(text))


def plain(value: Any, text: Callable[[str], str] = masked) -> Any:
    """Turn anything into plain JSON with cleaned texts."""

    def clean(item: Any) -> Any:
        if isinstance(item, list):
            return list(map(clean, item))
        if isinstance(item, dict):
            return {text(key): clean(inner) for key, inner in item.items()}
        return text(item) if isinstance(item, str) else item

    return clean(to_plain(value))


def _example_json(example: Example, *, with_turn: bool) -> dict[str, Any]:
    """Make the page's data of an example; ``with_turn`` adds its turn in a conversation as a tag."""
    fields = ("id", "question", "reference", "answers", "relevant", "answerable", "history", "tags")
    record = {key: plain(getattr(example, key), cleaned) for key in fields}
    if with_turn:
        record["tags"] = {"turn": str(example.turn), **record["tags"]}
    return record


def _row_json(row: Row, metrics: Sequence[str], diagnosis: Any, heads: Heads) -> dict[str, Any]:
    """Make the page's data of a question in one run: output, passages, notes, diagnosis, cells."""
    output, passages = row.output, row.output.passages
    notes = [list(map(str, passage.provenance.get("notes") or ())) for passage in passages or ()]
    common: list[str] = []  # notes on every passage are about the search, and are shown once
    if len(notes) > 1:
        common = [note for note in notes[0] if all(note in others for others in notes)]
    described = [_passage_json(passage, row.example, heads, common) for passage in passages or ()]
    return {
        **{key: plain(getattr(output, key), cleaned) for key in ("answer", "status", "queries", "messages", "seconds")},
        "error": None if output.error is None else masked(output.error),
        "citations": [plain({key: citation.get(key) for key in _CITED}, cleaned) for citation in output.citations],
        "passages": None if passages is None else described,
        "notes": [masked(note) for note in dict.fromkeys([*output.notes, *common])],
        "calls": output.calls,
        "tokens": output.tokens,
        "diagnosis": plain(diagnosis),
        "cells": [_cell_json(row.cells.get(name)) for name in metrics],
    }  # fmt: skip


def _passage_json(passage: Passage, example: Example, heads: Heads, common: Sequence[str]) -> dict[str, Any]:
    """Make the page's data of a passage for one question; its text and source go into ``heads``."""
    metadata, provenance = passage.metadata, passage.provenance
    name = next((metadata[key] for key in ("file", "source", "title") if metadata.get(key)), passage.id)
    location = {key: metadata[key] for key in _LOCATION if metadata.get(key) not in (None, "")}
    source = tuple((kind, cleaned(str(value))) for kind, value in {"name": name, **location}.items())
    head = (cleaned(passage.id), cleaned(passage.text), source)
    grades = [example.relevant[key] for key in passage.ids if key in example.relevant]
    notes = [str(note) for note in provenance.get("notes") or ()]
    stages = [stage for stage in provenance.get("stages") or () if isinstance(stage, Mapping)]
    return {
        "head": heads.setdefault(head, len(heads)),  # its number; a new passage gets the next one
        "score": plain(provenance.get("score"), cleaned),
        "grade": max(grades) if grades else None,
        "stages": [plain({key: stage.get(key) for key in _STAGE}, cleaned) for stage in stages],
        "notes": [masked(note) for note in notes if note not in common],
    }


def _cell_json(cell: Cell | None) -> dict[str, Any] | None:
    if cell is None:
        return None
    details = plain(cell.details) or None
    return {"value": cell.value, "status": cell.status, "reason": masked(cell.reason), "details": details}
