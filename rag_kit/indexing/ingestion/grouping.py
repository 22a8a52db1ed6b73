"""Files to groups of chunks that are embedded, and committed, together."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING

from rag_kit.concurrency.budget import check_abandoned
from rag_kit.documents import clean_text
from rag_kit.documents.explanation import CORRECTED
from rag_kit.errors import InvalidInputError, ReadError
from rag_kit.indexing.correcting import correct
from rag_kit.indexing.document_index.rows import Row, make_rows
from rag_kit.indexing.document_index.writing import SourceRecord
from rag_kit.indexing.ingestion.listing import file_hash, look
from rag_kit.indexing.readers.parts import Unreadable
from rag_kit.indexing.searched import REPRESENTATION

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from langchain_core.documents import Document

    from rag_kit.indexing.cluster.converting import ClusterConverter
    from rag_kit.indexing.document_index.writing import Correction
    from rag_kit.indexing.files import SourceFile
    from rag_kit.indexing.ingestion.converting import Converter
    from rag_kit.indexing.ingestion.report import IngestReport, Progress

_FILES = 500


@dataclass
class Group:
    """Files that are written in one transaction.

    Attributes:
        rows: Chunks as they are stored.
        chunks: The same as documents.
        sources: The source of each chunk.
        new: Files that were read, with what is remembered of them.
        seen: Files that have a new time and the same bytes.
    """

    rows: list[Row] = field(default_factory=list)
    chunks: list[Document] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)
    new: list[tuple[SourceFile, SourceRecord]] = field(default_factory=list)
    seen: list[SourceRecord] = field(default_factory=list)


class Grouping:
    """Looks at every file, reads those that changed, and gathers them in groups.

    Args:
        converter: Reads and splits.
        records: What is remembered of files, by source; stays as an attribute, as does ``progress``.
        key: How files are read and split now; of a file with another key nothing is taken over.
        report: Gets the files that are unchanged, and those that cannot be read.
        progress: Gets the files that are begun.
        size: Chunks of a group; the last file of one goes in whole.
        strict: Raise for the first file that cannot be read.
        rehash: Compare bytes also where size and time are the same.
        corrections: Chunks that were corrected by hand.

    Attributes:
        unplaced: Chunks without offsets in their file, but for those corrected by hand.
        recognised: File -> its pages that were read by OCR; 0 stands for a picture.
        empty: File -> how many of its pages have no text.
    """

    def __init__(
        self,
        converter: Converter | ClusterConverter,
        records: Mapping[str, SourceRecord],
        key: str,
        report: IngestReport,
        progress: Progress,
        *,
        size: int,
        strict: bool,
        rehash: bool,
        corrections: Sequence[Correction] = (),
    ) -> None:
        self._converter = converter
        self.records = records
        self._key = key
        self._report = report
        self.progress = progress
        self._size = size
        self._strict = strict
        self._rehash = rehash
        self._corrections: dict[str, list[Correction]] = {}
        for one in corrections:
            self._corrections.setdefault(one.source, []).append(one)
        self._kept: dict[bytes, str] = {}  # fingerprint -> the file that others may be copies of
        self.unplaced = 0
        self.recognised: dict[str, set[int]] = {}
        self.empty: dict[str, int] = {}

    def groups(self, files: Mapping[str, SourceFile]) -> Iterator[Group]:
        """The groups of files, in their order.

        Raises:
            ReadError: A file cannot be read, and ``strict`` was asked for.
        """
        group, changed = Group(), list[str]()
        for record in self.records.values():
            if record.source not in files and not record.original and os.path.exists(record.source):
                self._keep(record)
        # what others may be copies of comes first: files that the index keeps, then new ones, then copies of before
        rank = {source: 2 * bool(record.original) for source, record in self.records.items()}
        order = sorted(files, key=lambda source: rank.get(source, 1))

        def to_read() -> Iterator[tuple[str, bool]]:
            self._converter.expect([files[source] for source in changed])
            for source in changed:
                yield source, True

        for source, read in chain(((s, False) for s in order), to_read()):
            check_abandoned()
            file = files[source]
            try:
                if read:
                    self._read(group, source, files)
                elif not self._is_unchanged(group, source, files):
                    changed.append(source)
            except ReadError as error:
                if self._strict:
                    raise ReadError(f"{error} Nothing was changed, for strict was asked for.") from error
                known = " (its earlier version stays in the index)" if source in self.records else ""
                self._report.failed.append((file.file, f"{_reason(error, file.file)}{known}"))
                self.progress.count()
            if len(group.rows) >= self._size or len(group.new) + len(group.seen) >= _FILES:
                yield group
                group = Group()
        if group.new or group.seen:
            yield group

    def _is_unchanged(self, group: Group, source: str, files: Mapping[str, SourceFile]) -> bool:
        record = self.records.get(source)
        if record is None or record.settings != self._key:
            return False
        original = self._kept.get(record.fingerprint, "")
        if bool(original) != bool(record.original) and not self._corrections.get(source):
            return False  # it is no copy any more, or another process has written the same text meanwhile
        self.progress.tell(files[source].file)
        if (same := self._same(files[source], record)) is None:
            return False
        if same is not record:
            group.seen.append(same)
        if record.original:
            self._report.count_copy(source, original, files)
        else:
            self._keep(record)
        self._report.unchanged += 1
        self.progress.count(same.size)
        return True

    def _read(self, group: Group, source: str, files: Mapping[str, SourceFile]) -> None:
        file = files[source]
        self.progress.tell(file.file)
        documents, sight, digest, mark = self._converter.convert(file)
        lost: list[Correction] = []
        try:
            if corrections := self._corrections.get(source, ()):
                documents, lost = correct(documents, source, corrections)
            rows = make_rows(documents, source=source)
            if any(REPRESENTATION in document.metadata for document in documents):
                raise InvalidInputError(
                    f"its metadata have the field {REPRESENTATION!r}, which marks what was made of passages and hides "
                    "it from searches; let the reader give the field another name."
                )
        except InvalidInputError as error:
            raise ReadError(f"{file.file}: {error}") from error
        record = SourceRecord(source, sight.size, sight.mtime_ns, sight.seen_ns, digest, self._key, mark)
        if corrections:
            self._report.lost += [(file.file, one.text, one.corrected) for one in lost]
        else:
            record = replace(record, original=self._kept.get(mark, ""))
        group.new.append((file, record))
        if record.original:
            self._report.count_copy(source, record.original, files)
            return
        self._keep(record)
        self.unplaced += sum(not {"start", CORRECTED} & document.metadata.keys() for document in documents)
        if pages := {
            int(one.metadata.get("page", 0)) for one in documents if one.metadata.get("ocr") is True
        }:
            self.recognised[file.file] = pages
        if documents and (empty := documents[0].metadata.get("pages_without_text")):
            self.empty[file.file] = empty
        group.rows += rows
        group.chunks += documents
        group.sources += [source] * len(documents)

    def _keep(self, record: SourceRecord) -> None:
        if record.fingerprint:
            self._kept.setdefault(record.fingerprint, record.source)

    def _same(self, file: SourceFile, record: SourceRecord) -> SourceRecord | None:
        """The record of a file that has not changed: the same, or with its new time; ``None`` if it has changed."""
        try:
            sight = look(file.path)
            if not self._rehash and sight.same_as_record(record):
                return record
            if sight.size == record.size and file_hash(file.path) == record.sha256:
                return replace(record, mtime_ns=sight.mtime_ns, checked_ns=sight.seen_ns)
        except OSError as error:
            raise ReadError(f"{file.file}: it cannot be read ({error.strerror or error}).") from error
        return None


def _reason(error: ReadError, name: str) -> str:
    """The reason in an error's message, which begins with the file's name; a name may hold a colon, too."""
    cause = error.__cause__
    if isinstance(cause, Unreadable):
        return (
            clean_text(f"{cause.reason}. {cause.advice}.") if cause.advice else clean_text(f"{cause.reason}.")
        )
    return str(error).removeprefix(f"{name}: ")
