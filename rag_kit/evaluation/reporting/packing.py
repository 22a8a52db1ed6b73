"""The data of the page as it stands in the file: what comes again is stored once and referred to by its number.

Thousands of questions and several pipelines find the same passages by the same steps. ``15-unpack.js`` is the other
half: it gives the scripts of the page the form that ``report_payload`` describes, passages only when they are looked
at.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

_NOTHING: dict[str, Any] = {"reference": None, "answers": [], "relevant": {}, "answerable": None}
QUESTION: dict[str, Any] = {**_NOTHING, "history": [], "tags": {}}
RUN: dict[str, Any] = {
    **{"answer": None, "status": None, "error": None, "queries": [], "citations": []},
    **{"messages": [], "notes": [], "calls": 0, "tokens": 0, "extra": None, "diagnosis": None},
}
CELL: dict[str, Any] = {"status": "ok", "reason": "", "calls": 0, "tokens": 0, "seconds": 0}
"""What is left out where it is just this; the page's scripts hold the same tables."""

_SEEN_SECONDS = 0.001


class Table:
    """Values by number, each once."""

    def __init__(self) -> None:
        self.all: list[Any] = []
        self._numbers: dict[str, int] = {}

    def number(self, value: Any) -> int:
        """The number of a value; a new one is added."""
        key = json.dumps(value, ensure_ascii=False)
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = len(self.all)
            self.all.append(value)
        return found


def pack(data: Mapping[str, Any]) -> dict[str, Any]:
    """The data of a report, smaller.

    Args:
        data: What :func:`report_payload` gave.

    Returns:
        The same, with ``questions`` in a shorter form and ``tables``: ``words`` (short texts), ``heads`` (id, text and
        place of a passage), ``metrics`` (names in the order of the cells) and ``details`` (of cells).

    Example:
        >>> cell = {"value": 1.0, "status": "ok", "reason": "", "calls": 0, "tokens": 0, "seconds": 0, "details": None}
        >>> run = {"passages": None, "cells": {"mrr": cell}}
        >>> packed = pack({"questions": [{"id": "1", "question": "Why?", "runs": [run, None]}]})
        >>> packed["questions"], packed["tables"]["metrics"]
        ([{'id': '1', 'question': 'Why?', 'runs': [{'cells': [1.0]}, None]}], ['mrr'])
    """
    tables = {name: Table() for name in ("words", "heads", "metrics", "details")}
    questions = [
        _without(question, QUESTION, ("runs",))
        | {"runs": [None if run is None else _run(run, tables) for run in question["runs"]]}
        for question in data["questions"]
    ]
    return {
        **data,
        "questions": questions,
        "tables": {name: table.all for name, table in tables.items()},
    }


def _without(record: Mapping[str, Any], usual: Mapping[str, Any], skipped: tuple[str, ...]) -> dict[str, Any]:
    """A record without what is as usual, and without some fields."""
    return {
        key: value
        for key, value in record.items()
        if key not in skipped and not (key in usual and value == usual[key])
    }


def _run(run: Mapping[str, Any], tables: Mapping[str, Table]) -> dict[str, Any]:
    found = _without(run, RUN, ("passages", "cells", "notes"))
    if run.get("notes"):
        found["notes"] = [tables["words"].number(note) for note in run["notes"]]
    if run["passages"] is not None:
        found["passages"] = [_passage(passage, tables) for passage in run["passages"]]
    cells: list[Any] = []
    for name, cell in run["cells"].items():
        place = tables["metrics"].number(name)
        cells += [None] * (place + 1 - len(cells))
        cells[place] = _cell(cell, tables)
    return found | {"cells": cells}


def _cell(cell: Mapping[str, Any], tables: Mapping[str, Table]) -> Any:
    """A cell that holds a value and nothing else is that value."""
    seconds = cell["seconds"]
    if isinstance(seconds, float):  # the page shows milliseconds
        cell = {**cell, "seconds": 0 if seconds < _SEEN_SECONDS else float(f"{seconds:.4g}")}
    found = _without(cell, CELL, ("details",))
    if "reason" in found:
        found["reason"] = tables["words"].number(found["reason"])
    if cell["details"] is not None:
        found["details"] = tables["details"].number(cell["details"])
    return found["value"] if found.keys() == {"value"} and found["value"] is not None else found


def _passage(passage: Mapping[str, Any], tables: Mapping[str, Table]) -> list[Any]:
    """Number of its head, score, grade, stages, numbers of its notes; empty ends are cut off."""
    words = tables["words"]
    head = tables["heads"].number([passage["id"], passage["text"], passage["where"]])
    stages = [_stage(stage, passage["score"], words) for stage in passage["stages"]]
    notes = [words.number(note) for note in passage["notes"]]
    return _cut([head, passage["score"], passage["grade"], stages or None, notes or None])


def _stage(stage: Mapping[str, Any], score: Any, words: Table) -> list[Any]:
    """Numbers of its name and retriever, rank, score (true: the passage's own), weight, number of its query."""
    named = [
        None if (text := stage.get(key)) is None else words.number(text) for key in ("stage", "retriever")
    ]
    own = stage.get("score")
    query = None if (text := stage.get("query")) is None else words.number(text)
    same = own is not None and own is not True and own == score
    return _cut([*named, stage.get("rank"), True if same else own, stage.get("weight"), query])


def _cut(values: list[Any]) -> list[Any]:
    while values and values[-1] is None:
        values.pop()
    return values
