"""Where an index lives: what differs between a folder and a database."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from rag_kit.indexing.document_index.keyword import KeywordView
from rag_kit.indexing.document_index.report import IndexReport
from rag_kit.indexing.document_index.rows import documents
from rag_kit.indexing.document_index.sql import Connection
from rag_kit.indexing.document_index.store import State, Store
from rag_kit.indexing.document_index.vectors import Vectors

if TYPE_CHECKING:
    from langchain_core.documents import Document

    from rag_kit.documents import Filter
    from rag_kit.indexing.postgres.location import Location


class Leg(Protocol):
    """One way to search an index, derived from the store, which it follows from generation to generation.

    All methods are given a connection inside one transaction, and the state that it sees (decision 0018).
    """

    def apply(self, connection: Connection, state: State) -> int:
        """Write what has changed since the saved generation, safe on disk, where it is worth it. Writer only.

        Returns:
            The generation that is saved; what is later, readers take out of the store.
        """

    def verify(self, connection: Connection, state: State, report: IndexReport) -> None:
        """Compare what is saved with the store, and report."""

    def rebuild(self, connection: Connection, state: State) -> str:
        """Build it again from the store, and say in words what was built. Writer only."""


class VectorSearch(Leg, Protocol):
    """The leg that finds the nearest vectors; the keyword leg is searched through a `KeywordView`."""

    def search(
        self, connection: Connection, state: State, query: Vectors, k: int, where: Filter | None
    ) -> list[tuple[str, float]]:
        """Ids and cosines of the k nearest to a unit vector that pass a filter, best first, ties by id."""


class Backend(ABC):
    """A store with its legs, opened; see ``folder_backend`` and ``rag_kit.indexing.postgres.backend``.

    Attributes:
        location: Where it is; its text goes into messages, its ``name`` into notes that leave with answers.
        store: The store.
        vectors: The leg that finds the nearest vectors.
        legs: All legs.
        writable: Whether it was opened for writing.
    """

    location: Path | Location
    store: Store
    vectors: VectorSearch
    legs: tuple[Leg, ...]
    writable: bool

    @abstractmethod
    def keyword_view(self) -> KeywordView:
        """The keyword leg in the present state."""

    @abstractmethod
    def passes(self, connection: Connection, state: State, where: Filter) -> Callable[[int], bool]:
        """A function that says of a row number whether its row passes a filter."""

    @abstractmethod
    def size(self, connection: Connection) -> int:
        """Bytes on disk."""

    @property
    @abstractmethod
    def replies(self) -> Any:
        """Where replies of a chat model are kept, which were paid for: a cache, or the path of its file."""

    @abstractmethod
    def flush(self) -> None:
        """Save what the legs have not saved yet."""

    @abstractmethod
    def close(self, keep: Collection[str] | None = None) -> None:
        """Let go; with ``keep`` the index is removed, but for files of these names."""

    def rebuild(self) -> list[str]:
        """Build all legs anew, and say in words what was built."""
        with self.store.reading() as connection:
            state = self.store.state(connection)
            return [what for leg in self.legs if (what := leg.rebuild(connection, state))]

    def documents(self, connection: Connection, state: State, ids: Sequence[str]) -> dict[str, Document]:
        """Documents by id; what is not there is left out."""
        return documents(connection, ids)
