"""What a translation has to know of a store: whose it is, its columns, where its metadata lies."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

from langchain_core.vectorstores import VectorStore

_log = logging.getLogger(__name__)
_columns: WeakKeyDictionary[VectorStore, Mapping[str, str]] = WeakKeyDictionary()


def made_by(store: VectorStore, package: str) -> bool:
    """Whether a store's class, or one it is made from, is of a package; imports nothing to tell.

    Example:
        >>> from langchain_core.embeddings import DeterministicFakeEmbedding
        >>> from langchain_core.vectorstores import InMemoryVectorStore
        >>> made_by(InMemoryVectorStore(DeterministicFakeEmbedding(size=2)), "langchain_core")
        True
    """
    return any(base.__module__.split(".")[0] == package for base in type(store).__mro__)


def payload_key(store: VectorStore) -> str:
    """The payload key under which a Qdrant store keeps the metadata."""
    return str(getattr(store, "metadata_payload_key", "metadata"))


def both_qdrant(static: Any, mine: Any) -> Any | None:
    """Two filters of Qdrant, ANDed."""
    if mine is None or static is None:
        return mine if mine is not None else static
    return type(mine)(must=[static, mine]) if isinstance(static, type(mine)) else None


def postgres_columns(store: VectorStore) -> Mapping[str, str] | None:
    """The declared metadata columns of a ``PGVectorStore`` and their types.

    They are read from the database once for each store.

    Returns:
        Name -> type; ``None`` where they cannot be read: a store of another class, an engine without its own loop,
        or a database that does not answer.
    """
    if store not in _columns:
        inner = getattr(store, "_PGVectorStore__vs", None)
        engine = getattr(store, "_engine", None)
        if inner is None or getattr(engine, "_loop", None) is None or engine is None:
            return None
        try:
            rows = engine._run_as_sync(_read_columns(inner))
        except Exception as error:  # noqa: BLE001 - whatever the driver raises: the results are filtered here then
            _log.warning("The columns of %s cannot be read: %s", type(store).__name__, type(error).__name__)
            return None
        declared = set(inner.metadata_columns)
        _columns[store] = {name: kind for name, kind in rows if name in declared}
    return _columns[store]


async def _read_columns(inner: Any) -> list[tuple[str, str]]:
    from sqlalchemy import text

    statement = text(
        "SELECT column_name, data_type FROM information_schema.columns "
        "WHERE table_name = :table AND table_schema = :schema"
    )
    async with inner.engine.connect() as connection:
        found = await connection.execute(statement, {"table": inner.table_name, "schema": inner.schema_name})
        return [(str(name), str(kind)) for name, kind in found.fetchall()]
