"""Checks of an index from end to end, and what a repair does to what is damaged."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator

import numpy as np
from langchain_core.embeddings import Embeddings

from rag_kit.errors import IndexFormatError
from rag_kit.indexing.document_index.embedding import VectorFiller
from rag_kit.indexing.document_index.rows import StoredRow
from rag_kit.indexing.document_index.state import Connection, IndexReport, IndexState, scan
from rag_kit.indexing.document_index.store import Store


def verify(store: Store) -> IndexReport:
    """Check the store of an index, and its search indexes against the store; return problems and numbers of rows."""
    report = IndexReport(checked={"chunks": 0})
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
            [(number,)] = connection.execute(f"SELECT count(*) FROM {table}").fetchall()
            if number or table == "chunks":
                report.checked[table] = number
            if ids := [row.id for _, row in _damaged_rows(connection, table)]:
                report.problems.append(
                    f"store: {len(ids)} rows of {table} are not what was written, for example {ids[0]}; "
                    "repair forgets their files, and the next ingest reads them again"
                )
        if state.embedding is not None:
            _check_vectors(connection, state, report)
        for leg in store.legs(state):
            leg.verify(connection, state, report)
    return report


def _damaged_rows(connection: Connection, table: str) -> Iterator[tuple[int, StoredRow]]:
    """Yield (number, row) for rows with damaged text or metadata, made readable, with a hash that no text has."""
    # as bytes: a damaged text need not be UTF-8
    content = "CAST(text AS BLOB), CAST(metadata AS BLOB)"
    query = f"SELECT n, id, source, hash, {content} FROM {table} ORDER BY n"
    for n, key, source, digest, text_bytes, metadata_bytes in scan(connection, query):
        metadata = bytes(metadata_bytes).decode("utf-8", "replace")
        try:
            is_readable = isinstance(json.loads(metadata), dict)
        except (ValueError, RecursionError):
            is_readable = False
        if not is_readable:
            metadata = json.dumps({"source": source})
        if not is_readable or hashlib.sha256(text_bytes).digest() != digest:
            text = bytes(text_bytes).decode("utf-8", "replace")
            yield n, StoredRow(key, source, 0, text, metadata, b"damaged row %d" % n)


def _check_vectors(connection: Connection, state: IndexState, report: IndexReport) -> None:
    """Add to the report how many chunks have no vector, and how many vectors are damaged."""
    query = "SELECT count(*) FROM chunks LEFT JOIN vectors USING (n) WHERE vectors.n IS NULL"
    [(lacking,)] = connection.execute(query).fetchall()
    if lacking:
        report.problems.append(f"vectors: {lacking} rows have none")
    if damaged := len(list(_unsound_vectors(connection, state))):
        report.problems.append(f"vectors: {damaged} are damaged")
    report.checked["vectors"] = connection.execute("SELECT count(*) FROM vectors").fetchone()[0]


def _unsound_vectors(connection: Connection, state: IndexState) -> Iterator[int]:
    """Yield the numbers of rows whose vectors are of the wrong length, or not finite."""
    size = 4 * (state.dimension or 0)  # in bytes, of float32
    for n, blob in scan(connection, "SELECT n, vector FROM vectors"):
        if len(blob) != size or not np.isfinite(np.frombuffer(blob, "<f4")).all():
            yield n


def rebuild(store: Store, embeddings: Embeddings | None) -> list[str]:
    """Mark damaged rows, make missing vectors (with a model), rebuild search indexes; say in words what was done."""
    done: list[str] = []
    with store.write_lock:
        with store.writing() as connection:
            done += filter(None, [store.mend(connection)])  # "" if nothing was damaged
            state = store.state(connection)
            sources = _mark_damaged(connection, "chunks") | _mark_damaged(connection, "parents")
            connection.executemany("DELETE FROM sources WHERE source = ?", [(s,) for s in sorted(sources)])
            unsound = [(n,) for n in _unsound_vectors(connection, state)] if state.embedding else []
            connection.executemany("DELETE FROM vectors WHERE n = ?", unsound)
        if sources:
            done.append(f"{len(sources)} files with damaged chunks will be read again by the next ingest")
        if unsound:
            done.append(f"dropped {len(unsound)} damaged vectors")
        if state.embedding is not None and embeddings is not None:
            embedded = VectorFiller(store, embeddings, state.embedding).run()
            done += [f"embedded {embedded} texts again"] if embedded else []
        with store.writing() as connection:
            state = store.state(connection)
            done += filter(None, [leg.rebuild(connection, state) for leg in store.legs(state)])
    return done


def _mark_damaged(connection: Connection, table: str) -> set[str]:
    """Give damaged rows a hash that no text has, or the next ingest might keep them; return their sources."""
    damaged = list(_damaged_rows(connection, table))
    values = [(row.text, row.metadata, row.hash, n) for n, row in damaged]
    connection.executemany(f"UPDATE {table} SET text = ?, metadata = ?, hash = ? WHERE n = ?", values)
    return {row.source for _, row in damaged}
