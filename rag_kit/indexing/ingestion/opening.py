"""Opening of all that an ingest works with: files, the index, the representer and the converter."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langchain_core.embeddings import Embeddings

from rag_kit._redact import redact
from rag_kit.errors import IndexMissingError, InvalidInputError
from rag_kit.indexing.document_index.index import DocumentIndex
from rag_kit.indexing.document_index.store import RemoteLocation
from rag_kit.indexing.files import SourceFile, iter_files, printable_path
from rag_kit.indexing.ingestion.converting import Converter
from rag_kit.indexing.ingestion.settings import IngestOptions, SplitSettings
from rag_kit.indexing.readers.formats import all_readers

if TYPE_CHECKING:
    from rag_kit.indexing.cluster.work import ClusterConverter
    from rag_kit.indexing.representing.representer import Representer


def identity(path: Path) -> str:
    """Return a file's identity in the index; bytes in its name that are no UTF-8 become ``\\xNN``."""
    return printable_path(Path(os.path.realpath(path)).as_posix())


def in_scope(source: str, scopes: Sequence[str]) -> bool:
    """Tell whether a source is one of the scopes or lies in one.

    Example:
        >>> [in_scope("/docs/a.md", [scope]) for scope in ("/docs", "/docs/", "/doc", "/docs/a.md", "/")]
        [True, True, False, True, True]
    """
    return any(source == scope or source.startswith(scope.rstrip("/") + "/") for scope in scopes)


def check_paths(paths: Sequence[Path], known: Sequence[str]) -> None:
    """Raise InvalidInputError for a missing path, unless ``known`` sources say that it was ingested before."""
    for path in paths:
        if not path.exists() and not any(in_scope(source, [identity(path)]) for source in known):
            raise InvalidInputError(f"{redact(str(path))} does not exist. Name files or folders.")


def list_files(
    paths: Sequence[Path], folder: Path | RemoteLocation, known: Sequence[str], *, prune: bool
) -> tuple[dict[str, SourceFile], list[tuple[str, str]], dict[str, str]]:
    """List the files below some paths, without those in the index's folder; ``known`` are the sources in the index.

    Returns the files by identity, what was refused with the reason, and the names of known sources that have vanished.
    """
    check_paths(paths, known if prune else [])
    scopes = [identity(path) for path in paths]
    index_folder = [folder] if isinstance(folder, Path) else []
    listed, problems = iter_files([path for path in paths if path.exists()], exclude=index_folder)
    files: dict[str, SourceFile] = {}
    # by the path without its ending: of two copies "a.md" is read before "a (copy).md", and kept
    for file in sorted(listed, key=lambda file: os.path.splitext(file.path)):
        # names that are no UTF-8 must be text in messages and metadata; the path itself stays as it is
        files.setdefault(identity(file.path), replace(file, file=printable_path(file.file)))
    unreadable = [identity(problem.path) for problem in problems]  # files below these have not vanished
    vanished: dict[str, str] = {}
    for scope in scopes:
        for source in known:
            if in_scope(source, [scope]) and source not in files and not in_scope(source, unreadable):
                vanished[source] = source.removeprefix(scope).lstrip("/") or Path(source).name
    return files, [(problem.file, problem.reason) for problem in problems], vanished


@contextlib.contextmanager
def open_index(
    paths: Sequence[Path],
    folder: Path | RemoteLocation,
    embeddings: Embeddings | None,
    options: IngestOptions,
    *,
    dry_run: bool,
) -> Iterator[DocumentIndex]:
    """Open or create the index for writing; for a dry run, open it for reading, or create one in a temporary folder."""
    legs: Any = options.legs
    common: Any = {"embeddings": embeddings, "wait": options.wait}
    common |= {"sparse_encoder": options.sparse_encoder, "token_model": options.token_model}
    with contextlib.ExitStack() as stack:
        try:
            if dry_run:
                index = DocumentIndex.open(folder, embeddings=embeddings)
            else:
                index = DocumentIndex.open(folder, mode="w", legs=legs, **common)
        except IndexMissingError:
            check_paths(paths, [])
            if dry_run:
                folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rag-kit-")))
            index = _create_index(folder, legs, common)
        yield stack.enter_context(index)


def _create_index(folder: Path | RemoteLocation, legs: Any, common: dict[str, Any]) -> DocumentIndex:
    """Create an index; in a database, open it if another process has created it meanwhile."""
    try:
        return DocumentIndex.create(folder, legs=legs or (), **common)
    except InvalidInputError as refusal:
        if isinstance(folder, Path):
            raise
        try:
            return DocumentIndex.open(folder, mode="w", legs=legs, **common)
        except IndexMissingError:  # so it was refused for another reason
            raise refusal from None


def make_representer(index: DocumentIndex, options: IngestOptions, *, dry_run: bool) -> Representer | None:
    """Make a `Representer` for the representations in the options, else for those on record; ``None`` without any."""
    recorded, represent, replies = index.settings, options.represent, index.replies
    if represent is None and "represent" not in recorded:
        return None
    from rag_kit.indexing.representing.representer import Representer  # imports the models

    representer = Representer(
        recorded["represent"] if represent is None else represent,
        llm=options.llm,
        cache=None if dry_run and not replies.exists() else replies,
        max_concurrency=options.max_concurrency or 8,
    )
    model_before, model_now = recorded.get("represent_model", ""), representer.recorded["represent_model"]
    if represent is None and model_before != model_now:
        raise InvalidInputError(
            f"The representations of this index were made by {model_before!r}, and the chat model is {model_now!r} "
            f"now. Give that one (llm=, --model); or represent={recorded['represent']!r} (--represent) to have "
            f"{model_now!r} make them all again; or represent=[] (--represent none) to drop them."
        )
    return representer


@contextlib.contextmanager
def open_converter(
    index: DocumentIndex, settings: SplitSettings, options: IngestOptions, *, dry_run: bool
) -> Iterator[Converter | ClusterConverter]:
    """Open the converter of files to chunks, in this process or on a cluster, where a local model then runs, too."""
    is_clustered = options.workers is not None or options.scheduler is not None
    if settings.pictures and (is_clustered or not isinstance(index.folder, Path)):
        raise InvalidInputError(
            "pictures=True keeps pictures in the folder of an index, read by one process: give a folder without "
            "workers= and scheduler=, or leave the pictures out (pictures=False, --no-pictures)."
        )
    if not is_clustered:
        pictures = None
        if settings.pictures:
            from rag_kit.indexing.ingestion.pictures import Pictures  # imports the models

            pictures = Pictures(index, options.vision, dry_run=dry_run)
        with contextlib.closing(Converter(settings, options.limits, options.readers, pictures)) as converter:
            yield converter
        return
    from rag_kit.indexing.cluster.connecting import cluster_client
    from rag_kit.indexing.cluster.work import ClusterConverter, ClusterEmbeddings, on_cluster
    from rag_kit.indexing.cluster.worker import WorkerParts
    from rag_kit.models.runnables import connections_of

    # calls to an endpoint are mere waiting: they stay in this process
    model = None if connections_of(index.embeddings) else index.embeddings
    parts = WorkerParts(Converter, settings, options.limits, all_readers(options.readers or {}), model)
    with cluster_client(options.workers, options.scheduler) as client, on_cluster(client, parts) as cluster:
        if model is not None:
            index.embeddings = ClusterEmbeddings(model, cluster)
        with contextlib.closing(ClusterConverter(cluster)) as clustered:
            yield clustered
