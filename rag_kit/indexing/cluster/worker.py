"""What runs on workers: the parts of one run, which each keeps, and its tasks.

A task returns an error of the kit as its value: Dask would write the arguments of a task that raises, such as
passages, into the worker's log.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from distributed import WorkerPlugin, get_worker, secede

from rag_kit.errors import ClusterError, RagKitError, ReadError
from rag_kit.indexing.cluster.connecting import different, versions
from rag_kit.indexing.document_index.embedding import check_vectors
from rag_kit.indexing.ingestion.converting import Converter
from rag_kit.indexing.readers import register_reader
from rag_kit.models.clients import connections_of, embed_documents

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

    from rag_kit.indexing.files import SourceFile
    from rag_kit.indexing.ingestion.settings import SplitSettings
    from rag_kit.indexing.readers import ReadLimits
    from rag_kit.indexing.readers.registry import UserReader


@dataclass
class Parts:
    """What the tasks of one run need.

    Attributes:
        settings: How to split.
        limits: Caps for reading one file.
        readers: Readers of the caller, by pattern; ``registered``: those of `register_reader`.
        embeddings: The embedding model.
        llm: The chat model.
        folders: Files and folders that the caller named and sees.
        versions: What the client has.
    """

    settings: SplitSettings
    limits: ReadLimits | None
    readers: Mapping[str, UserReader]
    registered: Mapping[str, UserReader]
    embeddings: Embeddings | None
    llm: Any
    folders: Sequence[str]
    versions: tuple[str, str] = field(default_factory=versions)


class Keeper(WorkerPlugin):  # type: ignore[misc]
    """Keeps the parts of a run on a worker; Dask sends it to each worker once, also to those that come later."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts

    def setup(self, worker: Any) -> None:
        """Check that this worker can do the work."""
        self._lock = threading.Lock()
        self.model_lock = threading.Lock()
        self._idle: list[Converter] | None = []  # `None` when the run has ended
        if self.parts.versions != versions():
            raise ClusterError(different(worker.address, versions(), self.parts.versions))
        for folder in self.parts.folders:
            if not os.path.exists(folder):
                raise ClusterError(
                    f"The worker at {worker.address} does not see {folder}. Files must lie in a file system that all "
                    "machines share, at the same path."
                )
        for pattern, reader in self.parts.registered.items():
            register_reader(pattern, reader)

    def teardown(self, worker: Any) -> None:
        """End the reader processes."""
        with self._lock:
            idle, self._idle = self._idle or [], None
        for converter in idle:
            converter.__exit__(None, None, None)

    @contextmanager
    def converter(self) -> Iterator[Converter]:
        """A converter that no other thread has."""
        with self._lock:
            converter = self._idle.pop() if self._idle else None
        if converter is None:
            converter = Converter(self.parts.settings, self.parts.limits, self.parts.readers)
        try:
            yield converter
        finally:
            with self._lock:
                if self._idle is not None:
                    self._idle.append(converter)
                    converter = None
            if converter is not None:
                converter.__exit__(None, None, None)


def convert(run: str, file: SourceFile) -> Any:
    """The chunks of a file as `Converter.convert` gives them, or why there are none: an error and its cause."""
    path = Path(file.path)
    if not path.exists():
        return ReadError(
            f"{file.file}: the worker at {get_worker().address} does not see it at {path}. Files must lie in a file "
            "system that all machines share; or it was removed meanwhile."
        ), None
    try:
        with _keeper(run).converter() as converter:
            return converter.convert(file)
    except RagKitError as error:
        return error, error.__cause__ if isinstance(error, ReadError) else None


def embed(run: str, texts: list[str]) -> Any:
    """The vectors of texts as an array, or an error."""
    try:
        keeper = _keeper(run)
        model = keeper.parts.embeddings
        assert model is not None
        with _turn(model, keeper.model_lock):
            return check_vectors(embed_documents(model, texts), len(texts), None)
    except RagKitError as error:
        return error


def ask(run: str, prompt: Any, values: dict[str, Any], schema: Any) -> Any:
    """The reply of the chat model, or an error."""
    from rag_kit.models import structured_call

    try:
        llm = _keeper(run).parts.llm
        with _turn(llm, nullcontext()):
            return structured_call(llm, prompt, values, schema)
    except RagKitError as error:
        return error


def _turn(model: Any, lock: Any) -> Any:
    """The lock of a model that computes; one behind an endpoint waits beside the worker's threads instead."""
    if connections_of(model):
        secede()
        return nullcontext()
    return lock


def _keeper(run: str) -> Keeper:
    worker = get_worker()
    keeper = worker.plugins.get(run)
    if keeper is None or keeper.parts.versions != versions():
        raise ClusterError(
            f"The worker at {worker.address} came later and cannot do the work of this run (its log says why). "
            "All workers need the same Python, rag_kit and packages, and must see the files."
        )
    assert isinstance(keeper, Keeper)
    return keeper
