"""Files to groups of chunks that are embedded, and committed, together."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from langchain_core.documents import Document

from rag_kit.concurrency.pool import check_abandoned
from rag_kit.errors import InvalidInputError, ReadError
from rag_kit.indexing.correcting import apply_corrections
from rag_kit.indexing.document_index.folder import is_picture
from rag_kit.indexing.document_index.index import DocumentIndex
from rag_kit.indexing.document_index.rows import StoredRow, make_rows
from rag_kit.indexing.document_index.writing import Batch, Correction, SourceRecord
from rag_kit.indexing.files import SourceFile
from rag_kit.indexing.ingestion.converting import Converter, as_read_errors, file_hash, file_state
from rag_kit.indexing.ingestion.report import IngestReport, Progress
from rag_kit.indexing.ingestion.settings import IngestOptions
from rag_kit.indexing.searched import REPRESENTATION
from rag_kit.text import detect_language

if TYPE_CHECKING:
    from rag_kit.indexing.cluster.work import ClusterConverter

_MAX_FILES = 500  # of a group
# A file that was written this shortly before it was looked at may be written again within one tick of the
# clock of its file system, and keep its time; so its bytes are compared.
_TICK_NS = 2_000_000_000


@dataclass
class Group(Batch):
    """Files written in one transaction: newly read, or unchanged with a new time."""

    rows: list[StoredRow] = field(default_factory=list)
    whole: list[str] = field(default_factory=list)  # files that were read
    records: list[SourceRecord] = field(default_factory=list)
    chunks: list[Document] = field(default_factory=list)  # the rows as documents
    sources: list[str] = field(default_factory=list)  # of each chunk


@dataclass
class Grouping:
    """Looks at every file, reads those that changed, and groups them."""

    index: DocumentIndex
    files: Mapping[str, SourceFile]  # those to look at, by source
    converter: Converter | ClusterConverter
    records: Mapping[str, SourceRecord]  # what is remembered of files, by source
    key: str  # how files are read and split now; a file with another key is read again
    report: IngestReport
    progress: Progress
    size: int  # chunks of a group; the last file of one goes in whole
    options: IngestOptions
    corrections: Sequence[Correction] = ()  # chunks that were corrected by hand
    chinese_chunks: int = 0  # how many chunks an English embedding model cannot embed
    read_by_ocr: set[str] = field(default_factory=set)  # files of which text was read by OCR
    blank_pages: dict[str, int] = field(default_factory=dict)  # file -> its pages without text
    pictures: dict[str, set[str]] = field(default_factory=dict)  # file -> names of its pictures
    _originals: dict[bytes, str] = field(default_factory=dict)  # fingerprint -> what others may be copies of

    def groups(self) -> Iterator[Group]:
        """Yield groups of files: first those of which only the time is new, then those that changed, as read."""
        files, group, changed = self.files, Group(check=self.check), list[str]()
        for record in self.records.values():  # files that are not given now may be originals, too
            if record.source not in files and not record.original and os.path.exists(record.source):
                self._add_original(record)
        # files with chunks in the index come first (0), then new ones (1), then copies (2), which need their originals
        rank_of = {source: 2 if record.original else 0 for source, record in self.records.items()}
        for source in sorted(files, key=lambda source: rank_of.get(source, 1)):
            with self._report_failure(source):
                if not self._keep_unchanged(group, source):
                    changed.append(source)
        if group.records:  # of unchanged files with a new time
            yield group
            group = Group(check=self.check)
        self.converter.expect([files[source] for source in changed])
        for source in changed:
            with self._report_failure(source):
                self._read_file(group, source)
            if len(group.rows) >= self.size or len(group.whole) >= _MAX_FILES:
                yield group
                group = Group(check=self.check)
        if group.whole:
            yield group

    @contextmanager
    def _report_failure(self, source: str) -> Iterator[None]:
        """Add a ReadError of the block to the report as a failed file; with ``strict``, raise it."""
        check_abandoned()  # raises if the caller has stopped waiting for this thread
        try:
            yield
        except ReadError as error:
            file = self.files[source].file
            if self.options.strict:
                raise ReadError(f"{file}: {error} Nothing was changed, for strict was asked for.") from error
            earlier = " (its earlier version stays in the index)" if source in self.records else ""
            self.report.failed.append((file, f"{error}{earlier}"))
            self.progress.count()

    def _keep_unchanged(self, group: Group, source: str) -> bool:
        """Count a file as unchanged unless it must be read again; tell whether it was. A new time goes to the group."""
        record = self.records.get(source)
        if record is None or record.settings != self.key:
            return False
        original = self._originals.get(record.fingerprint, "")
        is_copy, was_copy = bool(original), bool(record.original)
        if is_copy != was_copy and not self._corrections_of(source):  # a corrected file is no copy
            return False
        self.progress.tell(self.files[source].file)
        record_now = self._unchanged_record(self.files[source], record)
        if record_now is None:
            return False
        if record_now is not record:
            group.records.append(record_now)
        if record.original:
            self.report.count_copy(source, original, self.files)
        else:
            self._add_original(record)
        self.report.unchanged += 1
        self.progress.count(record.size)
        return True

    def _read_file(self, group: Group, source: str) -> None:
        """Read and split a file into a group, with corrections; a copy of another file gives no chunks."""
        file = self.files[source]
        self.progress.tell(file.file)
        chunks, record, notes = self.converter.convert(file)
        self.report.remarks += [(file.file, note) for note in notes]
        record = replace(record, source=source)
        try:
            self._check_storable(source, chunks)
            if corrections := self._corrections_of(source):
                chunks, unplaced = apply_corrections(chunks, source, corrections)
                self.report.lost += [(file.file, lost.text, lost.corrected) for lost in unplaced]
            elif original := self._originals.get(record.fingerprint, ""):
                chunks, record = [], replace(record, original=original)
            rows = make_rows(chunks, source=source)
        except InvalidInputError as error:
            raise ReadError(str(error)) from error
        group.whole.append(source)
        group.records.append(record)
        group.rows += rows
        group.chunks += chunks
        group.sources += [source] * len(chunks)
        self._add_original(record)
        if getattr(self.index.embeddings, "english_only", False):
            self.chinese_chunks += sum(detect_language(row.text) == "zh" for row in rows)
        for metadata in (chunk.metadata for chunk in chunks):  # what the report tells of the file
            if metadata.get("ocr") is True:
                self.read_by_ocr.add(file.file)
            if is_picture(metadata.get("picture")):
                self.pictures.setdefault(file.file, set()).add(metadata["picture"])
            if pages := metadata.get("pages_without_text"):
                self.blank_pages[file.file] = pages

    def _check_storable(self, source: str, chunks: Sequence[Document]) -> None:
        """Raise InvalidInputError if PostgreSQL cannot hold a file's chunks, or their metadata would hide them."""
        max_source = self.index.max_source  # None if the index is not in PostgreSQL
        if max_source and len(source.encode()) > max_source:
            raise InvalidInputError(
                f"its path has more than {max_source} bytes, which PostgreSQL cannot index; move the file."
            )
        if max_source and any("\0" in f"{chunk.id}{chunk.page_content}" for chunk in chunks):
            raise InvalidInputError("its text holds NUL, which PostgreSQL refuses; leave it out.")
        if any(REPRESENTATION in chunk.metadata for chunk in chunks):
            raise InvalidInputError(
                f"its metadata have the field {REPRESENTATION!r}, which marks what was made of passages and hides "
                "it from searches; let the reader give the field another name."
            )

    def check(self, batch: Batch) -> None:
        """Remove files from a batch that other processes corrected or wrote meanwhile, or whose original is gone."""
        read = set(batch.whole)
        outdated = self._outdated_sources(batch, read)
        for source in sorted(outdated & read):
            with self._report_failure(source):  # which catches the error
                raise ReadError(
                    "another process has just corrected it or removed its original; ingest it again."
                )
        batch.rows = [row for row in batch.rows if row.source not in outdated]
        batch.parents = [row for row in batch.parents if row.source not in outdated]
        batch.records = [record for record in batch.records if record.source not in outdated]
        batch.whole = read - outdated

    def _outdated_sources(self, batch: Batch, read: set[str]) -> set[str]:
        """Return the files of a batch that other processes have overtaken; ``read`` are those that were read."""
        known = {correction for correction in self.corrections if correction.source in read}
        # files with a correction that was made or dropped since this ingest began (^: in one of the sets only)
        outdated = {correction.source for correction in known ^ set(self.index.corrections(read))}
        names = {name for record in batch.records for name in (record.source, record.original)}
        stored = self.index.source_records(names)
        kept = [record for record in batch.records if record.source not in outdated]
        after_write = stored | {record.source: record for record in kept}
        for record in batch.records:
            if record.source in read:
                # a copy needs its original with the same text; a file that is no copy is its own original
                original = after_write.get(record.original or record.source)
                is_valid = original is not None and original.fingerprint == record.fingerprint
            else:  # only its time is new
                is_valid = stored.get(record.source) == self.records[record.source]
            if not is_valid:
                outdated.add(record.source)
        return outdated

    def _corrections_of(self, source: str) -> list[Correction]:
        return [correction for correction in self.corrections if correction.source == source]

    def _add_original(self, record: SourceRecord) -> None:
        """Remember a file as the original of later ones with the same fingerprint."""
        if record.fingerprint:
            self._originals.setdefault(record.fingerprint, record.source)

    def _unchanged_record(self, file: SourceFile, record: SourceRecord) -> SourceRecord | None:
        """Return a file's record if it is unchanged, with the new time if that has changed; else ``None``."""
        with as_read_errors():
            seen_ns, (size, mtime_ns, _) = time.time_ns(), file_state(file.path)
            can_trust_time = record.mtime_ns + _TICK_NS < record.checked_ns and not self.options.rehash
            if can_trust_time and (size, mtime_ns) == (record.size, record.mtime_ns):
                return record
            if size == record.size and file_hash(file.path) == record.sha256:
                return replace(record, mtime_ns=mtime_ns, checked_ns=seen_ns)
        return None
