"""Open what an ingest needs: the index, created or for a dry run, and what converts files."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_kit.errors import DocumentIndexError, IndexMissingError, InvalidInputError, LockedError
from rag_kit.indexing.cluster.connecting import is_clustered
from rag_kit.indexing.document_index.folder import REPLIES, STORE
from rag_kit.indexing.document_index.index import DocumentIndex
from rag_kit.indexing.ingestion.converting import Converter
from rag_kit.indexing.ingestion.listing import check_paths
from rag_kit.indexing.readers.registry import all_readers

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

    from rag_kit.indexing.cluster.converting import ClusterConverter
    from rag_kit.indexing.ingestion.settings import SplitSettings
    from rag_kit.indexing.postgres.location import Location
    from rag_kit.indexing.readers.limits import ReadLimits
    from rag_kit.indexing.readers.registry import UserReader
    from rag_kit.indexing.representing.representer import Representer


@contextlib.contextmanager
def opened(
    paths: Sequence[Path], folder: Path | Location, embeddings: Embeddings | None, wait: float
) -> Iterator[tuple[DocumentIndex, bool]]:
    """Open the index, or create it; a created one that an error leaves empty is removed again."""
    existed, before = True, frozenset[str]()
    try:
        index, is_new = DocumentIndex.open(folder, mode="w", embeddings=embeddings, wait=wait), False
    except IndexMissingError:
        check_paths(paths, [])
        if isinstance(folder, Path):
            existed = folder.exists()
            if folder.is_dir():
                before = frozenset(path.name for path in folder.iterdir())
            # a store without its manifest is taken over, and its rows are not this run's to remove
            is_new = not os.path.lexists(folder / STORE)
            index = DocumentIndex.create(folder, embeddings=embeddings, wait=wait)
        else:
            index, is_new = _made_by_one(folder, embeddings)
    with index:
        try:
            yield index, is_new
        except BaseException:
            if is_new and _is_empty(index):
                index.withdraw(keep=before | {REPLIES})
                if not existed and isinstance(folder, Path):
                    with contextlib.suppress(OSError):  # somebody has put a file there meanwhile
                        folder.rmdir()
            raise


@contextlib.contextmanager
def opened_to_look(
    paths: Sequence[Path], folder: Path | Location, embeddings: Embeddings | None, wait: float
) -> Iterator[tuple[DocumentIndex, bool]]:
    """Open the index for reading; where there is none, an empty temporary one."""
    with contextlib.ExitStack() as stack:
        try:
            index, is_new = DocumentIndex.open(folder, embeddings=embeddings), False
        except IndexMissingError:
            check_paths(paths, [])
            elsewhere = stack.enter_context(tempfile.TemporaryDirectory(prefix="rag-kit-"))
            index, is_new = DocumentIndex.create(elsewhere, embeddings=embeddings), True
        yield stack.enter_context(index), is_new


def _made_by_one(location: Location, embeddings: Embeddings | None) -> tuple[DocumentIndex, bool]:
    """Create the index, or open the one that another process has created meanwhile."""
    try:
        return DocumentIndex.create(location, embeddings=embeddings), True
    except InvalidInputError:
        return DocumentIndex.open(location, mode="w", embeddings=embeddings), False


@contextlib.contextmanager
def opened_converter(
    index: DocumentIndex,
    representer: Representer | None,
    settings: SplitSettings,
    limits: ReadLimits | None,
    readers: Mapping[str, UserReader] | None,
    paths: Sequence[Path],
    workers: int | None,
    scheduler: Any,
) -> Iterator[Converter | ClusterConverter]:
    """What converts files: in this process, or on a cluster, on which then models are called, too."""
    if not is_clustered(workers, scheduler):
        with Converter(settings, limits, readers) as converter:
            yield converter
        return
    from rag_kit.indexing.cluster.connecting import connected
    from rag_kit.indexing.cluster.converting import ClusterConverter
    from rag_kit.indexing.cluster.work import ClusterEmbeddings, on_cluster
    from rag_kit.indexing.cluster.worker import Parts

    model, llm = index.embeddings, representer.llm if representer is not None else None
    there = [os.path.abspath(path) for path in paths if path.exists()]
    parts = Parts(settings, limits, all_readers(readers or {}), model, llm, there)
    with connected(workers, scheduler) as client, on_cluster(client, parts) as cluster:
        if model is not None:
            index.embeddings = ClusterEmbeddings(model, cluster)
        if representer is not None:
            representer.call_with(cluster.ask)
        with ClusterConverter(cluster) as clustered:
            yield clustered


def _is_empty(index: DocumentIndex) -> bool:
    """Whether the index has no rows; ``False`` where it cannot be read."""
    try:
        return not index.sources() and not index.ids()
    except (DocumentIndexError, LockedError):
        return False
