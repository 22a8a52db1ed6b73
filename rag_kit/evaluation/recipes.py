"""The pipelines that the benchmark knows by name: one entry each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rag_kit.evaluation.pipelines import Parts


@dataclass(frozen=True)
class Pipeline:
    """A retriever to measure.

    Args:
        name: Its name in the results.
        retriever: The retriever, or any Runnable from a question to documents.
        arms: Stages that must each bring documents, such as ``("bm25", "dense")``.
        settings: What it was built with; plain JSON.
    """

    name: str
    retriever: Any
    arms: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Recipe:
    """How a pipeline is made from the shared parts.

    Attributes:
        make: Parts -> retriever.
        arms: Stages that must each bring documents.
        settings: What it is built with, beside the settings of its arms.
    """

    make: Callable[[Parts], Any]
    arms: tuple[str, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)

    def build(self, name: str, parts: Parts) -> Pipeline:
        """Make the pipeline.

        Raises:
            ConfigurationError: If it needs an embedding model and there is none.
        """
        settings: dict[str, Any] = {}
        if "dense" in self.arms:
            from rag_kit.models import embedding_name

            settings["embeddings"] = embedding_name(parts.model)
        if "bm25" in self.arms:
            settings = {"bm25": parts.bm25_settings(), **settings}
        return Pipeline(name, self.make(parts), self.arms, {**settings, **self.settings})


def _hybrid(**fusion: Any) -> Recipe:
    """Both arms, fused. A failing arm must not pass for a result, so nothing is skipped here."""

    def make(parts: Parts) -> Any:
        from rag_kit.retrieval import EnsembleRetriever

        both = [parts.bm25, parts.dense]
        return EnsembleRetriever(
            retrievers=both, **fusion, k=parts.depth, fetch_k=parts.depth, on_error="raise"
        )

    return Recipe(make, ("bm25", "dense"), fusion)


def _default_hybrid(parts: Parts) -> Any:
    from rag_kit.retrieval.hybrid import HybridRetriever

    both = [parts.bm25, parts.dense]
    return HybridRetriever(retrievers=both, k=parts.depth, fetch_k=parts.depth, on_error="raise")


def _rm3(parts: Parts) -> Any:
    from rag_kit.retrieval import ExpansionRetriever

    return ExpansionRetriever.from_feedback(parts.index, k=parts.depth, on_error="raise")


def _tfidf(parts: Parts) -> Any:
    from rag_kit.retrieval import SparseRetriever

    return SparseRetriever.from_documents(parts.documents, k=parts.depth, name="tf-idf")


def _trigram(parts: Parts) -> Any:
    from rag_kit.retrieval import TrigramRetriever

    return TrigramRetriever.from_documents(parts.documents, k=parts.depth, name="trigram")


def _mmr(parts: Parts) -> Any:
    from rag_kit.retrieval import MMRReranker, RerankRetriever

    reranker = MMRReranker(parts.known_vectors)
    return RerankRetriever(
        retriever=parts.dense, reranker=reranker, k=parts.depth, fetch_k=parts.depth, on_error="raise"
    )


def _parent(parts: Parts) -> Any:
    from rag_kit.retrieval import ParentDocumentRetriever

    return ParentDocumentRetriever.from_documents(parts.documents, pipeline="bm25", k=parts.depth)


def _window(parts: Parts) -> Any:
    from rag_kit.retrieval import SentenceWindowRetriever

    return SentenceWindowRetriever.from_documents(parts.documents, pipeline="bm25", k=parts.depth)


RECIPES: dict[str, Recipe] = {
    "bm25": Recipe(lambda parts: parts.bm25, ("bm25",)),
    "dense": Recipe(lambda parts: parts.dense, ("dense",)),
    "hybrid": Recipe(_default_hybrid, ("bm25", "dense"), {"fusion": "auto", "feedback": 0.45}),
    "auto": _hybrid(fusion="auto"),
    "rrf": _hybrid(fusion="rrf", rrf_k=60),
    "rrf-10": _hybrid(fusion="rrf", rrf_k=10),
    "weighted-rrf": _hybrid(fusion="rrf", rrf_k=60, weights=[0.6, 0.4]),
    "convex": _hybrid(fusion="convex", normalisation="min-max", weights=[0.5, 0.5]),
    "convex-z": _hybrid(fusion="convex", normalisation="z-score", weights=[0.5, 0.5]),
    "convex-maximum": _hybrid(fusion="convex", normalisation="maximum", weights=[0.7, 0.3]),
    "rm3": Recipe(_rm3, (), {"fb_docs": 10, "fb_terms": 10, "original_weight": 0.5}),
    "tfidf": Recipe(_tfidf, ()),
    "trigram": Recipe(_trigram, ()),
    "mmr": Recipe(_mmr, ("dense",), {"lambda_mult": 0.9}),
    "parent": Recipe(_parent, (), {"children": "bm25", "child_size": 400}),
    "sentence-window": Recipe(_window, (), {"children": "bm25", "window": 3}),
}
"""Name -> recipe. ``hybrid`` is the kit's default; the others with both arms fuse otherwise, without feedback."""
