"""Checks of an index from end to end, and what a repair does to what is damaged."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from rag_kit.errors import IndexFormatError
from rag_kit.indexing.document_index.backend import Backend
from rag_kit.indexing.document_index.embedding import fill_vectors
from rag_kit.indexing.document_index.report import IndexReport
from rag_kit.indexing.document_index.sql import Connection, scan
from rag_kit.indexing.document_index.store import State, Store

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings


def verify(backend: Backend) -> IndexReport:
    """Check store and legs of an index against each other."""
    report, store = IndexReport(checked={"chunks": 0}), backend.store
    with store.reading() as connection:
        try:
            state = store.state(connection)
        except IndexFormatError as error:
            report.problems.append(f"store: {error}")
            return report
        if bad := store.damage(connection):
            report.problems.append(f"store: {bad}")
            return report
        for table in ("chunks", "parents"):
            damaged, number = _damaged(connection, table)
            if number or table == "chunks":
                report.checked[table] = number
            if damaged:
                report.problems.append(
                    f"store: {len(damaged)} rows of {table} are not what was written, for example {damaged[0][1]}; "
                    "repair forgets their files, and the next ingest reads them again"
                )
        _check_vectors(connection, state, report)
        for leg in backend.legs:
            leg.verify(connection, state, report)
    return report


def _damaged(connection: Connection, table: str) -> tuple[list[tuple[int, str, str]], int]:
    """Numbers, ids and sources of rows that are not what was written, and how many rows there are."""
    # as bytes: a damaged text need not be UTF-8
    content = "CAST(text AS BLOB), CAST(metadata AS BLOB)"
    found, number = [], 0
    for n, key, source, digest, text, metadata in scan(
        connection, f"SELECT n, id, source, hash, {content} FROM {table} ORDER BY n"
    ):
        number += 1
        if hashlib.sha256(text).digest() != digest or not _is_object(metadata):
            found.append((n, key, source))
    return found, number


def _is_object(metadata: bytes) -> bool:
    try:
        return isinstance(json.loads(bytes(metadata).decode()), dict)
    except (ValueError, RecursionError):
        return False


def _decoded(stored: bytes) -> str:
    return bytes(stored).decode("utf-8", "replace")


def _check_vectors(connection: Connection, state: State, report: IndexReport) -> None:
    if state.embedding is None:
        return
    query = "SELECT count(*) FROM chunks LEFT JOIN vectors USING (n) WHERE vectors.n IS NULL"
    [(without,)] = connection.execute(query).fetchall()
    if without:
        report.problems.append(f"vectors: {without} rows have none")
    if wrong := sum(1 for _ in _unsound_vectors(connection, state)):
        report.problems.append(f"vectors: {wrong} are damaged")
    [(report.checked["vectors"],)] = connection.execute("SELECT count(*) FROM vectors").fetchall()


def _unsound_vectors(connection: Connection, state: State) -> Iterator[int]:
    """Numbers of the rows whose vectors are of the wrong length, or not finite."""
    size = 4 * (state.dimension or 0)
    for n, blob in scan(connection, "SELECT n, vector FROM vectors"):
        if len(blob) != size or not np.isfinite(np.frombuffer(blob, "<f4")).all():
            yield n


def _mark_damaged(connection: Connection, table: str) -> list[str]:
    """Make rows that are not what was written differ from what any file gives, so that they are replaced.

    Else a row whose text is damaged, but not its hash, would count as unchanged. The new hash is one that no
    text has, and another in each row; text and metadata become such as can be read.

    Returns:
        Their sources.
    """
    damaged, _ = _damaged(connection, table)
    for n, _, source in damaged:
        query = f"SELECT CAST(text AS BLOB), CAST(metadata AS BLOB) FROM {table} WHERE n = ?"
        text, metadata = connection.execute(query, (n,)).fetchone()
        plain = _decoded(metadata) if _is_object(metadata) else json.dumps({"source": source})
        connection.execute(
            f"UPDATE {table} SET text = ?, metadata = ?, hash = ? WHERE n = ?",
            (_decoded(text), plain, b"damaged row %d" % n, n),
        )
    return [source for _, _, source in damaged]


def _drop_unsound_vectors(store: Store) -> int:
    """Remove damaged vectors, so that they are made again."""
    with store.writing() as connection:
        bad = [(n,) for n in _unsound_vectors(connection, store.state(connection))]
        connection.executemany("DELETE FROM vectors WHERE n = ?", bad)
    return len(bad)


def rebuild(backend: Backend, embeddings: Embeddings | None) -> list[str]:
    """Make missing vectors by the index's model, rebuild all legs."""
    done: list[str] = []
    store = backend.store
    with store.write_lock:
        state = store.state()
        with store.writing() as connection:
            if sources := {s for table in ("chunks", "parents") for s in _mark_damaged(connection, table)}:
                connection.executemany(
                    "DELETE FROM sources WHERE source = ?", [(s,) for s in sorted(sources)]
                )
                done.append(f"{len(sources)} files with damaged chunks will be read again by the next ingest")
        if state.embedding is not None:
            if dropped := _drop_unsound_vectors(store):
                done.append(f"dropped {dropped} damaged vectors")
            if embeddings is not None and (filled := fill_vectors(store, embeddings, state.embedding)):
                done.append(f"embedded {filled} texts again")
        done += backend.rebuild()
    return done
