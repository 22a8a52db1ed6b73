"""Changes to the store: what to add, replace and remove, in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, field, fields

from rag_kit.indexing.document_index.corrections import Correction, write_corrections
from rag_kit.indexing.document_index.families.rows import FamilyRow
from rag_kit.indexing.document_index.families.writing import Plan, plan_families, write_families
from rag_kit.indexing.document_index.rows import Row, text_hash
from rag_kit.indexing.document_index.sql import Connection, in_groups, marks, replacing
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
        original: Of a copy, which has no chunks: the file that is kept, as JSON.
    """

    source: str
    size: int
    mtime_ns: int
    checked_ns: int
    sha256: str
    settings: str
    fingerprint: bytes = b""
    original: str = ""


@dataclass
class Batch:
    """What one transaction shall do.

    Attributes:
        rows: To add, or to replace what has the same id.
        families: Documents with children, to add or to replace.
        whole: Sources of which ``rows`` are all there is; their other rows are removed.
        removed_ids: Rows to remove.
        removed_sources: Sources to remove with all their rows.
        records: What to remember about files.
        corrections: What to remember of chunks that are corrected by hand.
        uncorrected: Ids of chunks that are as they were read again.
        revise: Gives what to write instead, inside the transaction.
    """

    rows: Sequence[Row] = ()
    families: Sequence[FamilyRow] = ()
    whole: Iterable[str] = ()
    removed_ids: Iterable[str] = ()
    removed_sources: Iterable[str] = ()
    records: Sequence[SourceRecord] = ()
    corrections: Sequence[Correction] = ()
    uncorrected: Iterable[str] = ()
    revise: Callable[[Connection, Batch], Batch] | None = None

    @property
    def all_rows(self) -> list[Row]:
        """The rows, and those of the families' children."""
        return [*self.rows, *(child.row for family in self.families for child in family.children)]


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


def known_vectors(
    connection: Connection, hashes: Iterable[bytes], table: str = "vectors", *, titles: bool
) -> dict[bytes, bytes]:
    """Vectors that a table of the store has, by the hash of what is searched.

    Args:
        connection: Where to look.
        hashes: Of texts, without titles.
        table: The table.
        titles: Whether titles are searched with the texts.
    """
    found: dict[bytes, bytes] = {}
    for group in in_groups(hashes):
        query = (
            f"SELECT c.hash, c.text, c.metadata, v.vector FROM chunks c JOIN {table} v USING (n) "
            f"WHERE c.hash IN ({marks(group)})"
        )
        for digest, text, metadata, vector in connection.execute(query, group):
            found[text_hash(embedded_row(text, metadata, titles=True)) if titles else digest] = vector
    return found


def missing_texts(store: Store, rows: Sequence[Row], *, titles: bool) -> dict[bytes, str]:
    """The texts of rows that have no vector in the store yet, by their hash."""
    texts = [embedded_row(row.text, row.metadata, titles=titles) for row in rows]
    with store.looking() as connection:
        known = known_vectors(connection, {row.hash for row in rows}, titles=titles)
    return {key: text for text in texts if (key := text_hash(text)) not in known}


def apply(
    store: Store,
    batch: Batch,
    vectors: Mapping[bytes, bytes] | None,
    embed: Callable[[Mapping[bytes, str]], Mapping[bytes, bytes]],
) -> WriteReport:
    """Do it all in one transaction.

    Args:
        store: The store.
        batch: What to do.
        vectors: Vectors new to the store, by the hash of what is searched; ``None`` for an index without vectors.
        embed: Makes those of texts that were in the store when ``vectors`` were made, and are not any more.

    Returns:
        What changed. Where nothing did, the generation stays.
    """
    report = WriteReport()
    with store.writing() as connection:
        state = store.state(connection)
        generation = state.generation + 1
        plan = _plan(connection, batch)
        rows = batch.all_rows
        present = _present(connection, (row.id for row in rows))
        removed = _removed(connection, batch, rows, plan.stale)
        pool: dict[bytes, bytes] = {}
        if vectors is not None:
            known = known_vectors(connection, {row.hash for row in rows}, titles=state.titles)
            pool = {**known, **vectors}
            texts = [embedded_row(row.text, row.metadata, titles=state.titles) for row in rows]
            lacking = {key: text for text in texts if (key := text_hash(text)) not in pool}
            pool.update(embed(lacking) if lacking else {})
            report.embedded = len(vectors) + len(lacking)
        write_families(connection, plan, batch.families)
        report.parents = Changes(plan.added, plan.updated, plan.unchanged, list(plan.removed))
        if removed:
            _remove(connection, removed, generation)
            report.removed = list(removed)
        for row in rows:
            old = present.get(row.id)
            if old == (row.source, row.ordinal, row.metadata, row.hash):
                report.unchanged.append(row.id)
                continue
            searched = embedded_row(row.text, row.metadata, titles=state.titles)
            same = (
                old is not None
                and old[3] == row.hash
                and embedded_row(row.text, old[2], titles=state.titles) == searched
            )
            n = _put(connection, row, generation)
            if not same:
                connection.execute("DELETE FROM vectors WHERE n = ?", (n,))
                if vectors is not None:
                    vector = pool[text_hash(searched)]
                    connection.execute(
                        replacing("vectors", "n", "vector", "generation"),
                        (n, vector, generation),
                    )
            (report.added if old is None else report.updated).append(row.id)
        if report.added:
            connection.executemany("DELETE FROM removed WHERE id = ?", [(key,) for key in report.added])
        if not state.derived and any(f'"{REPRESENTATION}"' in row.metadata for row in rows):
            store.set_meta(derived=True)
        _remember(connection, batch)
        parents = report.parents
        if any(
            (report.added, report.updated, report.removed, parents.added, parents.updated, parents.removed)
        ):
            store.set_meta(generation=generation)
    return report


def _present(connection: Connection, ids: Iterable[str]) -> dict[str, tuple[str, int, str, bytes]]:
    found = {}
    for group in in_groups(ids):
        query = f"SELECT id, source, ordinal, metadata, hash FROM chunks WHERE id IN ({marks(group)})"
        for key, *rest in connection.execute(query, group):
            found[key] = (rest[0], rest[1], rest[2], rest[3])
    return found


def _plan(connection: Connection, batch: Batch) -> Plan:
    return plan_families(
        connection,
        batch.families,
        [row.id for row in batch.rows],
        batch.removed_ids,
        [*batch.whole, *batch.removed_sources],
    )


def _removed(
    connection: Connection, batch: Batch, rows: Sequence[Row], stale: Iterable[str]
) -> dict[str, int]:
    """Id and row number of what goes."""
    going: dict[str, int] = {}
    kept = {row.id for row in rows}
    for group in in_groups({*batch.whole, *batch.removed_sources}):
        query = f"SELECT id, n FROM chunks WHERE source IN ({marks(group)}) ORDER BY source, ordinal"
        going.update(row for row in connection.execute(query, group) if row[0] not in kept)
    for group in in_groups([*batch.removed_ids, *stale]):
        query = f"SELECT id, n FROM chunks WHERE id IN ({marks(group)})"
        going.update(row for row in connection.execute(query, group) if row[0] not in kept)
    return going


def _remove(connection: Connection, going: Mapping[str, int], generation: int) -> None:
    numbers = [(n,) for n in going.values()]
    connection.executemany("DELETE FROM chunks WHERE n = ?", numbers)
    connection.executemany("DELETE FROM vectors WHERE n = ?", numbers)
    connection.executemany(replacing("removed", "id", "generation"), [(key, generation) for key in going])
    connection.executemany(replacing("gone", "n", "generation"), [(*n, generation) for n in numbers])


def remove_rows(store: Store, ids: Sequence[str]) -> None:
    """Remove rows, with their places as children, whatever else is there; for repairs."""
    with store.writing() as connection:
        generation = store.state(connection).generation + 1
        going = _removed(connection, Batch(removed_ids=ids), (), ())
        _remove(connection, going, generation)
        connection.executemany("DELETE FROM children WHERE id = ?", [(key,) for key in ids])
        store.set_meta(generation=generation)


def _put(connection: Connection, row: Row, generation: int) -> int:
    cursor = connection.execute(
        "INSERT INTO chunks (id, source, ordinal, text, metadata, hash, generation) VALUES (?, ?, ?, ?, ?, ?, ?) "
        "ON CONFLICT (id) DO UPDATE SET source = excluded.source, ordinal = excluded.ordinal, "
        "text = excluded.text, metadata = excluded.metadata, hash = excluded.hash, "
        "generation = excluded.generation RETURNING n",
        (row.id, row.source, row.ordinal, row.text, row.metadata, row.hash, generation),
    )
    return int(cursor.fetchone()[0])


def _remember(connection: Connection, batch: Batch) -> None:
    write_corrections(connection, batch.corrections, batch.uncorrected, batch.removed_sources)
    connection.executemany(
        "DELETE FROM sources WHERE source = ?", [(source,) for source in batch.removed_sources]
    )
    connection.executemany(
        replacing("sources", *(each.name for each in fields(SourceRecord))),
        [astuple(record) for record in batch.records],
    )
