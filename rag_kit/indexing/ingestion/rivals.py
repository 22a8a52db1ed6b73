"""Copies among the files of several ingests at the same time, as one ingest of all of them would leave them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from rag_kit.indexing.document_index.sql import Connection, in_groups, marks
from rag_kit.indexing.document_index.writing import Batch, SourceRecord
from rag_kit.indexing.ingestion.copies import Originals

if TYPE_CHECKING:
    from rag_kit.indexing.document_index.index import DocumentIndex

_COLUMNS = "source, size, mtime_ns, checked_ns, sha256, settings, fingerprint, original, changed"


class Rivals:
    """Files that other processes have written to a database since this ingest began.

    Which of several files is kept was decided from what was there at the beginning. `revised` decides again, inside
    the transaction: of files that are copies of each other the one with the first name is kept.

    Args:
        index: An index in a database.
    """

    def __init__(self, index: DocumentIndex) -> None:
        self._originals = Originals()
        self._records: dict[str, SourceRecord] = {}
        with index.view() as (connection, _, _):
            self._upto = connection.execute("SELECT coalesce(max(changed), 0) FROM sources").fetchone()[0]

    def revised(self, connection: Connection, batch: Batch) -> Batch:
        """What to write instead of a batch, now that others have written."""
        self._look(connection)
        whole, own = set(batch.whole), {record.source for record in batch.records}
        records, copies = list[SourceRecord](), set[str]()
        for record in batch.records:
            found = None
            if record.source in whole and record.fingerprint:
                found = self._originals.find(record.fingerprint)
            if found is None or found[0] in own or not _is_kept(connection, found[0]):
                records.append(record)
            elif (other := self._records[found[0]]).source < record.source:
                copies.add(record.source)
                records.append(_copy(record, other, found[1]))
            else:
                whole.add(other.source)
                records += [record, _copy(other, record, found[1])]
        records = _of_kept(connection, records)
        return replace(
            batch,
            rows=[row for row in batch.rows if row.source not in copies],
            families=[family for family in batch.families if family.row.source not in copies],
            whole=sorted(whole),
            records=records,
        )

    def _look(self, connection: Connection) -> None:
        rows = connection.execute(f"SELECT {_COLUMNS} FROM sources WHERE changed > ?", (self._upto,))
        for *values, changed in rows:
            record = SourceRecord(*values)
            self._upto = max(self._upto, changed)
            self._records[record.source] = record
            self._originals.add(record.source, record.fingerprint)


def _is_kept(connection: Connection, source: str) -> bool:
    """Whether a file is there now, and is no copy."""
    row = connection.execute("SELECT original FROM sources WHERE source = ?", (source,)).fetchone()
    return bool(row == ("",))


def _copy(record: SourceRecord, original: SourceRecord, likeness: float) -> SourceRecord:
    return replace(record, original=json.dumps([original.source, original.sha256, likeness]), fingerprint=b"")


def _of_kept(connection: Connection, records: list[SourceRecord]) -> list[SourceRecord]:
    """The records; a copy of what has become a copy itself is one of the file that is kept."""
    kept = {record.source: record.original for record in records}
    names = {json.loads(record.original)[0] for record in records if record.original} - kept.keys()
    for group in in_groups(sorted(names)):
        query = f"SELECT source, original FROM sources WHERE source IN ({marks(group)})"
        kept.update(connection.execute(query, group).fetchall())
    return [
        replace(record, original=above)
        if record.original and (above := kept.get(json.loads(record.original)[0]))
        else record
        for record in records
    ]
