"""The store: the truth of an index, and the legs that are derived from it.

Every row has the generation (a counter of write transactions) that changed it last; by it what is derived catches up.
"""

from __future__ import annotations

import json
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from rag_kit.documents import Filter
from rag_kit.errors import DocumentIndexError, InvalidInputError
from rag_kit.indexing.document_index.state import Connection, IndexState, read_state, upsert_statement
from rag_kit.indexing.document_index.vectors import RankedIds, Vectors
from rag_kit.indexing.document_index.views import PostingsView

if TYPE_CHECKING:
    from rag_kit.indexing.document_index.state import IndexReport
    from rag_kit.indexing.document_index.vector_store_leg import ConnectedVectorStore
    from rag_kit.indexing.sparse.index import SparseEncoder
    from rag_kit.models.late_interaction import LateInteraction


class RemoteLocation(ABC):
    """An index that a URL names; as text it is the URL without secrets."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The index alone, for notes that leave with answers."""


class Leg(Protocol):
    """One way to search an index, derived from the store, which it follows from generation to generation.

    All methods are given a connection inside one transaction, and the state that it sees (decision 0018).
    """

    def apply(self, connection: Connection, state: IndexState) -> int:
        """Save the store's changes since the saved generation, unless they are too few to be worth it. Writer only.

        Return the generation that is saved now; readers take later changes out of the store.
        """

    def verify(self, connection: Connection, state: IndexState, report: IndexReport) -> None:
        """Compare what is saved with the store, and report."""

    def rebuild(self, connection: Connection, state: IndexState) -> str:
        """Build it again from the store, and say in words what was built. Writer only."""


class VectorSearchLeg(Leg, Protocol):
    """The leg that finds the nearest vectors; the others are searched through a `PostingsView`."""

    def search(
        self, connection: Connection, state: IndexState, query: Vectors, k: int, where: Filter | None
    ) -> RankedIds:
        """Return ids and cosines of the k nearest rows to a unit vector that pass a filter; best first, ties by id."""


class Access(NamedTuple):
    """How an index is made or opened; see ``DocumentIndex``."""

    embedding: str | None  # name of the model that was given
    connected: ConnectedVectorStore | None = None
    wait: float = 0.0
    writable: bool = True
    check: bool = True
    legs: list[str] | None = None  # those beside keyword and vectors; None for those that there are
    encoder: SparseEncoder | None = None
    token_model: LateInteraction | None = None


class Store(ABC):
    """An index, opened: see ``folder_store`` and ``rag_kit.indexing.postgres.store``."""

    #: Its text goes into messages, its `name` into notes that leave with answers.
    location: Path | RemoteLocation
    #: Most bytes of a source, where there is such a limit; then none takes NUL either.
    max_source: int | None = None
    vectors: VectorSearchLeg

    def __init__(self, *, writable: bool) -> None:
        self.writable = writable
        self.readonly_because = "was opened for reading"
        self.write_lock = threading.RLock()
        self._open: Connection | None = None

    @classmethod
    @abstractmethod
    def create(cls, location: Any, access: Access, settings: Mapping[str, Any]) -> Store:
        """Make an index; see ``DocumentIndex.create``."""

    @classmethod
    @abstractmethod
    def open(cls, location: Any, access: Access) -> Store:
        """Open an index; see ``DocumentIndex.open``."""

    @abstractmethod
    def translate_errors(self) -> AbstractContextManager[None]:
        """Turn the database's errors into ours."""

    @abstractmethod
    def reading(self) -> AbstractContextManager[Connection]:
        """Open one consistent view of the committed state."""

    @abstractmethod
    def _transaction(self) -> AbstractContextManager[Connection]:
        """Begin a write transaction, committed at the end, undone by an error."""

    @contextmanager
    def close_on_error(self) -> Iterator[None]:
        """Close the store if it cannot be opened."""
        try:
            yield
        except BaseException:
            self.close()
            raise

    def damage(self, connection: Connection) -> str:
        """Say what the database finds damaged in itself; ``""`` for a sound one, or a server (not asked)."""
        return ""

    def mend(self, connection: Connection) -> str:
        """Let the database mend itself, and say what it did; raise `IndexFormatError` if it cannot."""
        return ""

    @abstractmethod
    def legs(self, state: IndexState) -> list[Leg]:
        """Return all legs that an index has in a state."""

    @abstractmethod
    def leg_view(self, name: str) -> PostingsView:
        """Return a leg over postings in the present state; InvalidInputError where the index has none."""

    def check_leg(self, name: str, state: IndexState) -> None:
        """Raise InvalidInputError where an index lacks a leg."""
        if name not in ("keyword", *state.legs):
            legs = [*state.legs, name]
            command = f"), or rag-kit ingest PATH --index DIR --legs {','.join(legs)}."
            rest = ", sparse_encoder=...)." if "sparse" in legs else command  # the command takes no encoder
            raise InvalidInputError(
                # the name alone: a retriever may note this, and notes leave with answers
                f"The index {self.location.name!r} has no {name} leg. Add it: DocumentIndex.open(..., mode='w', "
                f"legs={legs!r}{rest}"
            )

    @abstractmethod
    def passes(self, connection: Connection, state: IndexState, where: Filter) -> Callable[[int], bool]:
        """Return a function that tells by a row's number whether the row passes a filter."""

    @property
    @abstractmethod
    def replies(self) -> Path:
        """The file that keeps the replies of a chat model, which were paid for."""

    @abstractmethod
    def flush(self) -> None:
        """Save what the legs have not saved yet."""

    @abstractmethod
    def close(self) -> None:
        """Close files and connections."""

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Begin a write transaction, or join the open one. An error in the outermost block undoes all of it."""
        with self.write_lock, self.translate_errors():
            if self._open is not None:
                yield self._open
                return
            if not self.writable:
                raise DocumentIndexError(
                    f"The index in {self.location} {self.readonly_because}. Open it with "
                    "DocumentIndex.open(..., mode='w')."
                )
            with self._transaction() as connection:
                self._open = connection
                try:
                    yield connection
                finally:
                    self._open = None

    @contextmanager
    def reading_uncommitted(self) -> Iterator[Connection]:
        """Open a view as `reading` does; inside a write transaction, use its connection, which sees its own writes."""
        with self.write_lock:
            if self._open is not None:
                yield self._open
                return
            with self.reading() as connection:
                yield connection

    def state(self, connection: Connection | None = None) -> IndexState:
        """Return the state of the index (model, generation...) that a connection sees; default: as last committed."""
        if connection is not None:
            return read_state(connection, self.location)
        with self.reading() as reader:
            return read_state(reader, self.location)

    def set_meta(self, **values: Any) -> None:
        """Set fields of the state of the index (see `IndexState`), in the open write transaction or one of its own."""
        with self.writing() as connection:
            facts = [(key, json.dumps(value)) for key, value in values.items()]
            connection.executemany(upsert_statement("meta", "key", "value"), facts)
