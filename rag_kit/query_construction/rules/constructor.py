"""From a question to a text and a filter without a model."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from datetime import date
from functools import lru_cache
from typing import Any

from rag_kit.query_construction.clauses import bounded
from rag_kit.query_construction.constructed import ConstructedQuery
from rag_kit.query_construction.fields import Schema
from rag_kit.query_construction.rules.atoms import Atom
from rag_kit.query_construction.rules.joining import beside_unknown, join
from rag_kit.query_construction.rules.reading import Reading
from rag_kit.query_construction.rules.values import ValueIndex
from rag_kit.query_construction.words import remainder, simplified
from rag_kit.text import content_words

_MAX_QUESTION = 2_000


class RuleConstructor:
    """Turns a question into text and filter by rule: no model, no network, deterministic.

    Values of the collection that the question names become conditions; so do dates and years ("after 2015",
    "between 2008 and 2011", "2015年以后", "the last five years"), and numbers next to the name of a numeric field.
    "not", "without", "except", "or", "either", 不, 除了, 或 are understood; "the three latest" gives order and limit.
    Where one thing of an or-list is no known value ("Stroke or insomnia"), the known ones make no condition: it would
    hide what was asked for. ``repairs`` names it.

    Args:
        today: What relative dates count from; ``None`` for the day of the call.

    Example:
        >>> schema = Schema.of([
        ...     {"name": "year", "type": "int"},
        ...     {"name": "mesh", "type": "list[str]", "allowed": ["Stroke", "Obesity", "Humans"]},
        ... ])
        >>> rules = RuleConstructor()
        >>> rules.construct("Studies on stroke or obesity after 2010, but not in humans", schema).filter == {
        ...     "$and": [
        ...         {"$or": [{"mesh": {"$contains": "Stroke"}}, {"mesh": {"$contains": "Obesity"}}]},
        ...         {"year": {"$gt": 2010}},
        ...         {"$not": {"mesh": {"$contains": "Humans"}}},
        ...     ]
        ... }
        True
        >>> rules.construct("2010年以后关于Stroke的研究", schema).filter
        {'$and': [{'year': {'$gt': 2010}}, {'mesh': {'$contains': 'Stroke'}}]}
    """

    def __init__(self, *, today: date | None = None) -> None:
        self._today = today

    @staticmethod
    def named_values(schema: Schema, question: str) -> dict[str, list[Any]]:
        """The values of a schema that a question names, by field."""
        found: dict[str, list[Any]] = {}
        for named in _index(schema).find(_normal(question)):
            found.setdefault(named.field, []).append(named.value)
        return found

    def construct(self, question: str, schema: Schema) -> ConstructedQuery:
        """Turn a question, of which the first 2,000 characters are read, into text and filter."""
        text = _normal(question)
        read = simplified(text)
        reading = Reading(read, schema, _index(schema), self._today or date.today())
        found = reading.atoms()
        beside = beside_unknown(read, found)
        atoms = [atom for atom in found if atom not in beside]
        # what is no condition stays in the text
        spans = [(atom.begin, atom.end) for atom in atoms]
        rest, bare = remainder(text, [*reading.used, *spans])
        where, repair = bounded(join(read, atoms))
        return ConstructedQuery(
            question=question,
            query=rest if content_words(bare) else "",
            filter=where,
            sort=reading.order.sort if reading.order else None,
            limit=reading.order.limit if reading.order else None,
            repairs=(*reading.notes, *_left_out(text, beside), *([repair] if repair else [])),
        )


def _left_out(text: str, beside: Mapping[Atom, str]) -> list[str]:
    return [
        f"dropped: {atom.field} {text[atom.begin : atom.end][:60]!r}: the question also asks for {asked[:60]!r}, "
        "which is no known value, and the filter would hide it"
        for atom, asked in beside.items()
    ]


@lru_cache(maxsize=16)
def _index(schema: Schema) -> ValueIndex:
    return ValueIndex(schema)


def _normal(question: str) -> str:
    return unicodedata.normalize("NFKC", question)[:_MAX_QUESTION]
