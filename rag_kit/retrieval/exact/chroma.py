"""Read a Chroma collection into memory, and see whether it has changed since."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from langchain_core.documents import Document
from langchain_core.vectorstores import VectorStore

from rag_kit.documents import Filter
from rag_kit.documents.columns import MetadataColumns
from rag_kit.errors import InvalidInputError
from rag_kit.indexing.store_filters import is_chroma
from rag_kit.retrieval.exact.nearest import NearestVectors

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

_PAGE = 2_000
_FILES = ("chroma.sqlite3", "chroma.sqlite3-wal", "chroma.sqlite3-journal")
# Two writes within one step of a file system's clock leave the same time: a file that young proves nothing.
_STEP = 0.1
_COARSE_STEP = 2.5  # where times are whole seconds


@dataclass(frozen=True)
class Snapshot:
    """A collection as it was read: its rows, in the collection's order."""

    ids: Sequence[str]
    texts: Sequence[str | None]
    metadata: Sequence[Mapping[str, Any]]
    nearest: NearestVectors
    columns: MetadataColumns

    def search(self, vectors: Any, k: int, where: Filter | None) -> list[list[tuple[Document, float]]]:
        """The k nearest rows of each vector that pass the filter, as fresh documents with distances.

        As in LangChain, a row without a text takes its place among the k and is then left out.
        """
        mask = self.columns.mask(where) if where else None
        return [
            [(self.document(row), distance) for row, distance in found if self.texts[row] is not None]
            for found in self.nearest.search(vectors, k, mask)
        ]

    def document(self, row: int) -> Document:
        """One row as a document of its own."""
        metadata = {
            key: list(value) if isinstance(value, list) else value
            for key, value in self.metadata[row].items()
        }
        return Document(page_content=self.texts[row] or "", metadata=metadata, id=self.ids[row])


class ChromaReader:
    """Reads the collection of a LangChain Chroma store.

    An embedded collection on disk is known to be unchanged by the times and sizes of its files. They are never
    opened here: closing a file would drop the locks that Chroma holds on it in this process.
    """

    def __init__(self, store: VectorStore) -> None:
        if not is_chroma(store):
            raise InvalidInputError(
                f"vectorstore is {type(store).__name__}; exact search in memory reads LangChain's Chroma."
            )
        self._store = cast("Any", store)
        settings: Any = self._store._client.get_settings()
        self._folder = Path(settings.persist_directory).resolve() if settings.is_persistent else None

    @property
    def tells_changes(self) -> bool:
        """Whether a change can be seen without reading the collection."""
        return self._folder is not None

    def count(self) -> int:
        """Rows in the collection."""
        return int(self._store._collection.count())

    def identity(self) -> Hashable:
        """Another one once the collection was dropped and made again."""
        return str(self._store._collection.id)

    def version(self) -> tuple[Hashable, ...]:
        """Another one after each write, unless that came within a step of the clock (``settled``)."""
        assert self._folder is not None
        stamps: list[Hashable] = [self.identity()]
        for name in _FILES:
            try:
                found = (self._folder / name).stat()
                stamps.append((found.st_mtime_ns, found.st_size, found.st_ino))
            except FileNotFoundError:
                stamps.append(None)
        return tuple(stamps)

    @staticmethod
    def unsettled_seconds(version: tuple[Hashable, ...]) -> float:
        """How long to wait until a further write is sure to show; 0 if it is."""
        now, wait = time.time(), 0.0
        for stamp in version:
            if isinstance(stamp, tuple):
                written = stamp[0] / 1e9
                step = _COARSE_STEP if stamp[0] % 1_000_000_000 == 0 else _STEP
                if abs(now - written) <= step:
                    wait = max(wait, written + step - now)
        return wait

    def space(self) -> Any:
        """The collection's distance."""
        configuration = self._store._collection.configuration
        settings = configuration.get("hnsw") or configuration.get("spann") or {}
        return settings.get("space") or "l2"

    def read(self, max_bytes: int) -> Snapshot:
        """Read all rows.

        Raises:
            InvalidInputError: If they take more than ``max_bytes``.
        """
        import numpy as np

        ids: list[str] = []
        texts: list[str | None] = []
        metadata: list[Mapping[str, Any]] = []
        vectors: list[Any] = []
        size, count = 0, self.count()
        while len(ids) % _PAGE == 0:
            page = self._store._collection.get(
                limit=_PAGE, offset=len(ids), include=["embeddings", "documents", "metadatas"]
            )
            if not page["ids"]:
                break
            vectors.append(np.asarray(page["embeddings"], dtype=np.float32))
            ids += page["ids"]
            texts += page["documents"]
            metadata += [row or {} for row in page["metadatas"]]
            size += vectors[-1].nbytes + sum(map(_size_of, page["ids"], page["documents"], page["metadatas"]))
            least = max(size, count * vectors[0].shape[1] * 4)
            if least > max_bytes:
                raise InvalidInputError(
                    f"The collection ({count:,} rows) takes more than max_bytes={max_bytes:,} in memory (at least "
                    f"{least:,}). Raise max_bytes, or search the store itself."
                )
        matrix = np.concatenate(vectors) if vectors else np.zeros((0, 0), np.float32)
        return Snapshot(
            ids, texts, metadata, NearestVectors(matrix, self.space(), owned=True), MetadataColumns(metadata)
        )


def _size_of(key: str, text: str | None, metadata: Mapping[str, Any] | None) -> int:
    of_values = sum(sys.getsizeof(value) for value in (metadata or {}).values())
    return sys.getsizeof(key) + sys.getsizeof(text) + sys.getsizeof(metadata) + of_values
