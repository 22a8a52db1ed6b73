"""Measure pipelines on a retrieval data set; the code behind ``rag-kit benchmark``."""

from __future__ import annotations

import os
import platform
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_kit.documents import get_provenance
from rag_kit.errors import InvalidInputError, RagKitError
from rag_kit.evaluation._files import as_path, check_target, write_json, write_jsonl
from rag_kit.evaluation.dataset import load_dataset, qrels
from rag_kit.evaluation.examples import Example
from rag_kit.evaluation.ours.span_recall import SpanRecall
from rag_kit.evaluation.outputs import Passage
from rag_kit.evaluation.ranking.metrics import RetrievalScores, require_ir_measures, retrieval_metrics
from rag_kit.evaluation.ranking.pipelines import RECIPES, Parts, Pipeline, check_name
from rag_kit.evaluation.sets.beir import CORPUS_ID
from rag_kit.evaluation.sets.evaluation_set import EvaluationSet
from rag_kit.evaluation.statistics import bootstrap_intervals

if TYPE_CHECKING:
    from langchain_core.documents import Document
    from langchain_core.embeddings import Embeddings

_LEVEL = 0.95
_SEED = 0
_WARM_UP = 3
"""Queries asked before the clock runs: caches, lazy imports and dictionaries are not what is measured."""

Progress = Callable[[str, int, int], None]


def benchmark(
    dataset: EvaluationSet | Path | str,
    pipelines: Sequence[str] | Mapping[str, object],
    *,
    out: Path | None = None,
    rows_out: Path | None = None,
    limit: int | None = None,
    depth: int = 100,
    chunk_size: int | None = None,
    span_budget: int = 3000,
    embeddings: Embeddings | str | None = None,
    cache: Path | str | None = None,
    resamples: int = 10_000,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Measure how well, and how fast, each pipeline finds the relevant documents.

    Only queries with a relevant document are asked; the others are counted. Times are of ``invoke``, one
    query after another, after three queries of warming up; they include embedding the query.

    Args:
        dataset: A set with a corpus, or the folder of one (see :func:`load_dataset`).
        pipelines: Names (``"bm25"``, ``"dense"``, ``"hybrid"``, ``"module:object"``), or name -> retriever or
            function from a list of documents to a retriever.
        out: File for the result, written as a whole when all is done.
        rows_out: JSON Lines file with one row for each pipeline and query.
        limit: Ask only the first so many queries with a relevant document.
        depth: Passages of a ranking that count.
        chunk_size: Split documents into chunks of at most so many characters, of which neighbours may share a
            tenth; a document then ranks where its best chunk does. ``None``: whole documents.
        span_budget: Characters a reader sees, for the recall of gold spans.
        embeddings: Embedding model or its name; default: what ``embedding_model()`` finds.
        cache: Folder that keeps vectors of documents between runs.
        resamples: Resamples of the bootstrap.
        progress: Called with ``(what, done, total)``.

    Returns:
        ``{"dataset": name, "pipelines": [{"pipeline": name, "ndcg@10": {"value", "low", "high"}, ...,
        "p50_ms", "p95_ms", "queries_per_second"}], ...}`` with counts, settings and versions.

    Raises:
        InvalidInputError: If the data set is malformed, a pipeline unknown or a setting out of range.
        MissingExtraError: If ir-measures is not installed.
        ConfigurationError: If a pipeline needs an embedding model and there is none.
        RagKitError: If a pipeline fails on a query.

    Example:
        >>> from langchain_core.embeddings import DeterministicFakeEmbedding
        >>> from rag_kit.retrieval.exact import ExactVectorRetriever
        >>> corpus = [Passage("s", "sun"), Passage("m", "moon")]
        >>> dataset = EvaluationSet("sky", [Example("q", "moon", relevant={"m": 1})], corpus=corpus)
        >>> def mine(documents):
        ...     return ExactVectorRetriever.from_documents(documents, DeterministicFakeEmbedding(size=8))
        >>> result = benchmark(dataset, {"mine": mine})
        >>> result["pipelines"][0]["ndcg@10"]
        {'value': 1.0, 'low': 1.0, 'high': 1.0}
    """
    require_ir_measures()
    machine = _machine()
    sources = _sources(pipelines)
    _check_settings(limit=limit, depth=depth, chunk_size=chunk_size, span_budget=span_budget)
    targets = [None if path is None else as_path(path, "out") for path in (out, rows_out)]
    for target in targets:
        check_target(target)
    data = dataset if isinstance(dataset, EvaluationSet) else load_dataset(dataset)
    judged = qrels(data)
    asked = [data[query] for query in judged][:limit]
    if not asked:
        raise InvalidInputError(f"no query of {data.name!r} has a relevant document; nothing can be scored")
    documents = data.documents()
    chunk_overlap = None if chunk_size is None else chunk_size // 10
    if chunk_size is not None:
        from rag_kit.indexing import split

        documents = split(documents, chunk_size=chunk_size, chunk_overlap=chunk_size // 10)
    parts = Parts(
        documents,
        depth=depth,
        embeddings=embeddings,
        cache=None if cache is None else as_path(cache, "cache"),
        progress=progress,
    )
    spans = _span_recall(data, asked, span_budget)
    known = {passage.id for passage in data.corpus or ()}
    entries: list[dict[str, Any]] = []
    rows: list[dict[str, Any]] = []
    for name, source in sources.items():
        start = time.perf_counter()
        pipeline = parts.build(name, source)
        built = time.perf_counter() - start
        run = run_pipeline(pipeline, asked, known, depth=depth, spans=spans, progress=progress)
        scores = retrieval_metrics(run.rankings, {example.id: judged[example.id] for example in asked})
        cells = _cells(scores, run, span_budget, resamples)
        entries.append(_entry(pipeline, run, cells, built, len(documents)))
        rows.extend(_rows(pipeline, run, scores, span_budget))
    result = {
        "dataset": data.name,
        "pipelines": entries,
        "counts": {
            "documents": len(known),
            "passages": len(documents),
            "queries": len(data),
            "queries_without_relevant_documents": len(data) - len(judged),
            "queries_scored": len(asked),
            "queries_with_gold_span": sum(1 for example in asked if example.spans) if spans else 0,
        },
        "settings": {
            "depth": depth,
            "limit": limit,
            "chunk_size": chunk_size,
            "chunk_overlap": chunk_overlap,
            "interval": {"method": "percentile bootstrap", "level": _LEVEL, "n": resamples, "seed": _SEED},
        },
        "fingerprint": data.fingerprint(),
        "versions": _versions(),
        "machine": machine,
    }
    if targets[1] is not None:
        write_jsonl(targets[1], rows)
    if targets[0] is not None:
        write_json(targets[0], result)
    return result


def _sources(pipelines: Sequence[str] | Mapping[str, object]) -> dict[str, object | None]:
    """Name -> retriever or function, ``None`` for a name alone; checked before anything is read."""
    if isinstance(pipelines, Mapping):
        sources = dict(pipelines)
    elif isinstance(pipelines, (str, bytes)) or not isinstance(pipelines, Sequence):
        raise InvalidInputError(
            f"pipelines is {pipelines!r:.80}; give a list of names, such as ['bm25'], or name -> retriever"
        )
    else:
        sources = dict.fromkeys(pipelines)
    if not sources or len(sources) != len(pipelines) or not all(isinstance(name, str) for name in sources):
        raise InvalidInputError(
            f"pipelines is {pipelines!r:.200}; name at least one of {', '.join(RECIPES)}, each once"
        )
    for name, source in sources.items():
        check_name(name, source)
    return sources


def _check_settings(**settings: int | None) -> None:
    for name, value in settings.items():
        if value is not None and (type(value) is not int or value < 1):
            raise InvalidInputError(f"{name} is {value!r:.60}; give a whole number from 1")


def _span_recall(data: EvaluationSet, asked: Sequence[Example], budget: int) -> SpanRecall | None:
    """The recall of gold spans, where at least half of the answered questions have some."""
    with_spans = sum(1 for example in data if example.spans)
    answered = sum(1 for example in data if example.answers)
    if 2 * with_spans < answered or not any(example.spans for example in asked):
        return None
    return SpanRecall(budget, documents={passage.id: passage.text for passage in data.corpus or ()})


@dataclass
class PipelineRun:
    """What one pipeline returned.

    Args:
        rankings: Query id -> document ids, best first, each once.
        seconds: Query id -> seconds of its call.
        returned: Query id -> number of passages.
        span_hits: Query id -> share of its gold spans that came back, for the queries with gold spans.
        arms: Stage -> number of queries to which it brought at least one document.
        branches: Numbers of the fused retrievers that brought a document to any query.
        noted: Number of queries whose documents carry any note.
        degraded: Number of queries whose documents carry a note that something failed.
        foreign: Number of passages that belong to no document of the data set.
    """

    rankings: dict[str, list[str]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    returned: dict[str, int] = field(default_factory=dict)
    span_hits: dict[str, float] = field(default_factory=dict)
    arms: Counter[str] = field(default_factory=Counter)
    branches: set[int] = field(default_factory=set)
    noted: int = 0
    degraded: int = 0
    foreign: int = 0


def run_pipeline(
    pipeline: Pipeline,
    examples: Sequence[Example],
    known: Collection[str],
    *,
    depth: int,
    spans: SpanRecall | None = None,
    progress: Progress | None = None,
) -> PipelineRun:
    """Ask every query by ``invoke``, one after another, with the clock running.

    Args:
        pipeline: What is asked.
        examples: What is asked for.
        known: Ids of the corpus.
        depth: Passages of a ranking that count; also asked for where the retriever takes ``k`` with a call.
        spans: Measure the recall of gold spans as well.
        progress: Called with ``(pipeline, done, total)``.

    Raises:
        RagKitError: If a call fails: the kit's own errors as they are, others with the query's id.
        InvalidInputError: If the pipeline returns something else than documents of the data set, nothing at
            all, or if one of its arms brought nothing to any query.
    """
    for example in examples[:_WARM_UP]:
        _ask(pipeline, example, depth)
    run = PipelineRun()
    for number, example in enumerate(examples, start=1):
        start = time.perf_counter()
        documents = _ask(pipeline, example, depth)
        run.seconds[example.id] = time.perf_counter() - start
        _note(run, example, documents, known, spans)
        if progress:
            progress(pipeline.name, number, len(examples))
    _check(pipeline, run, len(examples))
    return run


def _ask(pipeline: Pipeline, example: Example, depth: int) -> list[Document]:
    from rag_kit.retrieval.compose import call_retriever

    try:
        return call_retriever(pipeline.retriever, example.question, k=depth)
    except RagKitError:
        raise
    except Exception as error:
        raise RagKitError(
            f"the pipeline {pipeline.name!r} failed on query {example.id!r}: {type(error).__name__}: {error}"
        ) from error


def _note(
    run: PipelineRun,
    example: Example,
    documents: Sequence[Document],
    known: Collection[str],
    spans: SpanRecall | None,
) -> None:
    ids = [str(document.metadata.get(CORPUS_ID, document.id)) for document in documents]
    records = [get_provenance(document) for document in documents]
    stages = [stage for record in records for stage in record.get("stages", [])]
    notes = {note for record in records for note in record.get("notes", [])}
    run.rankings[example.id] = list(dict.fromkeys(doc_id for doc_id in ids if doc_id in known))
    run.returned[example.id] = len(documents)
    run.foreign += sum(1 for doc_id in ids if doc_id not in known)
    names = {str(stage.get("stage")) for stage in stages}
    run.arms.update(name for name in names if not name.startswith("fusion"))
    run.branches.update(stage["branch"] for stage in stages if isinstance(stage.get("branch"), int))
    run.noted += bool(notes)
    run.degraded += any(note.startswith("degraded") for note in notes)
    if spans is not None and example.spans:
        found = [Passage(i, d.page_content, d.metadata) for i, d in zip(ids, documents, strict=True)]
        run.span_hits[example.id] = spans.cell(example, found).value or 0.0


def _check(pipeline: Pipeline, run: PipelineRun, count: int) -> None:
    """Refuse results that only look like some: silence of the whole, of an arm, or foreign documents."""
    returned = sum(run.returned.values())
    if returned == 0:
        raise InvalidInputError(
            f"the pipeline {pipeline.name!r} returned nothing for any of {count} queries; its index may be empty"
        )
    if run.foreign == returned:
        raise InvalidInputError(
            f"none of the documents that the pipeline {pipeline.name!r} returned is of this data set; keep "
            f"Document.id, or metadata[{CORPUS_ID!r}] where documents are split"
        )
    silent = [arm for arm in pipeline.arms if not run.arms[arm]] or _silent_branches(pipeline, run)
    if silent:
        raise InvalidInputError(
            f"the pipeline {pipeline.name!r} ran, but {', '.join(silent)} brought no document to any of {count} "
            "queries; a fusion with a silent arm is not what its name says"
        )


def _silent_branches(pipeline: Pipeline, run: PipelineRun) -> list[str]:
    """Retrievers of a user's own fusion that were never seen, while every answer says that one is missing."""
    from rag_kit.retrieval import EnsembleRetriever

    fusion = pipeline.retriever
    answered = sum(1 for count in run.returned.values() if count)
    if not isinstance(fusion, EnsembleRetriever) or callable(fusion.weights) or run.noted < answered:
        return []
    weights = fusion.weights or [1.0] * len(fusion.retrievers)
    return [
        f"{retriever.get_name()} (number {number})"
        for number, (retriever, weight) in enumerate(zip(fusion.retrievers, weights, strict=True), start=1)
        if weight and number not in run.branches
    ]


def _cells(
    scores: RetrievalScores, run: PipelineRun, span_budget: int, resamples: int
) -> dict[str, dict[str, float]]:
    """Mean and interval of every metric; of the spans over fewer queries, so with intervals of their own."""
    columns = {metric: scores.values(metric) for metric in scores.metrics}
    ends = bootstrap_intervals(columns, level=_LEVEL, n=resamples, seed=_SEED)
    means = scores.means()
    if run.span_hits:
        hits = {f"gold_span_recall@{span_budget}": list(run.span_hits.values())}
        ends |= bootstrap_intervals(hits, level=_LEVEL, n=resamples, seed=_SEED)
        means |= {name: sum(values) / len(values) for name, values in hits.items()}
    return {
        name: {"value": round(value, 6), "low": round(ends[name][0], 6), "high": round(ends[name][1], 6)}
        for name, value in means.items()
    }


def _entry(
    pipeline: Pipeline, run: PipelineRun, cells: Mapping[str, Any], build_seconds: float, passages: int
) -> dict[str, Any]:
    import numpy as np

    count, most = len(run.returned), max(run.returned.values())
    times = np.array(list(run.seconds.values()))
    p50, p95 = np.quantile(times, [0.5, 0.95]) * 1000
    return {
        "pipeline": pipeline.name,
        **cells,
        "p50_ms": round(float(p50), 3),
        "p95_ms": round(float(p95), 3),
        "queries_per_second": round(count / max(float(times.sum()), 1e-9), 1),
        "build_seconds": round(build_seconds, 3),
        "passages_returned": {"mean": round(sum(run.returned.values()) / count, 2), "max": most},
        "arms": {arm: round(run.arms[arm] / count, 6) for arm in sorted(run.arms)},
        "settings": dict(pipeline.settings),
        "notes": _notes(run, count, most, passages),
    }


def _notes(run: PipelineRun, count: int, most: int, passages: int) -> list[str]:
    notes = []
    if most < min(10, passages):
        notes.append(f"returned at most {most} passages a query: metrics at a greater rank count only those")
    if run.degraded:
        notes.append(f"{run.degraded} of {count} queries were answered without a part that failed")
    if run.foreign:
        notes.append(f"{run.foreign} passages belong to no document of the data set and were not counted")
    return notes


def _rows(
    pipeline: Pipeline, run: PipelineRun, scores: RetrievalScores, span_budget: int
) -> list[dict[str, Any]]:
    rows = []
    for query, values in scores.per_query.items():
        row: dict[str, Any] = {"pipeline": pipeline.name, "query": query, **values}
        if query in run.span_hits:
            row[f"gold_span_recall@{span_budget}"] = run.span_hits[query]
        row["ms"] = round(run.seconds[query] * 1000, 3)
        row["ranking"] = run.rankings[query]
        rows.append(row)
    return rows


def _versions() -> dict[str, str]:
    names = ("rag-kit", "ir-measures", "langchain-core", "numpy")
    return {"python": platform.python_version(), **{name: version(name) for name in names}}


def _machine() -> dict[str, float | int | None]:
    """Cores, and what kept each busy before: times taken on a busy machine are too long."""
    cpus = os.cpu_count() or 1
    try:
        load = round(os.getloadavg()[0] / cpus, 2)
    except (AttributeError, OSError):  # not on Windows
        load = None
    return {"cpus": cpus, "load_per_cpu": load}
