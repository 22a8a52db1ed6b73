"""Changes to the store: what to add, replace and remove, in one transaction."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, field, fields
from typing import NamedTuple

from rag_kit.errors import InvalidInputError
from rag_kit.indexing.document_index.rows import Row, text_hash
from rag_kit.indexing.document_index.state import Connection, select_in, upsert_statement
from rag_kit.indexing.document_index.store import Store
from rag_kit.indexing.searched import REPRESENTATION, embedded_row


@dataclass(frozen=True, slots=True)
class SourceRecord:
    """What a file looked like when it was read.

    Attributes:
        source: The file's absolute path.
        size: Bytes.
        mtime_ns: Time of its last change, in nanoseconds.
        checked_ns: When the file was looked at.
        sha256: Hash of its bytes.
        settings: How it was read and split, as JSON.
        fingerprint: What its copies are recognised by.
        original: Of a copy, which has no chunks: the file that is kept.
    """

    source: str
    size: int
    mtime_ns: int
    checked_ns: int
    sha256: str
    settings: str
    fingerprint: bytes = b""
    original: str = ""


class Correction(NamedTuple):
    """A chunk that was corrected by hand: what was read, and what shall stand there.

    Attributes:
        id: Its id, made from the text that was read.
        source: Its source.
        ordinal: Its place in the source.
        text: The text that was read.
        metadata: Its metadata then, as JSON.
        corrected: The text that stands in its place; ``None`` for a chunk that was taken out.
    """

    id: str
    source: str
    ordinal: int
    text: str
    metadata: str
    corrected: str | None


@dataclass
class Batch:
    """What one transaction shall do.

    Attributes:
        rows: To add, or to replace what has the same id; children come with their documents in `parents`.
        parents: Documents with children, to add or to replace; children that `rows` has not are removed.
        whole: Sources of which ``rows`` are all there is; their other rows are removed.
        removed_ids: Rows, or documents with children, to remove.
        removed_sources: Sources to remove with all their rows.
        records: What to remember about files.
        corrections: What to remember of chunks that are corrected by hand.
        uncorrected: Ids of chunks that are as they were read again.
    """

    rows: Sequence[Row] = ()
    parents: Sequence[Row] = ()
    whole: Iterable[str] = ()
    removed_ids: Sequence[str] = ()
    removed_sources: Iterable[str] = ()
    records: Sequence[SourceRecord] = ()
    corrections: Sequence[Correction] = ()
    uncorrected: Iterable[str] = ()


@dataclass
class Changes:
    """What a write changed, in ids.

    Attributes:
        added: New ones.
        updated: Those whose text or metadata changed.
        unchanged: Those that were there already.
        removed: Those that are gone.
    """

    added: list[str] = field(default_factory=list)
    updated: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)


@dataclass
class WriteReport(Changes):
    """What a write changed, in ids of rows; children are rows.

    Attributes:
        added: New rows.
        updated: Rows whose text or metadata changed.
        unchanged: Rows that were there already.
        removed: Rows that are gone.
        embedded: How many texts went through the embedding model.
        parents: What changed in ids of documents with children.
    """

    embedded: int = 0
    parents: Changes = field(default_factory=Changes)


def vectors_by_hash(
    connection: Connection, hashes: Iterable[bytes], table: str = "vectors"
) -> dict[bytes, bytes]:
    """Vectors that a table has for texts of some hashes, by the hash of what is embedded: the text below its titles."""
    query = (
        f"SELECT c.text, c.metadata, v.vector FROM chunks c JOIN {table} v USING (n) WHERE c.hash IN ({{}})"
    )
    rows = select_in(connection, query, hashes)
    return {text_hash(embedded_row(text, metadata)): vector for text, metadata, vector in rows}


def apply_batch(store: Store, batch: Batch, vectors: Mapping[bytes, bytes]) -> WriteReport:
    """Do it all in one transaction; where nothing changes, the generation stays.

    Args:
        store: The store.
        batch: What to do.
        vectors: Those of all rows, by the hash of what is embedded; empty for an index without vectors.
    """
    report = WriteReport()
    with store.writing() as connection:
        state = store.state(connection)
        generation = state.generation + 1
        sources = {*batch.whole, *batch.removed_sources}
        _refuse_clashes(connection, batch, sources)
        parents = _stored_rows(connection, "parents", batch.parents)
        leaving = _rows_to_remove(connection, "parents", batch.parents, source=sources, id=batch.removed_ids)
        query = "SELECT id, parent FROM chunks WHERE parent != '' AND parent IN ({})"
        children = dict(select_in(connection, query, [*parents, *leaving]))
        ids = [*batch.removed_ids, *children]
        removed = _rows_to_remove(connection, "chunks", batch.rows, source=sources, id=ids)
        report.removed = list(removed)
        _delete_chunks(connection, removed, generation)
        changed = _write_changed_rows(connection, batch.rows, report, vectors, generation)
        changed |= {children[key] for key in removed if key in children}
        _write_parents(connection, batch.parents, parents, leaving, changed, report.parents, generation)
        if not state.derived and any(f'"{REPRESENTATION}"' in row.metadata for row in batch.rows):
            store.set_meta(derived=True)
        _write_records(connection, batch)
        if any(part.added or part.updated or part.removed for part in (report, report.parents)):
            store.set_meta(generation=generation)
    return report


def _refuse_clashes(connection: Connection, batch: Batch, leaving_sources: Collection[str]) -> None:
    """Refuse ids of children, and those that would name both a chunk and a document with children."""
    plain = [row.id for row in batch.rows if not row.parent]
    query = "SELECT id, parent FROM chunks WHERE parent != '' AND id IN ({})"
    for child, parent in select_in(connection, query, [*plain, *batch.removed_ids]):
        raise InvalidInputError(
            f"{child!r} is a part of the document {parent!r} and cannot be written or removed alone; write or delete "
            "the document."
        )
    for table, how, ids in (
        ("parents", "with", plain),
        ("chunks", "without", [row.id for row in batch.parents]),
    ):
        for key, source in select_in(connection, f"SELECT id, source FROM {table} WHERE id IN ({{}})", ids):
            if source not in leaving_sources:
                raise InvalidInputError(
                    f"The id {key!r} is that of a document {how} children. Delete it first, or give another id."
                )


def _stored_rows(connection: Connection, table: str, rows: Sequence[Row]) -> dict[str, Row]:
    """The rows that a table has now under the ids of some rows, without their texts."""
    query = f"SELECT id, source, ordinal, '', metadata, hash, parent, place FROM {table} WHERE id IN ({{}})"
    return {row[0]: Row(*row) for row in select_in(connection, query, [row.id for row in rows])}


def _rows_to_remove(
    connection: Connection, table: str, written: Sequence[Row], **values: Iterable[str]
) -> dict[str, int]:
    """Id and row number of what goes, for its value in some columns, and is not written anew."""
    leaving: dict[str, int] = {}
    for column in values:
        query = f"SELECT id, n FROM {table} WHERE {column} IN ({{}}) ORDER BY source, ordinal"
        leaving.update(select_in(connection, query, values[column]))
    ids = {row.id for row in written}
    return {key: n for key, n in leaving.items() if key not in ids}


def _delete_chunks(connection: Connection, leaving: Mapping[str, int], generation: int) -> None:
    """Delete rows and their vectors, and note the removal for the legs."""
    numbers = [(n,) for n in leaving.values()]
    connection.executemany("DELETE FROM chunks WHERE n = ?", numbers)
    connection.executemany("DELETE FROM vectors WHERE n = ?", numbers)
    connection.executemany(
        "INSERT INTO removed (id, n, generation) VALUES (?, ?, ?)",
        [(key, n, generation) for key, n in leaving.items()],
    )


def _write_changed_rows(
    connection: Connection,
    rows: Sequence[Row],
    report: WriteReport,
    vectors: Mapping[bytes, bytes],
    generation: int,
) -> set[str]:
    """Write the rows that are new or differ, with their vectors; give back the ids of their documents."""
    changed, stored = set[str](), _stored_rows(connection, "chunks", rows)
    for row in rows:
        old = stored.get(row.id)
        if old == row._replace(text=""):
            report.unchanged.append(row.id)
            continue
        (report.added if old is None else report.updated).append(row.id)
        changed.add(row.parent)
        n = _upsert_row(connection, "chunks", row, generation)
        embedded = embedded_row(row.text, row.metadata)
        if old is not None and old.hash == row.hash and embedded_row(row.text, old.metadata) == embedded:
            continue  # its vector stays
        connection.execute("DELETE FROM vectors WHERE n = ?", (n,))
        if vectors:
            vector = (n, vectors[text_hash(embedded)], generation)
            connection.execute(upsert_statement("vectors", "n", "vector", "generation"), vector)
    return changed


def _write_parents(
    connection: Connection,
    parents: Sequence[Row],
    stored: Mapping[str, Row],
    leaving: Mapping[str, int],
    changed: Collection[str],
    report: Changes,
    generation: int,
) -> None:
    """Write documents with children; one whose children alone have changed counts as updated, too."""
    connection.executemany("DELETE FROM parents WHERE n = ?", [(n,) for n in leaving.values()])
    report.removed = list(leaving)
    for row in parents:
        old = stored.get(row.id)
        if old != row._replace(text=""):
            _upsert_row(connection, "parents", row, generation)
            (report.added if old is None else report.updated).append(row.id)
        else:
            (report.updated if row.id in changed else report.unchanged).append(row.id)


def _upsert_row(connection: Connection, table: str, row: Row, generation: int) -> int:
    statement = upsert_statement(table, *Row._fields, "generation")
    return int(connection.execute(f"{statement} RETURNING n", (*row, generation)).fetchone()[0])


def _write_records(connection: Connection, batch: Batch) -> None:
    """Write and remove the records of sources and of corrections."""
    for table, column, values in (
        ("sources", "source", batch.removed_sources),
        ("corrections", "source", batch.removed_sources),
        ("corrections", "id", batch.uncorrected),
    ):
        connection.executemany(f"DELETE FROM {table} WHERE {column} = ?", [(value,) for value in values])
    connection.executemany(upsert_statement("corrections", *Correction._fields), batch.corrections)
    names = (column.name for column in fields(SourceRecord))
    connection.executemany(upsert_statement("sources", *names), [astuple(record) for record in batch.records])
