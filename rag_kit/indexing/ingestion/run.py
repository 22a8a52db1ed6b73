"""`ingest`: bring an index up to date with files and folders."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Any

from rag_kit.concurrency.pool import draw_ahead, map_ahead
from rag_kit.errors import InvalidInputError, ReadError
from rag_kit.indexing.cluster.connecting import is_clustered
from rag_kit.indexing.document_index.rows import Row, family_rows
from rag_kit.indexing.document_index.writing import Batch
from rag_kit.indexing.files import as_path
from rag_kit.indexing.ingestion.grouping import Group, Grouping
from rag_kit.indexing.ingestion.opening import list_files, open_converter, open_index, open_representer
from rag_kit.indexing.ingestion.report import IngestReport, Progress
from rag_kit.indexing.ingestion.settings import SplitSettings, settings_for
from rag_kit.indexing.postgres.location import MAX_SOURCE, Location, location_of

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

    from rag_kit.indexing.document_index.index import DocumentIndex
    from rag_kit.indexing.files import SourceFile
    from rag_kit.indexing.readers.formats import UserReader
    from rag_kit.indexing.readers.limits import ReadLimits
    from rag_kit.indexing.representing.representer import Representer
    from rag_kit.indexing.splitting.api import Splitter
    from rag_kit.indexing.splitting.named import Tokenizer

_GROUP = 256  # chunks that are embedded, and committed, together
_GROUP_KEYWORD = 2_000
_MAX_UNSAVED = 10_000  # so many new chunks, and a quarter of all, are saved before the end
_MAX_NAMES = 20  # files in one note


def ingest(
    paths: Sequence[str | PathLike[str]] | str | PathLike[str],
    folder: str | PathLike[str] | Location,
    *,
    embeddings: Embeddings | None = None,
    prune: bool = False,
    strict: bool = False,
    progress: Callable[..., object] | None = None,
    chunk_size: int | None = None,
    chunk_overlap: int | None = None,
    splitter: Splitter | str | None = None,
    tokenizer: Tokenizer | None = None,
    readers: Mapping[str, UserReader] | None = None,
    keep_duplicates: bool | None = None,
    wait: float = 0.0,
    limits: ReadLimits | None = None,
    ocr: str | None = None,
    rehash: bool = False,
    represent: Sequence[str] | str | None = None,
    llm: Any = None,
    max_concurrency: int | None = None,
    dry_run: bool = False,
    workers: int | None = None,
    scheduler: Any = None,
) -> IngestReport:
    """Read files and folders into an index, which is made if there is none; run it again to bring it up to date.

    A file is unchanged if its size and time are (or, when it was written within two seconds of being read, or
    with ``rehash``, if its SHA-256 is); then it is neither read nor embedded. Of a changed file, only chunks
    whose text is new to the index are embedded. Files are committed in groups: after a kill at any moment the
    index is whole, and the same call goes on where it stopped. While one group is written, the next ones are read
    and embedded on other threads, which call readers, models and ``progress``, the latter one call at a time.

    ``metadata["source"]`` of a chunk is its file's path below the folder that was given, or the name of a file that was
    given itself. The absolute path stays in the index, where ``DocumentIndex.sources`` lists it.

    Args:
        paths: Files and folders. A file that is reached by two of them is read once.
        folder: The index: a folder, or the URL of a PostgreSQL database (`DocumentIndex`).
        embeddings: Embedding model; ``None`` for keyword search only. An index that has no vectors is given them.
        prune: Remove files from the index that vanished from the given paths.
        strict: Stop at the first file that cannot be read; the call is one transaction, which a kill loses whole.
        progress: Called as ``progress(name, files_done, files_in_all, bytes=bytes_done)`` as files begin and end.
        chunk_size: Most characters of a chunk; default: as recorded, else 1000. Another size splits all files again.
        chunk_overlap: Characters repeated between chunks; default: as recorded, else 100.
        splitter: As for `split`; default: as recorded, else ``"structure"``. Another splits all files again.
        tokenizer: What counts, for ``splitter="tokens"``.
        readers: Readers of your own by pattern (``{"*.eml": UnstructuredEmailLoader}``), as for `register_reader`.
        keep_duplicates: ``True`` to take in copies of other files, ``False`` to keep one of those with the same text;
            the report lists the others. Default: as recorded, else one in each folder, for searches in a folder.
        wait: Seconds to wait for another writer.
        limits: Caps for reading one file.
        ocr: Languages of text to recognise in pictures and on PDF pages without text, as for `read`; ``""`` for none.
            Default: as recorded in the index. Another value reads all given files again.
        rehash: Compare the bytes of files, even where size and time are the same.
        represent: Further texts by which each chunk is found: ``"summary"``, ``"questions"``, ``"keywords"``, ``"qa"``,
            ``"tags"``, ``"translation"``, ``"children"``, ``"situation"`` (see ``representing.kinds.kinds_of``); ``[]``
            for none. Default: as recorded. Others, or another model or prompt, split all given files again. A model's
            replies are kept in the index, and none is asked for twice.
        llm: Chat model for these, default the configured one; the embedded one makes summaries, keywords, tags by rule.
        max_concurrency: Most calls of it at a time, default 8, and most requests to an embedding endpoint, default 4.
        dry_run: Write nothing; the report says what would be done, and with how many calls and tokens.
        workers: Processes of this machine that read, split and embed (this one calls endpoints); extra ``distributed``.
        scheduler: The address of a Dask scheduler (``"tcp://host:8786"``), or a ``distributed.Client``: its workers do
            that instead, which must see the files at the same paths. What Dask sends is pickled: let the scheduler
            speak TLS, or keep it private. Either way this process writes, and the index is that of one process.

    Returns:
        What happened; ``failed`` names the files that could not be read, and why.

    Raises:
        InvalidInputError: A path does not exist, a size is not allowed, the folder cannot hold an index.
        ReadError: With ``strict``, the first file that cannot be read; nothing was changed.
        IndexMismatchError: The index was built with another embedding model.
        LockedError: Another writer holds the index.
        ModelError: A model failed; what was committed before stays, and so do replies of the chat model.
        ConfigurationError: What ``represent`` names needs a language model, or a model cannot be sent to workers.
        ConfigurationError: No scheduler answers, or its workers cannot do the work; what was committed before stays.

    Example:
        >>> import pathlib, tempfile
        >>> base = pathlib.Path(tempfile.mkdtemp())
        >>> (base / "docs").mkdir()
        >>> _ = (base / "docs" / "pump.md").write_text("# Pump\\n\\nThe pump starts at 40 degrees.")
        >>> ingest(base / "docs", base / "index").added, ingest(base / "docs", base / "index").unchanged
        (1, 1)
    """
    started = time.monotonic()
    listed = paths if isinstance(paths, Iterable) and not isinstance(paths, str) else [paths]
    named = [as_path(path, "paths") for path in listed]
    if not named:
        raise InvalidInputError("paths is empty; name files or folders.")
    place = location_of(folder)
    is_clustered(workers, scheduler)  # refuses what cannot be before anything is opened
    with (
        open_index(named, place, embeddings, wait, dry_run=dry_run) as index,
        open_representer(index, represent, llm, max_concurrency, dry_run=dry_run) as representer,
    ):
        settings = settings_for(
            index,
            splitter=splitter,
            tokenizer=tokenizer,
            represent=representer.recorded if representer is not None else {},
            chunk_size=chunk_size,
            chunk_overlap=chunk_overlap,
            keep_duplicates=keep_duplicates,
            ocr=ocr,
        )
        records = index.source_records()
        listing = list_files(named, place, list(records) if prune else [])
        if strict and listing.problems:
            name, reason = listing.problems[0]
            raise ReadError(f"{name}: {reason}. Nothing was changed, for strict was asked for.")
        report = IngestReport(notes=list(settings.notes), failed=list(listing.problems), dry_run=dry_run)
        with (
            open_converter(index, settings, limits, readers, workers, scheduler) as converter,
            index.transaction() if strict and not dry_run else contextlib.nullcontext(),
        ):
            grouping = Grouping(
                index,
                converter,
                records,
                settings.key,
                report,
                Progress(progress, len(listing.files)),
                size=_GROUP if index.embeddings is not None else _GROUP_KEYWORD,
                strict=strict,
                rehash=rehash,
                corrections=index.corrections(),
                max_source=MAX_SOURCE if isinstance(place, Location) else None,
            )
            if not dry_run:
                if index.settings != settings.values:
                    index.record_settings(settings.values)
                _add_vectors(index, report)
            _write_files(index, representer, grouping, listing.files, max_concurrency)
            if listing.vanished and not dry_run:
                index.delete_sources(listing.vanished)
            for source in listing.vanished:
                report.count(source, "removed")
            grouping.progress.tell("")
        if not dry_run:
            index.flush()
        report.chunks = len(index.passage_ids())
        report.embedding = index.embedding or "none"
        report.notes += _closing_notes(grouping, settings, report.embedding)
    report.seconds = time.monotonic() - started
    return report


def _write_files(
    index: DocumentIndex,
    representer: Representer | None,
    grouping: Grouping,
    files: Mapping[str, SourceFile],
    max_concurrency: int | None,
) -> None:
    """Write every file that changed; the next ones are read, represented and embedded meanwhile."""
    report = grouping.report

    def count_files(batch: Batch) -> None:
        if batch.whole:  # else its files have a new time alone, and are counted
            for record in batch.records:
                if record.original:
                    report.count_copy(record.source, record.original, files)
                else:
                    what = "updated" if record.source in grouping.records else "added"
                    report.count(files[record.source].file, what)
                grouping.progress.count(record.size)
            grouping.progress.tell(files[batch.records[-1].source].file)

    with (
        closing(draw_ahead(grouping.groups(files))) as groups,
        closing(map_ahead(partial(_batch_of, grouping, representer), groups)) as batches,
    ):
        if report.dry_run:
            for batch in batches:
                count_files(batch)
            return
        total, unsaved = index.stats()["chunks"], 0
        with closing(index.write_all(batches, max_concurrency=max_concurrency)) as written:
            for batch, changes in written:
                report.embedded += changes.embedded
                count_files(batch)
                total, unsaved = total + len(changes.added), unsaved + len(changes.added)
                if unsaved >= max(_MAX_UNSAVED, total // 4):  # readers would be slow
                    index.flush()
                    unsaved = 0


def _batch_of(grouping: Grouping, representer: Representer | None, group: Group) -> Batch:
    """What the transaction of a group writes; of a dry run, what is counted."""
    report, rows, parents, failed = grouping.report, group.rows, list[Row](), set[str]()
    if representer is not None and report.dry_run:
        report.count_representations(representer.plan(group.chunks, group.sources))
    elif representer is not None and representer.kinds:
        represented = representer.represent(group.chunks, group.sources, grouping.progress.calls)
        report.count_representations(represented)
        parents, rows = family_rows(represented.families, sources=group.sources)
        failed = {group.sources[number] for number in represented.failed}
        if represented.failed:
            report.notes.append(
                f"degraded: the model gave no usable reply for {len(represented.failed)} of {len(group.chunks)} "
                "chunks, so that representations are missing; the next ingest asks again"
            )
    # other settings than any ingest has: such a file is read again
    new = [replace(record, settings="") if record.source in failed else record for record in group.new]
    sources = [record.source for record in new]
    return Batch(rows, parents, sources, records=[*new, *group.seen], check=grouping.check)


def _closing_notes(grouping: Grouping, settings: SplitSettings, embedding: str) -> list[str]:
    """Notes on an empty index, on pages read by OCR or without text, and on chunks that the model cannot embed."""
    notes = []
    if not grouping.report.chunks and not grouping.report.dry_run:
        notes.append("the index is empty: no file with text was found")
    if grouping.recognised:
        notes.append(f"read by OCR ({settings.ocr}): {_first_names(sorted(grouping.recognised))}")
    if grouping.empty:
        advice = "" if settings.ocr else "; scanned pages are read with OCR (ocr=, --ocr)"
        files = [f"{file}: {pages}" for file, pages in grouping.empty.items()]
        notes.append(f"pages without text: {_first_names(files)}{advice}")
    if grouping.chinese:
        notes.append(
            f"{embedding} is English only: Chinese chunks ({grouping.chinese}) can be found by keyword "
            "alone; for vectors name a multilingual embedding model"
        )
    return notes


def _first_names(files: list[str]) -> str:
    """The first files by name, and how many more there are."""
    more = f" and {len(files) - _MAX_NAMES} more files" if len(files) > _MAX_NAMES else ""
    return ", ".join(files[:_MAX_NAMES]) + more


def _add_vectors(index: DocumentIndex, report: IngestReport) -> None:
    """Give an index its vectors that was built without an embedding model."""
    if index.embeddings is not None and index.embedding is None and (count := index.add_vectors()):
        report.embedded += count
        report.notes.append(f"the index had no vectors; {count} chunks got theirs")
