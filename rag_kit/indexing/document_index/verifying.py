"""Checks of an index from end to end."""

from __future__ import annotations

import hashlib
import json

import numpy as np

from rag_kit.errors import IndexFormatError
from rag_kit.indexing.document_index.backend import Backend
from rag_kit.indexing.document_index.families.checking import family_problems
from rag_kit.indexing.document_index.meta import State
from rag_kit.indexing.document_index.report import IndexReport
from rag_kit.indexing.document_index.sql import Connection, scan
from rag_kit.indexing.document_index.store import Store

_LONE = "SELECT n FROM vectors v WHERE NOT EXISTS (SELECT 1 FROM chunks c WHERE c.n = v.n)"
# as bytes: a damaged text need not be UTF-8
_CONTENT = "CAST(text AS BLOB), CAST(metadata AS BLOB), hash FROM chunks"


def verify(backend: Backend) -> IndexReport:
    """Check store and legs of an index against each other."""
    report, store = IndexReport(checked={"chunks": 0}), backend.store
    if problem := backend.problem():
        report.problems.append(problem)
    with store.reading() as connection:
        try:
            state = store.state(connection)
        except IndexFormatError as error:
            report.problems.append(f"store: {error}")
            return report
        if bad := store.damage(connection):
            report.problems.append(f"store: {bad}")
            return report
        if not state.titles:
            report.notes.append(
                "titles and headings are not searched with the texts below them; rag-kit repair --titles yes changes "
                "that, and embeds these texts again"
            )
        damaged = _chunks(connection, report)
        if damaged:
            report.problems.append(
                f"store: {len(damaged)} rows are not what was written, for example {damaged[0]}; "
                "repair forgets their files, and the next ingest reads them again"
            )
        problems, parents = family_problems(connection)
        report.problems += problems
        if parents:
            report.checked["parents"] = parents
        _vectors(connection, state, report)
        for leg in backend.legs:
            leg.verify(connection, state, report)
    return report


def _chunks(connection: Connection, report: IndexReport) -> list[str]:
    """Ids of damaged rows."""
    rows = scan(connection, f"SELECT id, {_CONTENT} ORDER BY n")
    damaged = []
    for key, text, metadata, digest in rows:
        report.checked["chunks"] += 1
        if not _sound(text, metadata, digest):
            damaged.append(key)
    return damaged


def _sound(text: bytes, metadata: bytes, digest: bytes) -> bool:
    return hashlib.sha256(text).digest() == digest and _is_metadata(metadata)


def _is_metadata(metadata: bytes) -> bool:
    try:
        return isinstance(json.loads(metadata.decode()), dict)
    except (ValueError, RecursionError):
        return False


def damaged_sources(connection: Connection) -> list[str]:
    """Sources with rows that are not what was written."""
    rows = scan(connection, f"SELECT source, {_CONTENT}")
    return sorted({source for source, *rest in rows if not _sound(*rest)})


def invalidate_unsound(connection: Connection) -> None:
    """Make rows that are not what was written differ from what any file gives, so that they are replaced.

    Else a row whose text is damaged, but not its hash, would count as unchanged. The new hash is one that no
    text has, and another in each row; text and metadata become such as can be read.
    """
    rows = scan(connection, f"SELECT n, source, {_CONTENT}")
    unsound = [
        (n, source, text, metadata) for n, source, text, metadata, h in rows if not _sound(text, metadata, h)
    ]
    for n, source, text, metadata in unsound:
        plain = metadata.decode() if _is_metadata(metadata) else json.dumps({"source": source})
        connection.execute(
            "UPDATE chunks SET text = ?, metadata = ?, hash = ? WHERE n = ?",
            (text.decode("utf-8", "replace"), plain, b"damaged row %d" % n, n),
        )


def _vectors(connection: Connection, state: State, report: IndexReport) -> None:
    if state.embedding is None:
        return
    without = connection.execute(
        "SELECT count(*) FROM chunks LEFT JOIN vectors USING (n) WHERE vectors.n IS NULL"
    ).fetchone()[0]
    if without:
        report.problems.append(f"vectors: {without} rows have none")
    wrong = count = 0
    for (blob,) in scan(connection, "SELECT vector FROM vectors"):
        count += 1
        if len(blob) != 4 * (state.dimension or 0) or not np.isfinite(np.frombuffer(blob, "<f4")).all():
            wrong += 1
    if wrong:
        report.problems.append(f"vectors: {wrong} are damaged")
    report.checked["vectors"] = count


def drop_unsound_vectors(store: Store) -> int:
    """Remove vectors that are damaged or belong to no row, so that they are made again."""
    with store.writing() as connection:
        dimension = store.state(connection).dimension or 0
        bad = [
            (n,)
            for n, blob in scan(connection, "SELECT n, vector FROM vectors")
            if len(blob) != 4 * dimension or not np.isfinite(np.frombuffer(blob, "<f4")).all()
        ]
        bad += connection.execute(_LONE).fetchall()
        connection.executemany("DELETE FROM vectors WHERE n = ?", bad)
    return len(bad)
