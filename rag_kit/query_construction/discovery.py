"""Find out which metadata fields a collection has: their types, values and ranges."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from langchain_core.documents import Document

from rag_kit.documents import PROVENANCE_KEY, Filter
from rag_kit.documents.explanation import SITUATION
from rag_kit.documents.plain import to_plain
from rag_kit.errors import InvalidInputError
from rag_kit.query_construction.fields import MAX_FIELDS, DateFormat, FieldType, MetadataField, Schema
from rag_kit.query_construction.sources import Source, source_of

MAX_ROWS = 20_000
MAX_VALUES = 10_000
_MAX_CHARS = 200
_SMALL = 20  # rows up to which nothing can be said about how often values come back
_UNIQUE = 0.5  # values a row from which on a text names single documents
_ISO = re.compile(r"(?:1[0-9]|2[0-9])\d\d-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])(?:$|[T ])")
_TIME_NAME = re.compile(r"date|time|created|updated|modified|_at$|日期|时间", re.IGNORECASE)


def discover_schema(
    source: Any,
    *,
    filter: Filter | None = None,
    exclude: Collection[str] = (),
    descriptions: Mapping[str, str] | None = None,
    max_rows: int = MAX_ROWS,
    max_values: int = MAX_VALUES,
) -> Schema:
    """Read the metadata of a collection and say what it may be filtered by.

    Args:
        source: Documents, a ``BM25Index``, a ``DocumentIndex``, a vector store (Chroma, in-memory, PGVectorStore,
            Qdrant), or a retriever over one of them.
        filter: Only rows that pass are looked at, so that no value of another tenant is offered.
        exclude: Names of fields to leave out.
        descriptions: What fields mean, by name.
        max_rows: Most rows to read.
        max_values: Most distinct values to remember of a field; a field with more is open: any value may be asked.

    Returns:
        The schema; at most 64 fields, those that most rows have first.

    Raises:
        InvalidInputError: The rows of the source cannot be listed.

    Example:
        >>> docs = [Document("a", metadata={"year": 2010, "tags": ["x"]}), Document("b", metadata={"year": 2012})]
        >>> [(field.name, field.type, field.many, field.values) for field in discover_schema(docs)]
        [('year', 'int', False, (2010, 2012)), ('tags', 'str', True, ('x',))]
    """
    rows = _source(source).documents(filter, max_rows + 1)
    return _schema(rows, exclude, descriptions or {}, max_rows, max_values)


async def adiscover_schema(
    source: Any,
    *,
    filter: Filter | None = None,
    exclude: Collection[str] = (),
    descriptions: Mapping[str, str] | None = None,
    max_rows: int = MAX_ROWS,
    max_values: int = MAX_VALUES,
) -> Schema:
    """As ``discover_schema``, without blocking."""
    rows = await _source(source).adocuments(filter, max_rows + 1)
    return _schema(rows, exclude, descriptions or {}, max_rows, max_values)


def _source(value: Any) -> Source:
    found = source_of(value)
    if found is None:
        raise InvalidInputError(
            f"The rows of {type(value).__name__} cannot be listed, so its fields cannot be found out. Give schema=: "
            "a list such as [{'name': 'year', 'type': 'int', 'description': '...'}]."
        )
    return found


def _schema(
    rows: Sequence[Document],
    exclude: Collection[str],
    descriptions: Mapping[str, str],
    max_rows: int,
    max_values: int,
) -> Schema:
    seen: dict[str, _Seen] = {}
    for doc in rows[:max_rows]:
        for name, value in doc.metadata.items():
            if (
                name in (PROVENANCE_KEY, SITUATION)
                or name in exclude
                or not name
                or name.startswith(("$", "#", "chroma:"))
            ):
                continue
            if value is None or (isinstance(value, (list, tuple)) and not value):
                continue
            seen.setdefault(name, _Seen(max_values)).add(value)
    cut = len(rows) > max_rows
    fields = [
        field
        for name, found in sorted(seen.items(), key=lambda item: -item[1].rows)
        if (field := found.field(name, descriptions.get(name, ""), cut)) is not None
    ]
    return Schema(tuple(fields[:MAX_FIELDS]))


class _Seen:
    """What was seen of one field."""

    def __init__(self, max_values: int) -> None:
        self.rows = 0
        self._lists = 0
        self._kinds: Counter[str] = Counter()
        self._values: Counter[Any] = Counter()
        self._room = max_values
        self._full = False
        self._least: Any = None
        self._most: Any = None

    def add(self, value: Any) -> None:
        self.rows += 1
        value = to_plain(value)
        if isinstance(value, list):
            self._lists += 1
        for item in value if isinstance(value, list) else [value]:
            self._one(item)

    def _one(self, item: Any) -> None:
        kind = type(item).__name__
        self._kinds[kind] += 1
        if kind not in ("str", "int", "float", "bool"):
            return
        key = (kind, item)
        if key in self._values or len(self._values) < self._room:
            if kind != "str" or len(item) <= _MAX_CHARS:
                self._values[key] += 1
            else:
                self._full = True
        else:
            self._full = True
        if kind in ("int", "float"):
            self._least = item if self._least is None else min(self._least, item)
            self._most = item if self._most is None else max(self._most, item)

    def field(self, name: str, description: str, cut: bool) -> MetadataField | None:
        """The field, or None if it holds objects or nothing that can be compared."""
        names: tuple[FieldType, ...] = ("str", "int", "float", "bool")
        plain: dict[FieldType, int] = {of: self._kinds[of] for of in names if self._kinds[of]}
        if not plain or sum(plain.values()) < sum(self._kinds.values()):
            return None
        many = self._lists * 2 > self.rows
        kind: FieldType
        if set(plain) <= {"int", "float"}:
            kind = "float" if "float" in plain else "int"
        else:
            kind = max(plain, key=lambda of: plain[of])
        of_kind = (kind, "int") if kind == "float" else (kind,)
        counted = [(value, count) for (of, value), count in self._values.items() if of in of_kind]
        counted.sort(key=lambda pair: (-pair[1], str(pair[0])))
        values = tuple(value for value, _ in counted)
        format_ = self._date_format(name, kind, values)
        if format_ is not None:
            kind = "date"
        unique = kind == "str" and not many and self.rows > _SMALL and len(values) >= _UNIQUE * self.rows
        if unique or kind == "date" or (kind == "float" and len(values) > 50):
            values = values[:5]
        ordered = kind in ("int", "float") or format_ in ("yyyymmdd", "timestamp")
        iso = format_ == "iso" and counted
        return MetadataField(
            name=name,
            type=kind,
            many=many,
            description=description,
            values=values,
            complete=kind in ("str", "bool") and not (self._full or cut or unique),
            minimum=min(value for value, _ in counted) if iso else self._least if ordered else None,
            maximum=max(value for value, _ in counted) if iso else self._most if ordered else None,
            date_format=format_ or "iso",
            unique=unique,
        )

    def _date_format(self, name: str, kind: str, values: Sequence[Any]) -> DateFormat | None:
        if kind == "str" and values and all(_ISO.match(value) for value in values):
            return "iso"
        if kind in ("int", "float") and values and _TIME_NAME.search(name):
            if all(15000101 <= value <= 29991231 and 1 <= int(value) // 100 % 100 <= 12 for value in values):
                return "yyyymmdd"
            if all(10**8 <= value < 10**10 for value in values):
                return "timestamp"
        return None
