"""What a leg of an index is: a search structure that is derived from the store (decision 0018)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from rag_kit.indexing.document_index.meta import State
from rag_kit.indexing.document_index.sql import Connection

if TYPE_CHECKING:
    from rag_kit.documents import Filter
    from rag_kit.indexing.document_index.report import IndexReport


class Leg(Protocol):
    """One way to search an index. The store is the truth; a leg follows it from generation to generation.

    All methods are given a connection inside one transaction, and the state that it sees.
    """

    def apply(self, connection: Connection, state: State) -> int:
        """Write what has changed since the saved generation, safe on disk, where it is worth it. Writer only.

        Returns:
            The generation that is saved; what is later, readers take out of the store.
        """

    def search(
        self, connection: Connection, state: State, query: Any, k: int, where: Filter | None
    ) -> list[tuple[Any, float]]:
        """The k best of that state that pass a filter, with scores, best first, ties by id."""

    def verify(self, connection: Connection, state: State, report: IndexReport) -> None:
        """Compare the saved files with the store, and report."""

    def rebuild(self, connection: Connection, state: State) -> str:
        """Build the files again from the store, and say in words what was built. Writer only."""
