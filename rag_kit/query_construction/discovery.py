"""Find out which metadata fields a collection has: their types, values and ranges."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any

from langchain_core.runnables import Runnable

from rag_kit.documents import PROVENANCE_KEY, Filter, combine_filters
from rag_kit.documents.explanation import SITUATION
from rag_kit.documents.identity import to_plain
from rag_kit.errors import InvalidInputError
from rag_kit.query_construction.fields import MAX_FIELDS, DateFormat, FieldType, MetadataField, Schema
from rag_kit.query_construction.sources import source_of
from rag_kit.retrieval.own_filter import own_filter

_MAX_ROWS = 20_000
_MAX_VALUES = 10_000
_MAX_CHARS = 200
_SMALL = 20  # rows up to which nothing can be said about how often values come back
_UNIQUE = 0.5  # values a row from which on a text names single documents
_ISO = re.compile(r"(?:1[0-9]|2[0-9])\d\d-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])(?:$|[T ])")
_TIME_NAME = re.compile(r"date|time|created|updated|modified|_at$|日期|时间", re.IGNORECASE)
_TYPES: dict[type, FieldType] = {str: "str", int: "int", float: "float", bool: "bool"}


def discover_schema(source: Any, *, filter: Filter | None = None, exclude: Collection[str] = ()) -> Schema:
    """Read the metadata of a collection and say what it may be filtered by.

    Args:
        source: Documents, a ``BM25Index``, a ``DocumentIndex``, a vector store (Chroma, in-memory, PGVectorStore,
            Qdrant), or a retriever over one of them; 20,000 rows are read.
        filter: Only rows that pass are looked at, so that no value of another tenant is offered.
        exclude: Names of fields to leave out.

    Returns:
        The schema; at most 64 fields, those that most rows have first.

    Raises:
        InvalidInputError: The rows of the source cannot be listed.
        FilterError: A retriever has a filter of its own that cannot be read.

    Example:
        >>> from langchain_core.documents import Document
        >>> docs = [Document("a", metadata={"year": 2010, "tags": ["x"]}), Document("b", metadata={"year": 2012})]
        >>> [(field.name, field.type, field.many, field.values) for field in discover_schema(docs)]
        [('year', 'int', False, (2010, 2012)), ('tags', 'str', True, ('x',))]
    """
    listing = source_of(source)
    if listing is None:
        raise InvalidInputError(
            f"The rows of {type(source).__name__} cannot be listed, so its fields cannot be found out. Give schema=: "
            "a list such as [{'name': 'year', 'type': 'int', 'description': '...'}]."
        )
    where = own_filter(source, strict=True) if isinstance(source, Runnable) else None
    rows = listing.documents(combine_filters(filter, where), _MAX_ROWS + 1)
    columns: dict[str, list[Any]] = {}
    left_out = {PROVENANCE_KEY, SITUATION, "", *exclude}
    for doc in rows[:_MAX_ROWS]:
        for name, value in doc.metadata.items():
            if name not in left_out and not name.startswith(("$", "#", "chroma:")):
                plain = to_plain(value)
                columns.setdefault(name, []).extend([plain] if plain not in (None, []) else [])
    columns = {name: column for name, column in columns.items() if column}
    by_rows = sorted(columns.items(), key=lambda item: -len(item[1]))
    fields = (_field(name, column, len(rows) > _MAX_ROWS) for name, column in by_rows)
    return Schema(tuple([field for field in fields if field is not None][:MAX_FIELDS]))


def _field(name: str, column: list[Any], cut: bool) -> MetadataField | None:
    """The field of these values; ``None`` if it holds objects; `cut`: there are more rows."""
    list_count = sum(isinstance(value, list) for value in column) * 2 > len(column)
    items = [item for value in column for item in (value if isinstance(value, list) else [value])]
    kinds = Counter(type(item) for item in items)
    if not kinds or not kinds.keys() <= _TYPES.keys():
        return None
    numbers = kinds.keys() <= {int, float}
    of = (float if float in kinds else int) if numbers else max(_TYPES, key=lambda kind: kinds[kind])
    counted: Counter[Any] = Counter(
        item for item in items if type(item) is of or (of is float and type(item) is int)
    )
    values = sorted(counted, key=lambda value: (-counted[value], str(value)))
    short = tuple(value for value in values[:_MAX_VALUES] if of is not str or len(value) <= _MAX_CHARS)
    format_ = _date_format(name, of, short)
    unique = of is str and not list_count and len(column) > _SMALL and len(short) >= _UNIQUE * len(column)
    ranged = values and (of in (int, float) or format_ is not None)
    hidden = unique or format_ is not None or (of is float and len(short) > 50)
    return MetadataField(
        name=name,
        type="date" if format_ else _TYPES[of],
        many=list_count,
        values=short[:5] if hidden else short,
        complete=of in (str, bool) and not (cut or hidden or len(short) < len(values)),
        minimum=min(values) if ranged else None,
        maximum=max(values) if ranged else None,
        date_format=format_ or "iso",
        unique=unique,
    )


def _date_format(name: str, of: type, values: Sequence[Any]) -> DateFormat | None:
    """How the values store dates, if they all do."""
    if of is str and values and all(_ISO.match(value) for value in values):
        return "iso"
    if of in (int, float) and values and _TIME_NAME.search(name):
        if all(15000101 <= value <= 29991231 and 1 <= int(value) // 100 % 100 <= 12 for value in values):
            return "yyyymmdd"
        if all(10**8 <= value < 10**10 for value in values):
            return "timestamp"
    return None
