"""Changes to the store: what to add, replace and remove, in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, field, fields
from typing import NamedTuple

from rag_kit.indexing.document_index.family_rows import FamilyRow, plan_families, write_families
from rag_kit.indexing.document_index.rows import Row, text_hash
from rag_kit.indexing.document_index.sql import Connection, chosen, replacing
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
        rows: To add, or to replace what has the same id.
        families: Documents with children, to add or to replace.
        whole: Sources of which ``rows`` are all there is; their other rows are removed.
        removed_ids: Rows to remove.
        removed_sources: Sources to remove with all their rows.
        records: What to remember about files.
        corrections: What to remember of chunks that are corrected by hand.
        uncorrected: Ids of chunks that are as they were read again.
    """

    rows: Sequence[Row] = ()
    families: Sequence[FamilyRow] = ()
    whole: Iterable[str] = ()
    removed_ids: Iterable[str] = ()
    removed_sources: Iterable[str] = ()
    records: Sequence[SourceRecord] = ()
    corrections: Sequence[Correction] = ()
    uncorrected: Iterable[str] = ()

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
    connection: Connection, hashes: Iterable[bytes], table: str = "vectors"
) -> dict[bytes, bytes]:
    """Vectors that a table has for texts of some hashes, by the hash of what is embedded: the text below its titles."""
    query = (
        f"SELECT c.text, c.metadata, v.vector FROM chunks c JOIN {table} v USING (n) WHERE c.hash IN ({{}})"
    )
    found = chosen(connection, query, hashes)
    return {text_hash(embedded_row(text, metadata)): vector for text, metadata, vector in found}


def apply(
    store: Store,
    batch: Batch,
    vectors: Mapping[bytes, bytes] | None,
    embed: Callable[[Mapping[bytes, str]], Mapping[bytes, bytes]],
) -> WriteReport:
    """Do it all in one transaction.

    Args:
        store: The store.
        batch: What to do; where nothing changes, the generation stays.
        vectors: Vectors new to the store, by the hash of what is embedded; ``None`` for an index without vectors.
        embed: Makes those of texts that were in the store when ``vectors`` were made, and are not any more.
    """
    report, rows = WriteReport(), batch.all_rows
    with store.writing() as connection:
        state = store.state(connection)
        generation = state.generation + 1
        sources = [*batch.whole, *batch.removed_sources]
        plain = [row.id for row in batch.rows]
        plan = plan_families(connection, batch.families, plain, batch.removed_ids, sources)
        query = "SELECT id, source, ordinal, metadata, hash FROM chunks WHERE id IN ({})"
        present = {key: rest for key, *rest in chosen(connection, query, (row.id for row in rows))}
        removed = _going(connection, sources, [*batch.removed_ids, *plan.stale], {row.id for row in rows})
        pool: dict[bytes, bytes] = {}
        if vectors is not None:
            pool = {**known_vectors(connection, {row.hash for row in rows}), **vectors}
            texts = (embedded_row(row.text, row.metadata) for row in rows)
            lacking = {key: text for text in texts if (key := text_hash(text)) not in pool}
            pool.update(embed(lacking) if lacking else {})
            report.embedded = len(vectors) + len(lacking)
        write_families(connection, plan, batch.families)
        report.parents = Changes(plan.added, plan.updated, plan.unchanged, list(plan.removed))
        _remove(connection, removed, generation)
        report.removed = list(removed)
        for row in rows:
            old = present.get(row.id)
            if old == [row.source, row.ordinal, row.metadata, row.hash]:
                report.unchanged.append(row.id)
                continue
            (report.added if old is None else report.updated).append(row.id)
            n = _put(connection, row, generation)
            embedded = embedded_row(row.text, row.metadata)
            if old is not None and old[3] == row.hash and embedded_row(row.text, old[2]) == embedded:
                continue  # its vector stays
            connection.execute("DELETE FROM vectors WHERE n = ?", (n,))
            if vectors is not None:
                vector = (n, pool[text_hash(embedded)], generation)
                connection.execute(replacing("vectors", "n", "vector", "generation"), vector)
        connection.executemany("DELETE FROM removed WHERE id = ?", [(key,) for key in report.added])
        if not state.derived and any(f'"{REPRESENTATION}"' in row.metadata for row in rows):
            store.set_meta(derived=True)
        _remember(connection, batch)
        if any(each.added or each.updated or each.removed for each in (report, report.parents)):
            store.set_meta(generation=generation)
    return report


def _going(
    connection: Connection, sources: Iterable[str], ids: Iterable[str], kept: Collection[str]
) -> dict[str, int]:
    """Id and row number of what goes, for its source or its id, and is not written anew."""
    query = "SELECT id, n FROM chunks WHERE {} IN ({{}}) ORDER BY source, ordinal"
    going = dict(chosen(connection, query.format("source"), set(sources)))
    going.update(chosen(connection, query.format("id"), ids))
    return {key: n for key, n in going.items() if key not in kept}


def _remove(connection: Connection, going: Mapping[str, int], generation: int) -> None:
    numbers = [(n,) for n in going.values()]
    connection.executemany("DELETE FROM chunks WHERE n = ?", numbers)
    connection.executemany("DELETE FROM vectors WHERE n = ?", numbers)
    connection.executemany(replacing("removed", "id", "generation"), [(key, generation) for key in going])
    connection.executemany(replacing("gone", "n", "generation"), [(*n, generation) for n in numbers])


def _put(connection: Connection, row: Row, generation: int) -> int:
    columns = ("source", "ordinal", "text", "metadata", "hash", "generation")
    values = (row.id, row.source, row.ordinal, row.text, row.metadata, row.hash, generation)
    return int(connection.execute(f"{replacing('chunks', 'id', *columns)} RETURNING n", values).fetchone()[0])


def _remember(connection: Connection, batch: Batch) -> None:
    for table, column, values in (
        ("sources", "source", batch.removed_sources),
        ("corrections", "source", batch.removed_sources),
        ("corrections", "id", batch.uncorrected),
    ):
        connection.executemany(f"DELETE FROM {table} WHERE {column} = ?", [(value,) for value in values])
    connection.executemany(replacing("corrections", *Correction._fields), batch.corrections)
    names = (each.name for each in fields(SourceRecord))
    connection.executemany(replacing("sources", *names), [astuple(record) for record in batch.records])
