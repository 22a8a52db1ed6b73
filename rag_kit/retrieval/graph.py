"""`GraphRetriever`: passages that share names and rare words with the first results."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from langchain_core.documents import Document
from pydantic import model_validator

from rag_kit.documents import combine_filters
from rag_kit.documents.identity import document_key
from rag_kit.documents.provenance import peek_score
from rag_kit.errors import InvalidInputError
from rag_kit.indexing.bm25.index import BM25Index
from rag_kit.retrieval.base import RefiningRetriever
from rag_kit.retrieval.bm25 import BM25Retriever
from rag_kit.retrieval.call import Call
from rag_kit.retrieval.indexed import KeywordIndex, reader_of, rows_retriever
from rag_kit.retrieval.inside import own_filter

_SEED_COUNT = 20  # first results that the walk begins at
_RANK_SCALE = 2.0  # ranks over which the weight of a first result falls to 1/e


class GraphRetriever(RefiningRetriever):
    """Passages by a random walk from the first results over the names and rare words that passages share.

    For questions whose answer is spread over passages: the second one often has no word of the question, but a
    name that stands in the first one. Personalised PageRank, as HippoRAG 2 does it with phrases that a language
    model extracts; here the terms of the keyword index are the phrases, so it needs no model, and a changed
    passage is in the graph at once. The provenance names the terms that led to a passage under ``terms``.

    Paper: Gutierrez et al., From RAG to Memory (HippoRAG 2), arXiv 2502.14802.

    Args:
        index: A ``BM25Index`` or a ``DocumentIndex``, whose terms join the passages.
        retriever: Finds the first results in the same index; ``None`` for hybrid search (without vectors: by keyword).
            A filter of its own must be a mapping.
        fetch_k: First results that the walk begins at; ``None`` for 20, or ``k`` where that is more.
        **more: ``filter``, ``timeout``, ``deadline``, ``id_key``, ...: see ``RefiningRetriever``. The walk
            touches no passage that the filters, those of ``retriever`` among them, do not let through.

    Example:
        >>> from rag_kit.indexing import BM25Index
        >>> texts = ["The engine was designed by Babbage.", "Babbage was born in London.", "Paris is large."]
        >>> retriever = GraphRetriever(index=BM25Index.from_texts(texts), k=2)
        >>> [doc.page_content for doc in retriever.invoke("Where was the engine's designer born?")]
        ['The engine was designed by Babbage.', 'Babbage was born in London.']
    """

    index: Any
    retriever: Any = None

    @model_validator(mode="before")
    @classmethod
    def _check_index(cls, values: Any) -> Any:
        index = values.get("index")
        if not isinstance(index, KeywordIndex):
            raise InvalidInputError(
                f"index is {type(index).__name__}; GraphRetriever walks over a BM25Index or a DocumentIndex."
            )
        if values.get("retriever") is not None:
            return values
        if isinstance(index, BM25Index):
            return {**values, "retriever": BM25Retriever(index=index)}
        return {**values, "retriever": rows_retriever(index)}

    def _fetch_size(self, k: int) -> int:
        return _SEED_COUNT

    async def _refine(self, documents: list[Document], call: Call) -> list[Document]:
        """Return the passages that the walk visits most; documents that are not in the index come last."""
        where = combine_filters(call.filter, own_filter(self.retriever, call.config, strict=True))
        first_results: dict[str, Document] = {}
        same_id = []  # another text under an id that came before: it is of another store, and not in the index
        for doc in documents:
            if first_results.setdefault(document_key(doc), doc) is not doc:
                same_id.append(doc)
        # the weights fall with the rank: 1, 0.61, 0.37...
        seeds = {key: math.exp(-position / _RANK_SCALE) for position, key in enumerate(first_results)}
        visited, not_in_index = await call.do("graph", partial(self._walk, seeds, call.k, where))
        unconnected = [doc for key, doc in first_results.items() if key in not_in_index] + same_id
        if count := len(unconnected):
            call.note(f"degraded: {count} of the first results are not in the index; they stand last")
        ranks_before = {key: rank for rank, key in enumerate(first_results, start=1)}
        results = []
        for rank, (doc, probability, terms) in enumerate(visited, start=1):
            key = document_key(doc)
            first_result = first_results.get(key)  # the same passage, with its provenance
            score_before = None if first_result is None else peek_score(first_result)
            before = {"score_before": score_before, "rank_before": ranks_before.get(key)}
            results.append(
                call.with_stage(first_result or doc, "graph", rank, probability, **before, terms=terms)
            )
        return results + unconnected

    def _walk(
        self, seeds: dict[str, float], k: int, where: Any
    ) -> tuple[list[tuple[Document, float, list[str]]], set[str]]:
        """Return the passages that a walk from weighted seeds visits most, and the seeds that are not in the index.

        A passage comes with its probability and the terms that led to it. Reads the store.
        """
        reader = reader_of(self.index)
        visited = reader.spread(seeds, k, where)
        return visited, {key for key in seeds if key not in reader}
