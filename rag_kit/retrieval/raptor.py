"""`RaptorRetriever`: passages, and summaries of passages that belong together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from itertools import chain
from typing import Any, Literal, NamedTuple

import numpy as np
from langchain_core.documents import Document
from pydantic import Field, PrivateAttr

from rag_kit.documents import add_note, combine_filters, compile_filter, copy_document
from rag_kit.documents.provenance import first_stage
from rag_kit.indexing.document_index.index import DocumentIndex
from rag_kit.indexing.document_index.vectors import Vectors, best, unit
from rag_kit.indexing.raptor.tree import RaptorTree
from rag_kit.indexing.searched import RAPTOR, REPRESENTATION
from rag_kit.retrieval.base import Request
from rag_kit.retrieval.batching import SteppedRetriever, search_by_vector
from rag_kit.retrieval.indexed import Hits, rows_retriever


class _Loaded(NamedTuple):
    """The tree in one generation of the index: its roots, the vectors of summaries, and those that are up to date."""

    generation: int
    tree: RaptorTree
    roots: list[str]
    vectors: dict[str, Vectors]
    whole: set[str]

    @property
    def note(self) -> str:
        """What is to be said of all results, or nothing."""
        if not self.tree.nodes:
            return "degraded: passages alone, for the index has no summaries; build_raptor makes them"
        old = "degraded: some summaries are out of date and left out; build_raptor renews them"
        return old if len(self.whole) < len(self.tree.nodes) else ""


class RaptorRetriever(SteppedRetriever):
    """Search passages, and summaries of clusters of passages (``build_raptor``), by vector.

    A question about the whole of something finds the summary of what is spread over many passages. A summary is
    found only while all passages below it are in the index as they were summarised, and pass the filter.

    Paper: Sarthi et al., RAPTOR, arXiv 2401.18059.

    Args:
        index: An index with a tree, opened with its embedding model; without a tree, passages alone are found.
        mode: ``"collapsed"`` compares the question with all passages and summaries. ``"traversal"`` goes down the
            tree, on each level to the members of the nearest; it finds no passage that came after the tree.
        filter: Metadata filter for every call, on the fields of passages.
        fetch_k: How many the traversal goes on from on each level; default ``k``.
    """

    index: DocumentIndex
    mode: Literal["collapsed", "traversal"] = "collapsed"
    fetch_k: int | None = Field(default=None, ge=1)
    _loaded: _Loaded | None = PrivateAttr(default=None)

    def model_post_init(self, context: Any, /) -> None:
        """Check that the index can be searched by vector."""
        super().model_post_init(context)
        rows_retriever(self.index, "dense")

    async def _found(self, query: str, request: Request) -> list[Document]:
        model: Any = self.index.embeddings
        return await search_by_vector(self.index, model, query, request, partial(self._find, request=request))

    def _find(
        self, queries: Sequence[str], vectors: Sequence[Sequence[float]], request: Request
    ) -> dict[str, list[Document]]:
        with self.index.view(request.filter) as (connection, state, passes):
            loaded = self._loaded
            if loaded is None or loaded.generation != state.generation:
                tree = RaptorTree.of(connection)
                for node in tree.nodes.values():
                    del node.metadata[RAPTOR]
                whole = _whole(tree, {key for key, leaf in tree.leaves.items() if leaf.current})
                rows = self._vectors(list(tree.nodes))
                loaded = self._loaded = _Loaded(state.generation, tree, tree.roots, rows, whole)
        leaves = loaded.tree.leaves
        passing, allowed = set(leaves), loaded.whole
        if passes is not None:
            passing = {key for key, leaf in leaves.items() if passes(leaf.row)}
            allowed = _whole(loaded.tree, {key for key in passing if leaves[key].current})
        found = {}
        for query, vector in zip(queries, vectors, strict=True):
            near = unit(np.asarray(vector, np.float32))
            if self.mode == "collapsed" or not loaded.tree.nodes:
                hits = self._collapsed(near, loaded, allowed, request)
            else:
                hits = self._traversed(near, loaded, allowed | passing, request)
            documents = first_stage(hits, RAPTOR, self.get_name(), query)
            found[query] = [add_note(doc, loaded.note) for doc in documents] if loaded.note else documents
        return found

    def _vectors(self, ids: Sequence[str]) -> dict[str, Vectors]:
        return {key: unit(np.asarray(row, np.float32)) for key, row in self.index.vectors(ids).items()}

    def _collapsed(self, vector: Vectors, loaded: _Loaded, allowed: set[str], request: Request) -> Hits:
        passages = combine_filters(request.filter, {REPRESENTATION: {"$exists": False}})
        hits = self.index.search_dense(vector.tolist(), request.k, passages)
        rows = {key: row for key, row in loaded.vectors.items() if key in allowed}
        nearest = _nearest(vector, rows, request.k)
        hits += [(copy_document(loaded.tree.nodes[key]), score) for key, score in nearest]
        return sorted(hits, key=lambda hit: (-hit[1], hit[0].id or ""))[: request.k]

    def _traversed(self, vector: Vectors, loaded: _Loaded, allowed: set[str], request: Request) -> Hits:
        tree, chosen = loaded.tree, dict[str, float]()
        level = _opened(tree, loaded.roots, allowed)
        while level:
            rows = self._vectors([key for key in level if key not in tree.nodes])
            rows |= {key: loaded.vectors[key] for key in level if key in loaded.vectors}
            nearest = _nearest(vector, rows, self.fetch_k or request.k)
            chosen.update(nearest)
            opened = [tree.nodes[key].metadata["members"] for key, _ in nearest if key in tree.nodes]
            level = _opened(tree, chain.from_iterable(opened), allowed) - chosen.keys()
        order = sorted(chosen, key=lambda key: (-chosen[key], key))[: request.k]
        passes = compile_filter(request.filter)  # of a passage that was written since
        documents = self.index.get([key for key in order if key not in tree.nodes])
        found = {doc.id: doc for doc in documents if passes(doc.metadata)}
        found |= {key: copy_document(tree.nodes[key]) for key in order if key in tree.nodes}
        return [(found[key], chosen[key]) for key in order if key in found]


def _whole(tree: RaptorTree, leaves: set[str]) -> set[str]:
    """The summaries of which all passages are among some."""
    whole = set(leaves)
    for key, node in tree.nodes.items():
        if whole.issuperset(node.metadata["members"]):
            whole.add(key)
    return whole - leaves


def _opened(tree: RaptorTree, keys: Iterable[str], allowed: set[str]) -> set[str]:
    """Those that are allowed; in place of a summary that is not, those below it."""
    found, waiting = set[str](), list(keys)
    while waiting:
        if (key := waiting.pop()) in allowed:
            found.add(key)
        elif key in tree.nodes:
            waiting += tree.nodes[key].metadata["members"]
    return found


def _nearest(vector: Vectors, rows: dict[str, Vectors], k: int) -> list[tuple[str, float]]:
    return best(np.stack(list(rows.values())) @ vector, list(rows), k) if rows else []
