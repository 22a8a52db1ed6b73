"""The rows behind a retriever or store, and the metadata fields that they have: types, values and ranges."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, islice
from typing import Any, Literal, NamedTuple

from langchain_core.documents import Document
from langchain_core.runnables import Runnable, RunnableConfig, RunnableSequence
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore, VectorStoreRetriever

from rag_kit.documents import PROVENANCE_KEY, Filter, combine_filters, compile_filter, copy_document
from rag_kit.documents.explanation import SITUATION
from rag_kit.documents.filter_translations import made_by
from rag_kit.documents.identity import to_plain
from rag_kit.errors import FilterError, InvalidInputError
from rag_kit.indexing import BM25Index, DocumentIndex
from rag_kit.models.runnables import is_kit_retriever
from rag_kit.query_construction.fields import MAX_FIELDS, DateFormat, FieldType, MetadataField, Schema
from rag_kit.retrieval import BM25Retriever, VectorRetriever, index_retriever
from rag_kit.retrieval.fusion import Search, identify
from rag_kit.retrieval.inside import asks_all, filter_around, inside, own_filter
from rag_kit.retrieval.stores import native_filter

_PAGE = 500  # rows read at once
_MAX_ROWS = 20_000
_MAX_VALUES = 10_000  # of a field
_MAX_CHARS = 200  # of a text that counts as a value
_MANY_NUMBERS = 50  # different floats above which only examples are kept
_EXAMPLES = 5
_FEW_ROWS = 20  # up to which it is not known how often values repeat
_UNIQUE_SHARE = 0.5  # different values a row from which on a text identifies single documents
_ISO = re.compile(r"(?:1[0-9]|2[0-9])\d\d-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])(?:$|[T ])")
_TIME_NAME = re.compile(r"date|time|created|updated|modified|_at$|日期|时间", re.IGNORECASE)
_INNER = ("$", "#", "chroma:")  # begin the names that stores write
_PLACE = {"chunk", "start", "end"}  # say together where a passage was cut out of its document
_TYPES: dict[type, FieldType] = {str: "str", int: "int", float: "float", bool: "bool"}


class _Rows(NamedTuple):
    """The rows of an index, a store or a list of documents that pass a filter."""

    value: Any
    where: Filter | None = None

    @property
    def key(self) -> tuple[int, str]:
        """Return what tells these rows from others as long as they are kept."""
        return id(self.value), repr(self.where)

    def documents(self, limit: int) -> list[Document]:
        """Copy the first `limit` documents; pages are read only until there are as many."""
        passes = compile_filter(self.where)
        passing = (doc for page in self._pages() for doc in page if passes(doc.metadata))
        return [copy_document(doc) for doc in islice(passing, limit)]

    def _pages(self) -> Iterable[Sequence[Document]]:
        """Yield pages of rows in the collection's order; rows that do not pass the filter may be among them."""
        value = self.value
        if isinstance(value, (BM25Index, DocumentIndex)):
            ids = value.ids if isinstance(value, BM25Index) else value.passage_ids()
            return (value.get(ids[start : start + _PAGE]) for start in range(0, len(ids), _PAGE))
        if isinstance(value, InMemoryVectorStore):
            rows = list(value.store.values())
            return [[Document(row["text"], id=row["id"], metadata=row["metadata"]) for row in rows]]
        if isinstance(value, VectorStore):
            native = native_filter(value, self.where) if self.where else None
            read_pages = _read_qdrant if made_by(value, "langchain_qdrant") else _read_store
            return read_pages(value, native)
        return [value]


@dataclass(frozen=True)
class FieldSource:
    """The rows of one or several indexes, stores or lists; a row that two of them hold counts once."""

    parts: Sequence[_Rows]

    def under(self, where: Filter | None) -> FieldSource:
        """Return the same rows, under one filter more."""
        return FieldSource([rows._replace(where=combine_filters(where, rows.where)) for rows in self.parts])

    @property
    def key(self) -> tuple[Any, ...]:
        """Return what tells these rows from others as long as they are kept."""
        return tuple(rows.key for rows in self.parts)

    def documents(self, limit: int) -> list[Document]:
        """Copy the first `limit` documents, part after part."""
        listed = [rows.documents(limit) for rows in self.parts]
        if len(listed) == 1:
            return listed[0]
        origins: Sequence[Any] = self.parts
        searches = [Search("", None, one, documents=docs) for one, docs in zip(origins, listed, strict=True)]
        keys_of_parts, _ = identify(searches, None)
        unique: list[Document] = []
        seen: set[Any] = set()
        for documents, keys in zip(listed, keys_of_parts, strict=True):
            # by text and metadata, too: a document may have an id in one of the stores alone
            contents = [(doc.page_content, repr(sorted(doc.metadata.items()))) for doc in documents]
            triples = zip(documents, keys, contents, strict=True)
            unique += [doc for doc, key, content in triples if seen.isdisjoint((key, content))]
            seen.update(keys, contents)
        return unique[:limit]


def source_of(value: Any, config: RunnableConfig | None = None) -> FieldSource | None:
    """Return the rows behind a store, an index, documents or a retriever; ``None`` if they cannot be listed.

    For a retriever they are those of its first part that has any, for an ensemble those of each part, under the filters
    of that part and of all retrievers around it. ``FilterError`` if one of these filters cannot be read.
    """
    if isinstance(value, FieldSource):
        return value
    if isinstance(value, RunnableSequence):  # its later steps may hide rows
        return None
    if isinstance(value, Runnable):
        return _source_inside(value, config)
    if isinstance(value, (list, tuple)):
        can_list = all(isinstance(item, Document) for item in value)
    elif made_by(value, "langchain_postgres"):
        can_list = hasattr(value, "get")
    else:
        has_pages = made_by(value, "langchain_chroma") or made_by(value, "langchain_qdrant")
        can_list = has_pages or isinstance(value, (InMemoryVectorStore, BM25Index, DocumentIndex))
    return FieldSource([_Rows(value)]) if can_list else None


def _source_inside(retriever: Runnable[Any, Any], config: RunnableConfig | None) -> FieldSource | None:
    """Return the rows of the first part of a retriever that has any, under the filters around it.

    Of an ensemble they are those of each part, without a part whose filter cannot be read.
    """
    _, inner_config = filter_around(retriever, config, strict=False)
    parts = retriever.searched() if is_kit_retriever(retriever) else inside(retriever, inner_config)
    if isinstance(retriever, VectorStoreRetriever):
        parts = [retriever.vectorstore]
    is_ensemble = asks_all(retriever)
    rows_by_key: dict[Any, _Rows] = {}
    first_error: FilterError | None = None
    for part in parts:
        try:
            source = source_of(part, inner_config)
        except FilterError as error:
            if not is_ensemble:
                raise
            first_error = first_error or error
            continue
        if source is None:
            continue
        if isinstance(part, Runnable):
            outer_filter, _ = filter_around(retriever, config)
        else:  # its own index or store, which the retrievers inside may search under filters of theirs
            outer_filter = own_filter(retriever, config, strict=True, every=True)
        for rows in source.under(outer_filter).parts:
            rows_by_key.setdefault(rows.key, rows)
        if not is_ensemble:
            break
    if first_error and not rows_by_key:
        raise first_error
    return FieldSource([*rows_by_key.values()]) if rows_by_key else None


def as_retriever(value: Any) -> Runnable[str, list[Document]]:
    """Return the retriever over a store, an index or documents; a retriever as it is."""
    if isinstance(value, Runnable):
        return value
    if isinstance(value, BM25Index):
        return BM25Retriever(index=value)
    if isinstance(value, DocumentIndex):
        return index_retriever(value)
    if isinstance(value, VectorStore):
        return VectorRetriever(vectorstore=value)
    if isinstance(value, Iterable) and not isinstance(value, (str, bytes)):
        documents = list(value)
        if all(isinstance(item, Document) for item in documents):
            return BM25Retriever.from_documents(documents)
    raise InvalidInputError(
        f"retriever is {type(value).__name__}; it must be a LangChain retriever, a vector store, a BM25Index, a "
        "DocumentIndex, or a list of documents."
    )


def _read_store(store: Any, native: Any) -> Iterator[list[Document]]:
    """Yield pages of a store whose ``get`` is like Chroma's, under a filter in the store's own form."""
    for offset in count(0, _PAGE):
        page = store.get(where=native, limit=_PAGE, offset=offset, include=["documents", "metadatas"])
        rows = zip(page["ids"], page["documents"], page["metadatas"], strict=True)
        yield [_make_document(*row) for row in rows]
        if len(page["ids"]) < _PAGE:
            return


def _read_qdrant(store: Any, native: Any) -> Iterator[list[Document]]:
    """Yield pages of a collection of Qdrant, under a filter in Qdrant's own form."""
    offset: Any = None
    while True:
        points, offset = store.client.scroll(
            store.collection_name, scroll_filter=native, limit=_PAGE, offset=offset, with_payload=True
        )
        payloads = [(point.id, point.payload or {}) for point in points]
        text, metadata = store.content_payload_key, store.metadata_payload_key
        yield [_make_document(key, payload.get(text), payload.get(metadata)) for key, payload in payloads]
        if offset is None:
            return


def _make_document(key: Any, text: str | None, metadata: Any) -> Document:
    return Document(text or "", id=str(key), metadata=dict(metadata or {}))


def discover_schema(source: Any, config: Any = None) -> Schema:
    """Read the metadata of a collection as fields to filter by: at most 64, the most frequent first.

    The source is one that `source_of` lists; 20,000 rows are read. Only those under its filters are looked at, so that
    no value of another tenant is offered.
    """
    if (field_source := source_of(source, config)) is None:
        raise InvalidInputError(
            f"The rows of {type(source).__name__} cannot be listed, so its fields cannot be found out. Give schema=: "
            "a list such as [{'name': 'year', 'type': 'int', 'description': '...'}]."
        )
    rows = field_source.documents(_MAX_ROWS + 1)
    columns: dict[str, list[Any]] = {}
    for doc in rows[:_MAX_ROWS]:
        hidden = {PROVENANCE_KEY, SITUATION, "", *(_PLACE if doc.metadata.keys() >= _PLACE else ())}
        for name, value in doc.metadata.items():
            if name in hidden or name.startswith(_INNER):
                continue
            if (plain := to_plain(value)) not in (None, []):
                columns.setdefault(name, []).append(plain)
    most_frequent_first = sorted(columns, key=lambda name: -len(columns[name]))
    fields = (_infer_field(name, columns[name], len(rows) > _MAX_ROWS) for name in most_frequent_first)
    return Schema(tuple([field for field in fields if field is not None][:MAX_FIELDS]))


def _infer_field(name: str, column: list[Any], is_sample: bool) -> MetadataField | None:
    """Infer the field of a column of values; ``None`` if it is empty or holds objects."""
    mostly_lists = sum(isinstance(value, list) for value in column) * 2 > len(column)
    items = [item for value in column for item in (value if isinstance(value, list) else [value])]
    types = Counter(type(item) for item in items)
    if not types or not types.keys() <= _TYPES.keys():
        return None
    value_type: type = float if types.keys() == {int, float} else max(_TYPES, key=lambda kind: types[kind])
    accepted_types = (int, float) if value_type is float else (value_type,)
    counts: Counter[Any] = Counter(item for item in items if type(item) in accepted_types)
    by_count = sorted(counts, key=lambda value: (-counts[value], str(value)))
    values = [value for value in by_count[:_MAX_VALUES] if value_type is not str or len(value) <= _MAX_CHARS]
    format_ = _date_format(name, value_type, values)
    is_text = value_type is str and not mostly_lists
    unique = is_text and len(column) > _FEW_ROWS and len(values) >= _UNIQUE_SHARE * len(column)
    has_range = by_count and (value_type in (int, float) or format_ is not None)
    # examples are enough where a question will hardly use a stored value as it is
    only_examples = unique or format_ is not None or (value_type is float and len(values) > _MANY_NUMBERS)
    is_complete = not (is_sample or only_examples or len(values) < len(by_count))
    return MetadataField(
        name=name,
        type="date" if format_ else _TYPES[value_type],
        many=mostly_lists,
        values=tuple(values[:_EXAMPLES] if only_examples else values),
        complete=value_type in (str, bool) and is_complete,
        minimum=min(by_count) if has_range else None,
        maximum=max(by_count) if has_range else None,
        date_format=format_ or "iso",
        grain=_grain(format_, by_count),
        unique=unique,
    )


def _grain(format_: DateFormat | None, values: Sequence[Any]) -> Literal["day", "month", "year"]:
    """Return how fine dates are: "year" if each is a 1 January, "month" if each is a first of a month, else "day"."""
    if format_ not in ("iso", "yyyymmdd"):
        return "day"
    texts = [str(value if format_ == "iso" else int(value)) for value in values]
    dates = [text[:10].replace("-", "") for text in texts]  # "20260131"
    if all(date.endswith("0101") for date in dates):
        return "year"
    return "month" if all(date.endswith("01") for date in dates) else "day"


def _date_format(name: str, value_type: type, values: Sequence[Any]) -> DateFormat | None:
    """Return the format in which all values are dates; ``None`` if they are none."""
    if value_type is str and values and all(_ISO.match(value) for value in values):
        return "iso"
    if value_type in (int, float) and values and _TIME_NAME.search(name):
        # 20260131: eight figures, of which the fifth and sixth are a month
        if all(15000101 <= value <= 29991231 and 1 <= int(value) // 100 % 100 <= 12 for value in values):
            return "yyyymmdd"
        if all(10**8 <= value < 10**10 for value in values):  # seconds since 1970, from 1973 to 2286
            return "timestamp"
    return None
