"""One question after the other: the example, what each pipeline gave, what each metric says of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rag_kit.evaluation.cells import Cell
from rag_kit.evaluation.examples import Example
from rag_kit.evaluation.outputs import Output, Passage
from rag_kit.evaluation.reporting.cleaning import cleaned, masked, plain, shaped
from rag_kit.evaluation.reporting.shapes import ResultsLike, RowLike

MAX_EXTRA = 4_000
"""Characters, as JSON, of one field of a pipeline's result that the kit does not know."""

_WHERE = ("file", "source", "title")
_PLACE = ("page", "sheet", "slide", "heading")


class Texts:
    """Each text once: pipelines find the same passages for the same questions."""

    def __init__(self) -> None:
        self.all: list[str] = []
        self._numbers: dict[str, int] = {}

    def number(self, text: str) -> int:
        """The number of a text; a new one is added."""
        shown = cleaned(text)
        found = self._numbers.get(shown)
        if found is None:
            found = self._numbers[shown] = len(self.all)
            self.all.append(shown)
        return found


def questions(
    results: Sequence[ResultsLike], diagnosed: Sequence[Mapping[str, Any]], texts: Texts
) -> list[dict[str, Any]]:
    """All questions of all pipelines, in the order in which they come first.

    Args:
        results: The pipelines.
        diagnosed: For each pipeline: id of a question -> what the diagnosis says of it.
        texts: Receives the texts of the passages; a passage holds the number of its text.
    """
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
        "id": cleaned(example.id),
        "question": cleaned(example.question),
        "reference": None if example.reference is None else cleaned(example.reference),
        "answers": [cleaned(answer) for answer in example.answers],
        "relevant": {cleaned(key): grade for key, grade in example.relevant.items()},
        "answerable": example.answerable,
        "history": [
            {key: cleaned(str(turn[key])) for key in ("question", "answer")} for turn in example.history
        ],
        "tags": {cleaned(key): cleaned(value) for key, value in example.tags.items()},
    }


def _run(row: RowLike, diagnosis: Any, texts: Texts) -> dict[str, Any]:
    output, example = row.output, row.example
    passages = output.passages
    common = _common_notes(passages or ())
    return {
        "answer": None if output.answer is None else cleaned(output.answer),
        "status": None if output.status is None else cleaned(str(output.status)),
        "error": None if output.error is None else masked(output.error),
        "queries": [cleaned(query) for query in output.queries],
        "citations": [_citation(citation) for citation in output.citations],
        "passages": None
        if passages is None
        else [_passage(each, example, texts, common) for each in passages],
        "messages": shaped([*output.messages], cleaned),
        "notes": [masked(note) for note in dict.fromkeys([*output.notes, *common])],
        "seconds": shaped(output.seconds, cleaned),
        "calls": output.calls,
        "tokens": output.tokens,
        "extra": _extra(output),
        "diagnosis": plain(diagnosis),
        "cells": {cleaned(name): _cell(cell) for name, cell in row.cells.items()},
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
    found = {key: shaped(citation.get(key), cleaned) for key in keys}
    found["status"] = str(found["status"]) if found["status"] else "undefined"
    return found


def _common_notes(passages: Sequence[Passage]) -> list[str]:
    """Notes that every passage bears: they speak of the search, and are shown once."""
    lists = [[str(note) for note in passage.provenance.get("notes") or ()] for passage in passages]
    return [note for note in lists[0] if all(note in each for each in lists)] if len(lists) > 1 else []


def _passage(passage: Passage, example: Example, texts: Texts, common: Sequence[str]) -> dict[str, Any]:
    provenance = passage.provenance
    stages = provenance.get("stages")
    notes = provenance.get("notes")
    grades = [example.relevant[name] for name in passage.ids if name in example.relevant]
    return {
        "id": cleaned(passage.id),
        "text": texts.number(passage.text),
        "where": _where(passage),
        "score": _short(provenance.get("score")),
        "stages": [_stage(stage, example.question) for stage in stages or () if isinstance(stage, Mapping)],
        "notes": [masked(str(note)) for note in notes or () if str(note) not in common],
        "grade": max(grades) if grades else None,
    }


def _stage(stage: Mapping[str, Any], question: str) -> dict[str, Any]:
    """One step of the provenance; the query only where it is not the question itself."""
    found = {
        key: _short(value) for key in ("rank", "score", "weight") if (value := stage.get(key)) is not None
    }
    query = str(stage.get("query") or "")
    texts = {key: str(stage.get(key) or "") for key in ("stage", "retriever")} | {
        "query": "" if query == question else query
    }
    return found | {key: cleaned(text) for key, text in texts.items() if text}


def _short(value: Any) -> Any:
    """Six digits of a score: the page shows four, and there are ten thousands of them."""
    shown = shaped(value, cleaned)
    return float(f"{shown:.6g}") if isinstance(shown, float) else shown


def _where(passage: Passage) -> list[list[str]]:
    """File (or what there is of a name) and place in it, each with its kind: the page has words for them."""
    metadata = passage.metadata
    name = next((str(metadata[key]) for key in _WHERE if metadata.get(key)), passage.id)
    places = [[key, str(metadata[key])] for key in _PLACE if metadata.get(key) not in (None, "")]
    return [[kind, cleaned(value)] for kind, value in [["name", name], *places]]


def _cell(cell: Cell) -> dict[str, Any]:
    return {
        "value": cell.value, "status": cell.status, "reason": masked(cell.reason), "calls": cell.calls,
        "tokens": cell.tokens, "seconds": shaped(cell.seconds, cleaned), "details": plain(cell.details) or None,
    }  # fmt: skip


def _extra(output: Output) -> dict[str, Any] | None:
    """Fields of the result that are small enough to read; the others are named with their size."""
    found: dict[str, Any] = {}
    for key, value in output.extra.items():
        if value in (None, "", [], {}):
            continue
        size = len(str(value))
        found[cleaned(str(key))] = plain(value) if size <= MAX_EXTRA else f"({size:,} characters, not shown)"
    return found or None
