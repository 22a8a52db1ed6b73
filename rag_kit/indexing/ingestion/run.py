"""`ingest`: bring an index up to date with files and folders."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing, nullcontext
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING

from langchain_core.embeddings import Embeddings

from rag_kit.concurrency.pool import draw_ahead, map_ahead
from rag_kit.errors import InvalidInputError, ReadError
from rag_kit.indexing.document_index.index import DocumentIndex, Place, location_of
from rag_kit.indexing.document_index.rows import family_rows
from rag_kit.indexing.document_index.writing import Batch
from rag_kit.indexing.files import as_path
from rag_kit.indexing.ingestion.grouping import Group, Grouping
from rag_kit.indexing.ingestion.opening import list_files, make_representer, open_converter, open_index
from rag_kit.indexing.ingestion.report import IngestReport, Progress, first_names
from rag_kit.indexing.ingestion.settings import IngestOptions, SplitSettings, settings_for

if TYPE_CHECKING:
    from rag_kit.indexing.representing.representer import Representer

_GROUP = 256  # chunks that are embedded, and committed, together
_GROUP_KEYWORD = 2_000
_MAX_UNSAVED = 10_000  # so many new chunks, and a quarter of all, are saved before the end


def ingest(
    paths: Sequence[str | PathLike[str]] | str | PathLike[str],
    index: Place,
    *,
    embeddings: Embeddings | None = None,
    options: IngestOptions | None = None,
    prune: bool = False,
    dry_run: bool = False,
    on_progress: Callable[..., object] | None = None,
) -> IngestReport:
    """Read files and folders into an index, which is made if there is none; run it again to bring it up to date.

    A file is unchanged if its size and time are (or, when it was written within two seconds of being read, or
    with ``rehash``, if its SHA-256 is); then it is neither read nor embedded. Of a changed file, only chunks
    whose text is new to the index are embedded. Files are committed in groups: after a kill at any moment the
    index is whole, and the same call goes on where it stopped. While one group is written, the next ones are read
    and embedded on other threads, which call readers, models and ``on_progress``, the latter one call at a time.

    ``metadata["source"]`` of a chunk is its file's path below the folder that was given, or the name of a file that was
    given itself. The absolute path stays in the index, where ``DocumentIndex.sources`` lists it.

    Args:
        paths: Files and folders. A file that is reached by two of them is read once.
        index: A folder, or the URL of a PostgreSQL database (`DocumentIndex`).
        embeddings: Embedding model; ``None`` for keyword search only. An index that has no vectors is given them.
        options: How files are read, split and represented (`IngestOptions`); default: as recorded in the index.
        prune: Remove files from the index that vanished from the given paths.
        dry_run: Write nothing; the report says what would be done, and with how many calls and tokens.
        on_progress: Called as ``on_progress(name, files_done, files_in_all, bytes=bytes_done)`` as files begin and end.

    Returns:
        What happened; ``failed`` names the files that could not be read, ``remarks`` what of others was left out or
        guessed, and why.

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
    started, options = time.monotonic(), options or IngestOptions()
    listed = paths if isinstance(paths, Iterable) and not isinstance(paths, str) else [paths]
    roots = [as_path(path, "paths") for path in listed]
    if not roots:
        raise InvalidInputError("paths is empty; name files or folders.")
    if not isinstance(options, IngestOptions):
        raise InvalidInputError(f"options is {type(options).__name__}; give IngestOptions(...).")
    location = location_of(index)
    with open_index(roots, location, embeddings, options, dry_run=dry_run) as opened:
        representer = make_representer(opened, options, dry_run=dry_run)
        settings = settings_for(opened, options, representer.recorded if representer is not None else {})
        records = opened.source_records()
        files, refused, vanished = list_files(roots, location, list(records), prune=prune)
        if options.strict and refused:
            name, reason = refused[0]
            raise ReadError(f"{name}: {reason}. Nothing was changed, for strict was asked for.")
        report = IngestReport(notes=list(settings.notes), failed=refused, dry_run=dry_run)
        with (
            open_converter(opened, settings, options, dry_run=dry_run) as converter,
            opened.transaction() if options.strict and not dry_run else nullcontext(),
        ):
            grouping = Grouping(
                opened,
                files,
                converter,
                records,
                settings.key,
                report,
                Progress(on_progress, len(files)),
                size=_GROUP if opened.embeddings is not None else _GROUP_KEYWORD,
                options=options,
                corrections=opened.corrections(),
            )
            if not dry_run:
                if opened.settings != settings.values:
                    opened.record_settings(settings.values)
                if opened.embeddings is not None and (count := opened.add_vectors()):
                    report.embedded += count
                    report.notes.append(f"the index had no vectors; {count} chunks got theirs")
            _write_files(opened, representer, grouping)
            if prune:
                if vanished and not dry_run:
                    opened.delete_sources([*vanished])
                for name in vanished.values():
                    report.count(name, "removed")
            elif kept := [name for source, name in vanished.items() if not records[source].original]:
                report.notes.append(
                    f"gone, but still found: {first_names(kept)}; --prune (prune=True) removes them"
                )
            grouping.progress.tell("")  # no file is worked on any more
        if not dry_run:
            opened.flush()
        report.chunks = len(opened.passage_ids())
        report.embedding = opened.embedding or "none"
        report.notes += _closing_notes(grouping, settings, report.embedding)
    report.seconds = time.monotonic() - started
    return report


def _write_files(index: DocumentIndex, representer: Representer | None, grouping: Grouping) -> None:
    """Write every file that changed, while the next ones are read, represented and embedded; a dry run counts them."""
    report = grouping.report

    def represent(group: Group) -> Group:
        return group if representer is None else _represent(grouping, representer, group)

    with closing(draw_ahead(grouping.groups())) as groups, closing(map_ahead(represent, groups)) as batches:
        if report.dry_run:
            for group in batches:
                _count_files(grouping, group)
            return
        total, unsaved = index.stats()["chunks"], 0
        with closing(index.write_all(batches, max_concurrency=grouping.options.max_concurrency)) as written:
            for batch, changes in written:
                report.embedded += changes.embedded
                _count_files(grouping, batch)
                total += len(changes.added)
                unsaved += len(changes.added)
                if unsaved >= max(_MAX_UNSAVED, total // 4):  # reading unsaved chunks makes searches slow
                    index.flush()
                    unsaved = 0


def _count_files(grouping: Grouping, batch: Batch) -> None:
    """Count the files of a batch as added, updated or copies, and report the progress."""
    if not batch.whole:
        return  # its files only have a new time, and were counted as unchanged
    for record in batch.records:
        if record.original:
            grouping.report.count_copy(record.source, record.original, grouping.files)
        else:
            change = "updated" if record.source in grouping.records else "added"
            grouping.report.count(grouping.files[record.source].file, change)
        grouping.progress.count(record.size)
    grouping.progress.tell(grouping.files[batch.records[-1].source].file)


def _represent(grouping: Grouping, representer: Representer, group: Group) -> Group:
    """Add the representations of its chunks to a group, and return it; in a dry run, count what they would cost."""
    report = grouping.report
    if report.dry_run:
        report.count_representations(representer.plan(group.chunks, group.sources))
    elif representer.kinds:
        represented = representer.represent(group.chunks, group.sources, grouping.progress.calls)
        report.count_representations(represented)
        group.parents, group.rows = family_rows(represented.families, sources=group.sources)
        if represented.failed:
            failed_sources = {group.sources[number] for number in represented.failed}
            for number, record in enumerate(group.records):
                if record.source in failed_sources:  # no ingest has settings "": the next one reads it again
                    group.records[number] = replace(record, settings="")
            report.notes.append(
                f"degraded: the model gave no usable reply for {len(represented.failed)} of {len(group.chunks)} "
                "chunks, so that representations are missing; the next ingest asks again"
            )
    return group


def _closing_notes(grouping: Grouping, settings: SplitSettings, embedding: str) -> list[str]:
    """Make the report's last notes: an empty index, OCR, pictures, pages without text, Chinese for an English model."""
    notes = []
    if not grouping.report.chunks and not grouping.report.dry_run:
        notes.append("the index is empty: no file with text was found")
    if grouping.read_by_ocr:
        notes.append(f"read by OCR: {first_names(sorted(grouping.read_by_ocr))}")
    if grouping.pictures:
        counts = [f"{file}: {len(names)}" for file, names in grouping.pictures.items()]
        notes.append(f"pictures kept: {first_names(counts)}")
    if grouping.blank_pages:
        advice = "" if settings.ocr else "; scanned pages are read with OCR (ocr=True, --ocr on)"
        files = [f"{file}: {pages}" for file, pages in grouping.blank_pages.items()]
        notes.append(f"pages without text: {first_names(files)}{advice}")
    if grouping.chinese_chunks:
        notes.append(
            f"{embedding} is English only: Chinese chunks ({grouping.chinese_chunks}) can be found by keyword "
            "alone; for vectors name a multilingual embedding model, such as e5"
        )
    return notes
