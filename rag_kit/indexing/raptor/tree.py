"""A tree of summaries as it stands in an index and as it is printed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from langchain_core.documents import Document

from rag_kit.documents import clean_text
from rag_kit.indexing.document_index.index import DocumentIndex
from rag_kit.indexing.document_index.rows import document
from rag_kit.indexing.document_index.state import Connection, select_in
from rag_kit.indexing.searched import RAPTOR


class Leaf(NamedTuple):
    """A passage below a summary: its row number, its beginning, and whether its text is still as it was summarised."""

    row: int
    begins: str
    current: bool


@dataclass(frozen=True, repr=False)
class RaptorTree:
    """Summaries of passages, and summaries of these; see ``build_raptor``.

    Attributes:
        nodes: The summaries by id, the lowest level first; metadata ``level`` (from 1) and ``members``: ids of
            passages on level 1, of summaries above it.
        leaves: The passages by id, without those that are no longer in the index.
    """

    nodes: dict[str, Document]
    leaves: dict[str, Leaf]

    @classmethod
    def read(cls, index: DocumentIndex) -> RaptorTree:
        """Read the tree of an index; empty if none was built."""
        with index.view() as (connection, _, _):
            return cls.of(connection)

    @classmethod
    def of(cls, connection: Connection) -> RaptorTree:
        """Read the tree by a connection to the store, all within its transaction."""
        # ids of summaries begin with "raptor:", and ";" follows ":" in ASCII
        query = f"SELECT id, text, metadata FROM chunks WHERE id >= '{RAPTOR}:' AND id < '{RAPTOR};'"
        documents = [document(*row) for row in connection.execute(query)]
        nodes = [node for node in documents if isinstance(node.metadata.get(RAPTOR), dict)]
        nodes.sort(key=lambda node: (node.metadata["level"], node.id))
        hashes: dict[str, str] = {}  # of passages when they were summarised
        for node in nodes:
            hashes.update(node.metadata[RAPTOR]["leaves"])
        query = "SELECT id, n, substr(text, 1, 200), hash FROM chunks WHERE id IN ({})"
        leaves = {}
        for key, row_number, beginning, digest in select_in(connection, query, hashes):
            leaves[key] = Leaf(row_number, beginning, short_hash(digest) == hashes[key])
        return cls({node.id or "": node for node in nodes}, leaves)

    @property
    def edges(self) -> list[tuple[str, str]]:
        """List the pairs of a summary's id and the id of a member of it, for drawing."""
        return [(key, member) for key, node in self.nodes.items() for member in node.metadata["members"]]

    @property
    def roots(self) -> list[str]:
        """List the summaries that no other one summarises; one for each value of ``partition``."""
        below = {member for _, member in self.edges}
        return [key for key in self.nodes if key not in below]

    def show(self, depth: int | None = None, width: int = 100) -> str:
        """Write the tree as text: ``depth`` levels (default: all), in lines of at most ``width`` characters."""
        top = max((node.metadata["level"] for node in self.nodes.values()), default=0)
        lines = [f"tree of {top} levels: {len(self.leaves)} passages, {len(self.nodes)} summaries"]
        lines += [line for root in self.roots for line in self._lines(root, "", depth)]
        return "\n".join(line[:width] for line in lines)

    __str__ = show

    def _lines(self, key: str, indent: str, depth: int | None) -> Iterator[str]:
        """Yield a line for a node and each node below it, ``depth`` levels deep (``None``: all)."""
        if depth == 0:
            return
        node = self.nodes.get(key)
        if node is None:
            text = self.leaves[key].begins if key in self.leaves else "(no longer in the index)"
            yield f"{indent}- {' '.join(clean_text(text).split())}"
            return
        yield f"{indent}[{node.metadata['level']}] {' '.join(clean_text(node.page_content).split())}"
        depth_below = None if depth is None else depth - 1
        for member in node.metadata["members"]:
            yield from self._lines(member, f"{indent}  ", depth_below)


def short_hash(digest: bytes) -> str:
    """Return the part of a text's hash that a tree records, in hexadecimal digits."""
    return bytes(digest)[:8].hex()
