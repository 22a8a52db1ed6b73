"""`RaptorRetriever`: passages, and summaries of passages that belong together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from langchain_core.documents import Document
from pydantic import PrivateAttr

from rag_kit.documents import add_note, combine_filters, copy_document
from rag_kit.documents.provenance import add_first_stage
from rag_kit.indexing.document_index.index import DocumentIndex
from rag_kit.indexing.document_index.vectors import Vectors, best_ids, unit
from rag_kit.indexing.raptor.tree import RaptorTree
from rag_kit.indexing.searched import RAPTOR, REPRESENTATION
from rag_kit.retrieval.call import Call
from rag_kit.retrieval.indexed import Hits, rows_retriever
from rag_kit.retrieval.vectors import ByVectorRetriever


class _Loaded(NamedTuple):
    """The tree in one generation of the index, with the unit vectors of its summaries."""

    generation: tuple[str, int]  # the index and its generation
    tree: RaptorTree
    vectors: dict[str, Vectors]
    complete: set[str]  # summaries whose passages are all as they were summarised

    @property
    def note(self) -> str:
        """Return the note for all results that summaries are missing or out of date; "" if there are none such."""
        if not self.tree.nodes:
            return "degraded: passages alone, for the index has no summaries; build_raptor makes them"
        old = "degraded: some summaries are out of date and left out; build_raptor renews them"
        return old if len(self.complete) < len(self.tree.nodes) else ""


class RaptorRetriever(ByVectorRetriever):
    """Search passages, and summaries of clusters of passages (``build_raptor``), by vector, all at once.

    A question about the whole of something finds the summary of what is spread over many passages. A summary is
    found only while all passages below it are in the index as they were summarised, and pass the filter.

    Paper: Sarthi et al., RAPTOR, arXiv 2401.18059.

    Args:
        index: An index with a tree, opened with its embedding model; without a tree, passages alone are found.
        filter: Metadata filter for every call, on the fields of passages.
    """

    index: DocumentIndex
    _loaded: _Loaded | None = PrivateAttr(default=None)

    def model_post_init(self, context: Any, /) -> None:
        """Check that the index can be searched by vector."""
        super().model_post_init(context)
        rows_retriever(self.index, "dense")

    def _nearest(self, query: str, vector: Sequence[float], call: Call) -> list[Document]:
        """Return the passages and summaries nearest to the query; read the tree again if the index has changed."""
        with self.index.view(call.filter) as (connection, state, passes):
            loaded = self._loaded
            generation = state.uid, state.generation
            if loaded is None or loaded.generation != generation:
                loaded = self._loaded = self._load(connection, generation)
        summaries = loaded.complete
        if passes is not None:  # fewer summaries are complete
            passages = loaded.tree.leaves.items()
            passing = {key for key, passage in passages if passes(passage.row) and passage.current}
            summaries = _complete_summaries(loaded.tree, passing)
        hits = self._hits(unit(np.asarray(vector, np.float32)), loaded, summaries, call)
        documents = add_first_stage(hits, RAPTOR, self.get_name(), query)
        if not loaded.note:
            return documents
        call.note(loaded.note)
        return [add_note(doc, loaded.note) for doc in documents]

    def _load(self, connection: Any, generation: tuple[str, int]) -> _Loaded:
        """Read the tree and the vectors of its summaries; ``generation`` is the state of the index that is read."""
        tree = RaptorTree.of(connection)
        for node in tree.nodes.values():
            del node.metadata[RAPTOR]  # the tree's own record, which results do not show
        current = {key for key, leaf in tree.leaves.items() if leaf.current}
        vectors = {key: unit(row) for key, row in self.index.vector_rows(list(tree.nodes)).items()}
        return _Loaded(generation, tree, vectors, _complete_summaries(tree, current))

    def _hits(self, vector: Vectors, loaded: _Loaded, summaries: set[str], call: Call) -> Hits:
        """Return the ``k`` nearest to a vector among all passages and the given summaries, with their cosines."""
        passages_only = combine_filters(call.filter, {REPRESENTATION: {"$exists": False}})
        hits = self.index.search_dense(vector.tolist(), call.k, passages_only)
        rows = {key: row for key, row in loaded.vectors.items() if key in summaries}
        if rows:
            nearest = best_ids(np.stack(list(rows.values())) @ vector, list(rows), call.k)
            hits += [(copy_document(loaded.tree.nodes[key]), score) for key, score in nearest]
        return sorted(hits, key=lambda hit: (-hit[1], hit[0].id or ""))[: call.k]  # best first, ties by id


def _complete_summaries(tree: RaptorTree, passages: set[str]) -> set[str]:
    """Return the ids of the summaries that are made of these passages alone, directly or through other summaries."""
    complete = set(passages)
    for key, node in tree.nodes.items():  # a summary comes after those that it is made of
        if complete.issuperset(node.metadata["members"]):
            complete.add(key)
    return complete - passages
