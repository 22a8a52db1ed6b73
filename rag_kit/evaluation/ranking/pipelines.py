"""Pipelines of the benchmark: retrievers that it knows by name, and a user's; each is asked every query and timed."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.runnables import Runnable

from rag_kit import retrieval
from rag_kit.documents import get_provenance
from rag_kit.errors import ConfigurationError, InvalidInputError, RagKitError
from rag_kit.evaluation.examples import Example
from rag_kit.evaluation.ours.span_recall import SpanRecall
from rag_kit.evaluation.outputs import Passage
from rag_kit.evaluation.runs.evaluating import load_object
from rag_kit.evaluation.sets.beir import CORPUS_ID
from rag_kit.indexing import BM25Index
from rag_kit.models import embedding_model
from rag_kit.models.clients import QueryVectors
from rag_kit.models.embedding import embedding_name
from rag_kit.models.vector_cache import CachedEmbeddings
from rag_kit.retrieval.base import RagKitRetriever
from rag_kit.retrieval.exact import ExactVectorRetriever
from rag_kit.retrieval.hybrid import HybridRetriever
from rag_kit.retrieval.inner import call_retriever
from rag_kit.retrieval.rerank.scorers import MMRReranker

_WARM_UP = 3  # queries asked before times are measured: these are not of caches and lazy imports
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Pipeline:
    """A retriever, or any Runnable from a question to documents, to measure.

    ``arms`` are stages that must each bring documents, such as ``("bm25", "dense")``; ``settings`` is plain JSON.
    """

    name: str
    retriever: Any
    arms: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass
class Parts:
    """Parts of the built-in pipelines: one keyword index, one set of vectors, each made when asked for.

    Each retriever returns ``depth`` passages. ``embeddings`` is the model or its name, by default what
    ``embedding_model()`` finds; ``cache`` is a folder for vectors; ``progress`` gets ``(what, done, total)``.
    """

    documents: Sequence[Document]
    depth: int = 100
    embeddings: Embeddings | str | None = None
    cache: Path | str | None = None
    progress: Progress = lambda what, done, total: None

    def build(self, name: str, source: object | None = None) -> Pipeline:
        """Make a pipeline of a retriever or function (``source``); without one, a built-in or ``module:object``."""
        if source is None and name not in RECIPES:
            source = load_object(name)
        if source is not None:
            return Pipeline(name, self._as_retriever(name, source))
        recipe = RECIPES[name]
        settings: dict[str, Any] = {}
        if "bm25" in recipe.arms:
            analyzer: Any = getattr(self.index.analyzer, "settings", dict)()  # {} of a plain function
            scoring = {key: getattr(self.index, key) for key in ("k1", "b", "variant")}
            settings["bm25"] = {**scoring, "analyzer": analyzer}
        if "dense" in recipe.arms:
            settings["embeddings"] = embedding_name(self.model)
        return Pipeline(name, recipe.make(self), recipe.arms, {**settings, **recipe.settings})

    @cached_property
    def index(self) -> BM25Index:
        """The keyword index over all documents."""
        self.progress("keyword index", 0, len(self.documents))
        return BM25Index.from_documents(self.documents)

    @cached_property
    def bm25(self) -> RagKitRetriever:
        """The keyword arm."""
        return retrieval.BM25Retriever(index=self.index, k=self.depth, name="bm25")

    @cached_property
    def model(self) -> Embeddings:
        """The embedding model."""
        model = self.embeddings
        if model is None or isinstance(model, str):
            model = embedding_model(model)
        if model is None:
            raise ConfigurationError(
                "this pipeline needs an embedding model and there is none. Install one with "
                "`rag-kit models install e5`, or name one with RAG_KIT_EMBEDDING_MODEL or --embedding-model"
            )
        return model

    @cached_property
    def embedded(self) -> tuple[CachedEmbeddings, np.ndarray]:
        """The embedding model, which knows the indexed texts already, and the vectors of the documents."""
        cached = CachedEmbeddings(self.model, self.cache, progress=self.progress)
        return cached, cached.vectors([document.page_content for document in self.documents])

    @cached_property
    def dense(self) -> RagKitRetriever:
        """The dense arm, by exact cosines."""
        _, vectors = self.embedded
        return ExactVectorRetriever.from_documents(
            self.documents, self.model, vectors=vectors, k=self.depth, name="dense"
        )

    def _as_retriever(self, name: str, value: Any) -> Any:
        """Return a Runnable as it is, or what a function makes of the documents; refuse anything else."""
        if not isinstance(value, (Runnable, type)) and callable(value):
            value = value(list(self.documents))
        if isinstance(value, type) or not isinstance(value, Runnable):
            kind = f"the class {value.__name__}" if isinstance(value, type) else f"a {type(value).__name__}"
            raise InvalidInputError(
                f"pipeline {name!r} is {kind}; give an object that is a LangChain retriever, or a function from the "
                f"list of documents to one, such as {name}.from_documents"
            )
        return value


class Recipe(NamedTuple):
    """How to make a pipeline from the shared parts; its settings add to those of its arms."""

    make: Callable[[Parts], Any]
    arms: tuple[str, ...] = ()
    settings: Mapping[str, Any] = {}


def _fusion_recipe(retriever_class: type[Any] = retrieval.EnsembleRetriever, **settings: Any) -> Recipe:
    """Return a recipe that fuses BM25 and vector search; if one of them fails, the whole query does."""

    def make(parts: Parts) -> Any:
        depth, arms = parts.depth, [parts.bm25, parts.dense]
        return retriever_class(retrievers=arms, **settings, k=depth, fetch_k=depth, on_error="raise")

    return Recipe(make, ("bm25", "dense"), settings)


def _make_mmr(parts: Parts) -> Any:
    """Make a vector retriever whose passages are reranked to be less alike (MMR)."""
    depth, (embeddings, _) = parts.depth, parts.embedded
    return retrieval.RerankRetriever(
        retriever=parts.dense, reranker=MMRReranker(embeddings), k=depth, fetch_k=depth, on_error="raise"
    )


def _index_documents(retriever_class: Any, parts: Parts, **settings: Any) -> Any:
    return retriever_class.from_documents(parts.documents, k=parts.depth, **settings)


RECIPES: dict[str, Recipe] = {
    "bm25": Recipe(lambda parts: parts.bm25, ("bm25",)),
    "dense": Recipe(lambda parts: parts.dense, ("dense",)),
    "hybrid": _fusion_recipe(HybridRetriever)._replace(settings={"fusion": "convex", "feedback": 0.45}),
    "rrf": _fusion_recipe(fusion="rrf", rrf_k=60),
    "rrf-10": _fusion_recipe(fusion="rrf", rrf_k=10),
    "weighted-rrf": _fusion_recipe(fusion="rrf", rrf_k=60, weights=[0.6, 0.4]),
    "convex": _fusion_recipe(fusion="convex", weights=[0.5, 0.5]),
    "tfidf": Recipe(partial(_index_documents, retrieval.SparseRetriever, name="tf-idf")),
    "trigram": Recipe(partial(_index_documents, retrieval.TrigramRetriever, name="trigram")),
    "mmr": Recipe(_make_mmr, ("dense",), {"lambda_mult": 0.9}),
    "parent": Recipe(
        partial(_index_documents, retrieval.ParentDocumentRetriever, pipeline="bm25"),
        settings={"children": "bm25", "child_size": 400},
    ),
    "sentence-window": Recipe(
        partial(_index_documents, retrieval.SentenceWindowRetriever, pipeline="bm25"),
        settings={"children": "bm25", "window": 3},
    ),
}
"""Name -> recipe. ``hybrid`` is the kit's default; the others with both arms fuse otherwise, without feedback."""


def pipeline_sources(pipelines: Sequence[str] | Mapping[str, object]) -> dict[str, object | None]:
    """Map each name to the user's retriever or function; ``None`` for a built-in one or ``module:object``."""
    is_collection = isinstance(pipelines, (Mapping, Sequence)) and not isinstance(pipelines, (str, bytes))
    if not is_collection or not pipelines or not all(isinstance(name, str) for name in pipelines):
        raise InvalidInputError(
            f"pipelines is {pipelines!r:.80}; give a list with at least one of {', '.join(RECIPES)}, or name -> "
            "retriever"
        )
    sources = dict(pipelines) if isinstance(pipelines, Mapping) else dict.fromkeys(pipelines)
    if len(sources) != len(pipelines):
        raise InvalidInputError(f"pipelines is {pipelines!r:.200}; name each once")
    for name, source in sources.items():
        if source is None and name not in RECIPES and ":" not in name:
            raise InvalidInputError(
                f"unknown pipeline {name!r}; allowed are {', '.join(RECIPES)} and module:object, a retriever of your "
                "own or a function from documents to one"
            )
    return sources


@dataclass
class PipelineRun:
    """Results of one pipeline; mappings go by the query's id."""

    rankings: dict[str, list[str]] = field(default_factory=dict)  # document ids, best first, each once
    seconds: dict[str, float] = field(default_factory=dict)
    returned: dict[str, int] = field(default_factory=dict)  # number of passages
    span_hits: dict[str, float] = field(default_factory=dict)  # share of the gold spans, where there are some
    arms: Counter[str] = field(default_factory=Counter)  # stage -> queries to which it brought a document
    degraded: int = 0  # queries whose documents carry a note that something failed
    foreign: int = 0  # passages that belong to no document of the data set


def run_pipeline(
    pipeline: Pipeline,
    examples: Sequence[Example],
    corpus_ids: Collection[str],
    *,
    depth: int,
    spans: SpanRecall | None = None,
    kept: QueryVectors | None = None,
    progress: Progress = lambda what, done, total: None,
) -> PipelineRun:
    """Ask every query by ``invoke``, one after another, for ``depth`` passages.

    A pipeline, or arm of one, that brought nothing to any query, or only documents of another set, is an error.
    """
    for example in examples[:_WARM_UP]:
        _ask_pipeline(pipeline, example, depth)
    run, kept = PipelineRun(), kept or QueryVectors()
    for number, example in enumerate(examples, start=1):
        start, saved_before = time.perf_counter(), kept.saved_seconds
        documents = _ask_pipeline(pipeline, example, depth)
        # a vector kept from an earlier pipeline saves the seconds that it took: they are charged here, too
        run.seconds[example.id] = time.perf_counter() - start + (kept.saved_seconds - saved_before)
        _record_answer(run, example, documents, corpus_ids, spans)
        progress(pipeline.name, number, len(examples))
    _check_run(pipeline, run, len(examples))
    return run


def _ask_pipeline(pipeline: Pipeline, example: Example, depth: int) -> list[Document]:
    try:
        return call_retriever(pipeline.retriever, example.question, k=depth)
    except RagKitError:
        raise
    except Exception as error:
        raise RagKitError(
            f"the pipeline {pipeline.name!r} failed on query {example.id!r}: {type(error).__name__}: {error}"
        ) from error


def _record_answer(
    run: PipelineRun, example: Example, documents: Sequence[Document], corpus_ids: Collection[str], spans: Any
) -> None:
    """Add the passages returned for one query to the run: ranking, arms, degradation, share of gold spans in them."""
    ids = [str(document.metadata.get(CORPUS_ID, document.id)) for document in documents]
    stages: set[str] = set()
    notes: set[str] = set()
    for provenance in map(get_provenance, documents):
        stages.update(str(stage.get("stage")) for stage in provenance.get("stages", []))
        notes.update(provenance.get("notes", []))
    run.rankings[example.id] = list(dict.fromkeys(doc_id for doc_id in ids if doc_id in corpus_ids))
    run.returned[example.id] = len(documents)
    run.foreign += sum(doc_id not in corpus_ids for doc_id in ids)
    run.arms.update(name for name in stages if not name.startswith("fusion"))  # what was fused, not how
    run.degraded += any(note.startswith("degraded") for note in notes)  # as retrievers begin such a note
    if spans is not None and example.spans:
        pairs = zip(ids, documents, strict=True)
        passages = [Passage(doc_id, doc.page_content, doc.metadata) for doc_id, doc in pairs]
        run.span_hits[example.id] = spans.cell(example, passages).value or 0.0


def _check_run(pipeline: Pipeline, run: PipelineRun, count: int) -> None:
    """Refuse a run in which the pipeline, or an arm of it, found nothing, or only documents of another data set."""
    name, returned = f"the pipeline {pipeline.name!r}", sum(run.returned.values())
    if returned == 0:
        raise InvalidInputError(f"{name} returned nothing for any of {count} queries; its index may be empty")
    if run.foreign == returned:
        raise InvalidInputError(
            f"none of the documents that {name} returned is of this data set; keep Document.id, or "
            f"metadata[{CORPUS_ID!r}] where documents are split"
        )
    if silent := [arm for arm in pipeline.arms if not run.arms[arm]]:
        raise InvalidInputError(
            f"{name} ran, but {', '.join(silent)} brought no document to any of {count} queries; a fusion with a "
            "silent arm is not what its name says"
        )
