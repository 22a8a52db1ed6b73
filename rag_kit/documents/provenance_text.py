"""A record of provenance as one short string, JSON without repetitions, which every store and checkpoint takes.

Names and queries stand in it once, under ``words``. Each stage is a row: the numbers of its stage, retriever and
query (from 1; 0 is none), then rank, score, weight, and what else there is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

_WORDS, _NUMBERS = ("stage", "retriever", "query"), ("rank", "score", "weight")
_COLUMNS = len(_WORDS) + len(_NUMBERS) + 1


def encode_provenance(record: Mapping[str, Any]) -> str:
    """The string for a record. In the last row ``false`` stands for the rank or score of the record itself.

    Raises:
        KeyError: It is no record of provenance.
        TypeError: The same, or it holds what JSON does not.

    Example:
        >>> stage = {"stage": "bm25", "retriever": "words", "query": "q", "rank": 1, "score": 2.5, "weight": None}
        >>> encode_provenance({"score": 2.5, "rank": 1, "stages": [stage], "notes": []})
        '{"score":2.5,"rank":1,"words":["bm25","words","q"],"stages":[[1,2,3,false,false]]}'
    """
    # Four times as fast as the standard library, and loaded by then: whoever has a document has pydantic.
    from pydantic_core import PydanticSerializationError, to_json

    words: dict[Any, int] = {None: 0}
    rows: list[list[Any]] = []
    for stage in record["stages"]:
        more = {**stage}
        row: list[Any] = [words.setdefault(more.pop(name, None), len(words)) for name in _WORDS]
        row += [more.pop(name, None) for name in _NUMBERS]
        if type(queries := more.get("queries")) is list:
            more["queries"] = [words.setdefault(query, len(words)) for query in queries]
        if more:
            row.append(more)
        while row[-1] is None:
            row.pop()
        rows.append(row)
    for row in rows[-1:]:
        for place, name in enumerate(_NUMBERS[:2], len(_WORDS)):
            if place < len(row) and row[place] is not None and row[place] == record[name]:
                row[place] = False
    del words[None]  # number 0
    short = {"score": record["score"], "rank": record["rank"], "words": list(words), "stages": rows}
    if record["notes"]:
        short["notes"] = record["notes"]
    try:
        return to_json(short).decode()
    except PydanticSerializationError:
        # A lone surrogate, which no store takes, becomes JSON's escape of it.
        text = json.dumps(short, ensure_ascii=False, separators=(",", ":"))
        return text.encode("utf-8", "backslashreplace").decode("utf-8")


def decode_provenance(text: str) -> dict[str, Any]:
    """The record of a string; ``{}`` for somebody else's text."""
    try:
        record: dict[str, Any] = json.loads(text)
        words, rows = [None, *record.pop("words")], record["stages"]
        stages = []
        for row in rows:
            whole = [*row, *[None] * (_COLUMNS - len(row))]
            named = {name: words[at] for name, at in zip(_WORDS, whole, strict=False)}
            numbers = {
                name: record.get(name) if value is False else value
                for name, value in zip(_NUMBERS, whole[len(_WORDS) :], strict=False)
            }
            more = whole[-1] or {}
            if "queries" in more:
                more["queries"] = [words[at] for at in more["queries"]]
            stages.append({**named, **numbers, **more})
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError):
        return {}
    return {**record, "stages": stages}
