"""The Chroma collection: ids and vectors, derived from the store and rebuilt from it when in doubt.

Chroma is safe neither against a killed writer nor for readers in other processes (see decision 0071), so the
store notes before each write that the collection is dirty, and afterwards which generation it holds. A dirty
collection is never read; the next writer puts a new one in its place.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import threading
from pathlib import Path
from typing import Any, NamedTuple

from rag_kit.indexing.document_index.changes import changed_vectors, removed_since
from rag_kit.indexing.document_index.folder import is_part, private
from rag_kit.indexing.document_index.lost_rows import MirrorError, all_lost, guarded, most_unreached
from rag_kit.indexing.document_index.matrix import Vectors, unpack
from rag_kit.indexing.document_index.store import Store, in_groups

logger = logging.getLogger(__name__)

COLLECTION = "chunks"
_BATCH = 2000


class Candidates(NamedTuple):
    """What Chroma found: ids of rows, how deep it looked, and what must be looked at besides.

    Attributes:
        ids: About the nearest rows.
        generation: The one that the collection holds; later rows are not in it.
        unreached: Rows that are known to be out of reach of its graph.
    """

    ids: list[str]
    generation: int
    unreached: list[str]


class ChromaMirror:
    """The collection beside a store."""

    def __init__(self, folder: Path, store: Store) -> None:
        self._folder = folder
        self._store = store
        self.lock = threading.RLock()
        self._client: Any = None
        self._collection: Any = None
        self._opened: tuple[str, int] | None = None
        self._failed_epoch = -1

    def _open(self, name: str, epoch: int, *, create: bool) -> Any:
        """The collection as of an epoch; one that was opened before a later write is opened anew."""
        if self._collection is not None and self._opened == (name, epoch):
            return self._collection
        self.close()
        path = self._folder / name
        _refuse_links(path)
        if not create and not path.is_dir():
            raise MirrorError(f"The Chroma folder {path} is missing.")
        with guarded("opening its folder"):
            import chromadb
            from chromadb.config import Settings

            path.mkdir(mode=0o700, exist_ok=True)
            self._client = chromadb.PersistentClient(
                str(path.resolve()), settings=Settings(anonymized_telemetry=False)
            )
            # no embedding function: Chroma's default one downloads a model
            if create:
                self._collection = self._client.get_or_create_collection(
                    COLLECTION, embedding_function=None, configuration={"hnsw": {"space": "cosine"}}
                )
            else:
                self._collection = self._client.get_collection(COLLECTION, embedding_function=None)
        self._opened = (name, epoch)
        return self._collection

    def query(self, query: Vectors, n: int) -> Candidates:
        """About the n nearest rows.

        Raises:
            MirrorError: The collection is dirty, being written, or broken.
        """
        with self.lock:
            chroma = self._store.state().chroma
            epoch = int(chroma["epoch"])
            if not chroma["clean"]:
                raise MirrorError("The Chroma collection is being written, or its writer was killed.")
            if epoch == self._failed_epoch:
                raise MirrorError("The Chroma collection failed before.")
            try:
                collection = self._open(chroma["folder"], epoch, create=False)
                with guarded("searching"):
                    size = collection.count()
                    if not size:
                        return Candidates([], int(chroma["generation"]), [])
                    found = collection.query(
                        query_embeddings=[query.tolist()], n_results=min(n, size), include=[]
                    )
            except MirrorError as error:
                self._failed_epoch = epoch
                logger.warning("%s Searching without it; `rag-kit repair` rebuilds it.", error)
                raise
            if self._store.state().chroma["epoch"] != epoch:
                raise MirrorError("The Chroma collection was written to during the search.")
            return Candidates(list(found["ids"][0]), int(chroma["generation"]), chroma.get("unreached", []))

    def sync(self) -> int:
        """Bring the collection to the store's generation; a dirty one is replaced. Writer only.

        Returns:
            How many rows were written or removed.

        Raises:
            MirrorError: Chroma failed; the collection stays marked dirty.
        """
        with self.lock:
            state = self._store.state()
            chroma = dict(state.chroma)
            path = self._folder / chroma["folder"]
            if not chroma["clean"] or path.is_symlink() or not path.is_dir():
                return self.rebuild()
            since = int(chroma["generation"])
            with self._store.reading() as connection:
                changed = changed_vectors(connection, since)
                gone = removed_since(connection, state, since, lambda: self.known(chroma))
            if not changed and not gone:
                if since != state.generation:
                    self._store.set_meta(chroma={**chroma, "generation": state.generation})
                return 0
            return self._write(chroma, changed, gone, state.generation, state.dimension or 0)

    def rebuild(self, *, check: bool = False) -> int:
        """Put a new collection, made from the stored vectors, in the place of the old one. Writer only.

        Args:
            check: Find the rows that are out of reach of the new graph, and record them.
        """
        with self.lock:
            self.close()
            state = self._store.state()
            old = dict(state.chroma)
            number = int(old["epoch"]) + 1
            # a new folder: the old one may be open in this process or another, and Chroma caches by path
            chroma = {**old, "folder": f"chroma-{number}", "generation": 0, "unreached": []}
            if not os.path.lexists(self._folder / "chroma"):
                chroma["folder"] = "chroma"
            self._store.set_meta(chroma={**chroma, "clean": False})
            for path in self._folder.glob("chroma*"):
                if is_part(path.name) and path.is_symlink():
                    path.unlink()  # the link, never what it leads to
                elif is_part(path.name):
                    shutil.rmtree(path, ignore_errors=True)
            with self._store.reading() as connection:
                everything = changed_vectors(connection, -1)
            written = self._write(chroma, everything, [], state.generation, state.dimension or 0)
            if check:
                chroma = dict(self._store.state().chroma)
                lost = all_lost(self.opened(chroma), dict(everything), state.dimension or 0, lambda _: None)
                if len(lost) <= most_unreached(len(everything)):
                    self._store.set_meta(chroma={**chroma, "unreached": lost})
            return written

    def _write(
        self,
        chroma: dict[str, Any],
        changed: list[tuple[str, bytes]],
        gone: list[str],
        generation: int,
        dimension: int,
    ) -> int:
        epoch = int(chroma["epoch"]) + 1
        self._store.set_meta(chroma={**chroma, "epoch": epoch, "clean": False})
        self._opened = (self._opened[0], epoch) if self._opened else None
        collection = self._open(chroma["folder"], epoch, create=True)
        with guarded("writing"):
            size = min(_BATCH, self._client.get_max_batch_size())
            # a row that is written again is taken out first: an upsert of it costs ten times as much
            again = {key for key, _ in changed} if chroma["generation"] else set()
            for ids in in_groups([*gone, *sorted(again)], size):
                collection.delete(ids=ids)
            for group in in_groups(changed, size):
                vectors = unpack([blob for _, blob in group], dimension)
                collection.add(ids=[key for key, _ in group], embeddings=vectors)
        private(self._folder / chroma["folder"])
        self._store.set_meta(chroma={**chroma, "epoch": epoch, "clean": True, "generation": generation})
        return len(changed) + len(gone)

    def known(self, chroma: dict[str, Any]) -> list[str]:
        """Ids of the rows that the collection holds."""
        collection = self.opened(chroma)
        with guarded("listing its rows"):
            return list(collection.get(include=[])["ids"])

    def opened(self, chroma: dict[str, Any]) -> Any:
        """The collection, which must be there."""
        return self._open(chroma["folder"], int(chroma["epoch"]), create=False)

    def close(self) -> None:
        """Let go of the collection."""
        with self.lock:
            client, self._client, self._collection, self._opened = self._client, None, None, None
            if client is not None:
                with contextlib.suppress(MirrorError), guarded("closing"):
                    client.close()


def _refuse_links(path: Path) -> None:
    """Chroma must not write through a link into somebody else's files."""
    links = [path] if path.is_symlink() else [below for below in path.rglob("*") if below.is_symlink()]
    if links:
        raise MirrorError(f"{links[0]} is a link, which is not followed.")
