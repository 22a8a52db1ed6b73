"""Filters of the kit in the language of a vector store, and what a translation has to know of the store."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from rag_kit.documents import Filter, compile_filter
from rag_kit.documents.filters_chroma import to_chroma
from rag_kit.documents.filters_postgres import to_postgres
from rag_kit.documents.filters_qdrant import to_qdrant
from rag_kit.errors import FilterError

if TYPE_CHECKING:
    from langchain_core.vectorstores import VectorStore

_columns: WeakKeyDictionary[VectorStore, Mapping[str, str]] = WeakKeyDictionary()


def made_by(store: VectorStore, package: str) -> bool:
    """Whether a store's class, or one it is made from, is of a package; imports nothing to tell."""
    return any(base.__module__.split(".")[0] == package for base in type(store).__mro__)


def is_chroma(store: VectorStore) -> bool:
    """Whether a store is LangChain's Chroma, or a class made from it; imports nothing to tell."""
    return made_by(store, "langchain_chroma")


def translator_of(store: VectorStore) -> Callable[[Filter], Any] | None:
    """The kit's own translation of filters for a store; ``None`` for a store that is not known.

    It gives what the store's ``filter`` argument takes, ``None`` for all rows, and raises a ``FilterError`` for
    what the store cannot say.
    """
    from langchain_core.vectorstores import InMemoryVectorStore

    if isinstance(store, InMemoryVectorStore):
        return _predicate
    if is_chroma(store):
        return to_chroma
    if made_by(store, "langchain_postgres"):
        return lambda where: to_postgres(where, _declared_columns(store))
    if made_by(store, "langchain_qdrant"):
        key = str(getattr(store, "metadata_payload_key", "metadata"))
        return lambda where: to_qdrant(where, metadata_key=key)
    return None


def _predicate(where: Filter) -> Callable[[Any], bool]:
    passes = compile_filter(where)
    return lambda document: passes(document.metadata)


def _declared_columns(store: VectorStore) -> Mapping[str, str]:
    """The declared metadata columns of a ``PGVectorStore`` and their types, read from the database once."""
    if store not in _columns:
        try:
            inner: Any = store._PGVectorStore__vs  # type: ignore[attr-defined]
            with closing(_read_columns(inner)) as reading:
                rows = store._engine._run_as_sync(reading)  # type: ignore[attr-defined]
        except Exception as error:  # whatever the driver raises: the results are filtered then
            raise FilterError(
                f"The columns of {type(store).__name__} cannot be read ({type(error).__name__}), so it cannot be "
                "filtered."
            ) from error
        _columns[store] = {name: kind for name, kind in rows if name in inner.metadata_columns}
    return _columns[store]


async def _read_columns(inner: Any) -> list[tuple[str, str]]:
    """Name and type of each column of the table of a PGVectorStore."""
    from sqlalchemy import text

    statement = text(
        "SELECT column_name, data_type FROM information_schema.columns "
        "WHERE table_name = :table AND table_schema = :schema"
    )
    async with inner.engine.connect() as connection:
        rows = await connection.execute(statement, {"table": inner.table_name, "schema": inner.schema_name})
        return [(str(name), str(kind)) for name, kind in rows.fetchall()]
