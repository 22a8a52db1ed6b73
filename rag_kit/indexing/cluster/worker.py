"""Tasks of an ingest that run on workers, and the parts of one run that each worker keeps.

A task returns an error of the kit as its value: of one that raises, Dask logs the arguments, such as passages.
"""

from __future__ import annotations

import os
import platform
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from langchain_core.embeddings import Embeddings

from rag_kit import __version__
from rag_kit.errors import ConfigurationError, MissingExtraError, RagKitError, ReadError
from rag_kit.indexing.document_index.embedding import check_vectors
from rag_kit.indexing.files import SourceFile
from rag_kit.indexing.readers.formats import UserReader
from rag_kit.indexing.readers.limits import ReadLimits
from rag_kit.models.clients import embed_documents

try:
    from distributed import WorkerPlugin, get_worker
except ImportError as error:
    raise MissingExtraError("distributed", "Work on a Dask cluster") from error


def versions() -> str:
    """Return the versions that client and workers must have in common."""
    return f"Python {'.'.join(platform.python_version_tuple()[:2])} and rag_kit {__version__}"


@dataclass(eq=False)
class WorkerParts(WorkerPlugin):  # type: ignore[misc]
    """Parts that the tasks of a run need on each worker; Dask sends them once to every worker, also to later ones."""

    # makes a `Converter` of the next three
    make: Callable[[Any, ReadLimits | None, Mapping[str, UserReader] | None], Any]
    splitter: Any
    limits: ReadLimits | None = None
    readers: Mapping[str, UserReader] | None = None  # by pattern, also those of `register_reader`
    embeddings: Embeddings | None = None
    versions: str = field(default_factory=versions)  # of the client

    def setup(self, worker: Any) -> None:
        """Check that this worker has the same versions; Dask calls it."""
        self.model_lock = threading.Lock()
        self.idle: deque[Any] = deque()  # converters that no thread uses
        if self.versions != versions():
            raise ConfigurationError(
                f"The worker at {worker.address} has {versions()}, this process {self.versions}. Install the "
                "same on all machines."
            )

    def teardown(self, worker: Any) -> None:
        """Close the converters and their reader processes; Dask calls it when the run or the worker ends."""
        while self.idle:
            self.idle.pop().close()

    @contextmanager
    def borrow_converter(self) -> Iterator[Any]:
        """Lend a converter, which no other thread uses meanwhile, for a ``with`` block."""
        try:
            converter = self.idle.pop()  # without a lock: a deque's pop and append are atomic
        except IndexError:  # all are in use
            converter = self.make(self.splitter, self.limits, self.readers)
        try:
            yield converter
        finally:
            self.idle.append(converter)


def convert(run: str, file: SourceFile) -> Any:
    """Convert a file; return chunks, record and notes (see `Converter.convert`), or the error if it fails."""
    if not os.path.exists(file.path):
        return ReadError(
            f"the worker at {get_worker().address} does not see it at {file.path}. Files must lie in a file system "
            "that all machines share; or it was removed meanwhile."
        )
    try:
        with _parts_of_run(run).borrow_converter() as converter:
            return converter.convert(file)
    except RagKitError as error:
        return error


def embed(run: str, texts: list[str]) -> Any:
    """Embed texts, and return an array of shape (texts, dimension), or an error of the kit."""
    try:
        parts = _parts_of_run(run)
        assert parts.embeddings is not None
        with parts.model_lock:
            return check_vectors(embed_documents(parts.embeddings, texts), len(texts))
    except RagKitError as error:
        return error


def _parts_of_run(run: str) -> WorkerParts:
    """Return the parts that this worker keeps for a run; raise ConfigurationError if it refused them, or has none."""
    worker = get_worker()
    parts = worker.plugins.get(run)
    # Dask keeps a plugin whose `setup` failed, on a worker that came later
    if not isinstance(parts, WorkerParts) or parts.versions != versions():
        raise ConfigurationError(
            f"The worker at {worker.address}, which came later, cannot do the work of this run: its log says why."
        )
    return parts
