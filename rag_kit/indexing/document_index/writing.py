"""Changes to the store: what to add, replace and remove, in one transaction."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, field, fields
from typing import NamedTuple, TypeAlias

from rag_kit.errors import InvalidInputError
from rag_kit.indexing.document_index.rows import StoredRow, chunk_id, text_hash
from rag_kit.indexing.document_index.state import Connection, IndexState, select_in, upsert_statement
from rag_kit.indexing.document_index.store import Store
from rag_kit.indexing.searched import REPRESENTATION, embedded_row


@dataclass(frozen=True, slots=True)
class SourceRecord:
    """Record of a file as it was when it was read."""

    source: str  # the file's absolute path
    size: int  # in bytes
    mtime_ns: int  # when it was changed last
    checked_ns: int  # when it was looked at
    sha256: str  # of its bytes
    settings: str  # how it was read and split, as JSON
    fingerprint: bytes = b""  # what its copies are recognised by
    original: str = ""  # of a copy, which has no chunks: the file that is kept


class Correction(NamedTuple):
    """A chunk that was corrected by hand: what was read, and what shall stand there."""

    id: str  # made from the text that was read
    source: str
    ordinal: int  # its place in the source
    text: str  # as it was read
    metadata: str  # as JSON, when it was read
    corrected: str | None  # what stands in its place; None for a chunk that was taken out


@dataclass
class Batch:
    """Changes to be made in one transaction."""

    rows: Sequence[StoredRow] = ()  # to add or replace, by id; the documents of children are in `parents`
    parents: Sequence[StoredRow] = ()  # documents to add or replace; children not in `rows` are removed
    whole: Iterable[str] = ()  # sources of which `rows` are all there is; their other rows are removed
    removed_ids: Sequence[str] = ()  # of rows, or of documents with children
    removed_sources: Iterable[str] = ()  # removed with all their rows
    records: Sequence[SourceRecord] = ()  # what to remember about files
    corrections: Sequence[Correction] = ()  # what to remember of chunks that are corrected by hand
    uncorrected: Iterable[str] = ()  # ids of chunks that are as they were read again
    #: Called inside the transaction: takes out what others have overtaken since the batch was made, or raises.
    check: Callable[[Batch], object] = lambda batch: None


@dataclass
class Changes:
    """Ids that a write added, updated or deleted."""

    added: list[str] = field(default_factory=list)
    updated: list[str] = field(default_factory=list)  # text or metadata changed
    unchanged: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    #: Metadata fields, other than places in a text, in which documents with made ids differ from those they replaced.
    replaced_fields: set[str] = field(default_factory=set, repr=False)


@dataclass
class WriteReport(Changes):
    """Report of a write, in ids of rows; children are rows, too."""

    embedded: int = 0  # how many texts went through the embedding model
    parents: Changes = field(default_factory=Changes)  # in ids of documents with children


def vectors_by_hash(
    connection: Connection, hashes: Iterable[bytes], table: str = "vectors"
) -> dict[bytes, bytes]:
    """Return the vectors of chunks with some text hashes, by the hash of their embedded text (which has titles)."""
    columns = "c.text, c.metadata, v.vector"
    query = f"SELECT {columns} FROM chunks c JOIN {table} v USING (n) WHERE c.hash IN ({{}})"
    rows = select_in(connection, query, hashes)
    return {text_hash(embedded_row(text, metadata)): vector for text, metadata, vector in rows}


def apply_batch(
    store: Store, connection: Connection, state: IndexState, batch: Batch, vectors: Mapping[bytes, bytes]
) -> WriteReport:
    """Make the changes of a batch in the open write transaction; if it changes anything, it is a new generation.

    `vectors` has the vector of each row, by the hash of the row's embedded text; empty for an index without vectors.
    """
    report, generation = WriteReport(), state.generation + 1
    sources = {*batch.whole, *batch.removed_sources}  # of rows to remove, unless they are written anew
    _refuse_clashes(connection, batch, sources)
    removed_parents = _rows_to_remove(connection, "parents", batch.parents, sources, batch.removed_ids)
    query = "SELECT id, parent FROM chunks WHERE parent != '' AND parent IN ({})"
    # children of documents that are replaced or removed; a child that is written again is not removed below
    parent_of = dict(select_in(connection, query, [*(row.id for row in batch.parents), *removed_parents]))
    chunk_ids = [*batch.removed_ids, *parent_of]
    removed_chunks = _rows_to_remove(connection, "chunks", batch.rows, sources, chunk_ids)
    report.removed, report.parents.removed = list(removed_chunks), list(removed_parents)
    _delete_chunks(connection, removed_chunks, generation)
    connection.executemany("DELETE FROM parents WHERE n = ?", [(n,) for n in removed_parents.values()])
    written = _write_rows(connection, "chunks", batch.rows, report, generation)
    _write_vectors(connection, written, vectors, generation)
    _write_rows(connection, "parents", batch.parents, report.parents, generation)
    # a document whose children alone have changed counts as updated, too
    changed = {row.parent for row, _, _ in written}
    changed |= {parent_of[key] for key in removed_chunks if key in parent_of}
    report.parents.updated += [key for key in report.parents.unchanged if key in changed]
    report.parents.unchanged = [key for key in report.parents.unchanged if key not in changed]
    if not state.derived and any(f'"{REPRESENTATION}"' in row.metadata for row in batch.rows):
        store.set_meta(derived=True)  # from now on, searches leave out what was made of passages
    _write_records(connection, batch)
    if any(changes.added or changes.updated or changes.removed for changes in (report, report.parents)):
        store.set_meta(generation=generation)
    return report


def _refuse_clashes(connection: Connection, batch: Batch, removed_sources: Collection[str]) -> None:
    """Raise InvalidInputError for the id of a child, and for an id of both a chunk and a document with children."""
    chunk_ids = [row.id for row in batch.rows if not row.parent]
    query = "SELECT id, parent FROM chunks WHERE parent != '' AND id IN ({})"
    clash = next(select_in(connection, query, [*chunk_ids, *batch.removed_ids]), None)
    if clash is not None:
        child, parent = clash
        raise InvalidInputError(
            f"{child!r} is a part of the document {parent!r} and cannot be written or removed alone; write or delete "
            "the document."
        )
    parent_ids = [row.id for row in batch.parents]
    for table, how, ids in (("parents", "with", chunk_ids), ("chunks", "without", parent_ids)):
        for key, source in select_in(connection, f"SELECT id, source FROM {table} WHERE id IN ({{}})", ids):
            if source not in removed_sources:
                raise InvalidInputError(
                    f"The id {key!r} is that of a document {how} children. Delete it first, or give another id."
                )


def _rows_to_remove(
    connection: Connection, table: str, kept: Sequence[StoredRow], sources: Iterable[str], ids: Iterable[str]
) -> dict[str, int]:
    """Return the rows of some sources, and those with some ids, that are not among the kept: id -> row number."""
    number_of: dict[str, int] = {}
    for column, values in (("source", sources), ("id", ids)):
        query = f"SELECT id, n FROM {table} WHERE {column} IN ({{}}) ORDER BY source, ordinal"
        number_of.update(select_in(connection, query, values))
    for row in kept:
        number_of.pop(row.id, None)
    return number_of


def _delete_chunks(connection: Connection, number_of: Mapping[str, int], generation: int) -> None:
    """Delete rows (id -> number) and their vectors, and record them as removed, for the search indexes to follow."""
    numbers = [(n,) for n in number_of.values()]
    connection.executemany("DELETE FROM chunks WHERE n = ?", numbers)
    connection.executemany("DELETE FROM vectors WHERE n = ?", numbers)
    removed = [(key, n, generation) for key, n in number_of.items()]
    connection.executemany("INSERT INTO removed (id, n, generation) VALUES (?, ?, ?)", removed)


#: A row that was written, what it replaced (without its text), and its number.
_Written: TypeAlias = tuple[StoredRow, StoredRow | None, int]


def _write_rows(
    connection: Connection, table: str, rows: Sequence[StoredRow], report: Changes, generation: int
) -> list[_Written]:
    """Write the rows that are new or differ from those in a table; add all to the report, return those written."""
    query = f"SELECT id, source, ordinal, '', metadata, hash, parent, place FROM {table} WHERE id IN ({{}})"
    stored = {row[0]: StoredRow(*row) for row in select_in(connection, query, [row.id for row in rows])}
    statement = f"{upsert_statement(table, *StoredRow._fields, 'generation')} RETURNING n"
    written = []
    for row in rows:
        old = stored.get(row.id)
        if old == row._replace(text=""):  # the hash stands for the text
            report.unchanged.append(row.id)
            continue
        changed_ids = report.added if old is None else report.updated
        changed_ids.append(row.id)
        [(n,)] = connection.execute(statement, (*row, generation)).fetchall()
        written.append((row, old, n))
        # an id made from source and text may be that of another document, as of another tenant, replaced by mistake
        if old is not None and row.id == chunk_id(row.source, row.text, 0):
            before, after = json.loads(old.metadata), json.loads(row.metadata)
            differing = {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
            report.replaced_fields |= differing - {"chunk", "start", "end"}
    return written


def _write_vectors(
    connection: Connection, written: Iterable[_Written], vectors: Mapping[bytes, bytes], generation: int
) -> None:
    """Write the vectors of written rows; a row whose embedded text is the same as before keeps its vector."""
    texts: dict[int, str] = {}  # embedded texts that are new, by row number
    for row, old, n in written:
        text = embedded_row(row.text, row.metadata)
        if old is None or old.hash != row.hash or embedded_row(row.text, old.metadata) != text:
            texts[n] = text
    connection.executemany("DELETE FROM vectors WHERE n = ?", [(n,) for n in texts])
    if vectors:
        rows = [(n, vectors[text_hash(text)], generation) for n, text in texts.items()]
        connection.executemany(upsert_statement("vectors", "n", "vector", "generation"), rows)


def _write_records(connection: Connection, batch: Batch) -> None:
    for table, column, values in (
        ("sources", "source", batch.removed_sources),
        ("corrections", "source", batch.removed_sources),
        ("corrections", "id", batch.uncorrected),
    ):
        connection.executemany(f"DELETE FROM {table} WHERE {column} = ?", [(value,) for value in values])
    connection.executemany(upsert_statement("corrections", *Correction._fields), batch.corrections)
    names = (column.name for column in fields(SourceRecord))
    connection.executemany(upsert_statement("sources", *names), [astuple(record) for record in batch.records])
