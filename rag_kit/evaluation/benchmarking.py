"""Measure pipelines on a retrieval data set; the code behind ``rag-kit benchmark``."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from rag_kit.errors import InvalidInputError
from rag_kit.evaluation._files import as_path, check_target, write_json, write_jsonl
from rag_kit.evaluation.dataset import load_dataset, qrels
from rag_kit.evaluation.examples import Example
from rag_kit.evaluation.metrics import RetrievalScores, require_ir_measures, retrieval_metrics
from rag_kit.evaluation.ours.span_recall import SpanRecall
from rag_kit.evaluation.pipelines import Parts
from rag_kit.evaluation.recipes import RECIPES, Pipeline
from rag_kit.evaluation.running import PipelineRun, run_pipeline
from rag_kit.evaluation.sets.evaluation_set import EvaluationSet
from rag_kit.evaluation.statistics import bootstrap_intervals

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

_LEVEL = 0.95
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
    chunk_overlap: int | None = None,
    span_budget: int = 3000,
    embeddings: Embeddings | str | None = None,
    cache: Path | str | None = None,
    resamples: int = 10_000,
    seed: int = 0,
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
        chunk_size: Split documents into chunks of at most so many characters; a document then ranks where its
            best chunk does. ``None``: whole documents.
        chunk_overlap: Characters that neighbouring chunks may share; default: a tenth of ``chunk_size``.
        span_budget: Characters a reader sees, for the recall of gold spans.
        embeddings: Embedding model or its name; default: what ``embedding_model()`` finds.
        cache: Folder that keeps vectors of documents between runs.
        resamples: Resamples of the bootstrap.
        seed: Seed of the bootstrap.
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
        >>> from rag_kit.evaluation import EvaluationSet, Example, ExactVectorRetriever, Passage
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
    out = None if out is None else as_path(out, "out")
    rows_out = None if rows_out is None else as_path(rows_out, "rows_out")
    check_target(out)
    check_target(rows_out)
    data = dataset if isinstance(dataset, EvaluationSet) else load_dataset(dataset)
    judged = qrels(data)
    asked = [data[query] for query in judged][:limit]
    if not asked:
        raise InvalidInputError(f"no query of {data.name!r} has a relevant document; nothing can be scored")
    documents = data.documents()
    if chunk_size is not None:
        from rag_kit.indexing import split

        chunk_overlap = chunk_size // 10 if chunk_overlap is None else chunk_overlap
        documents = split(documents, chunk_size=chunk_size, chunk_overlap=chunk_overlap)
    parts = Parts(
        documents,
        depth=depth,
        embeddings=_embeddings(embeddings, sources),
        cache=_cache(cache),
        progress=progress,
    )
    spans = _spans(data, asked, span_budget)

    known = {passage.id for passage in data.corpus or ()}
    entries: list[dict[str, Any]] = []
    rows: list[dict[str, Any]] = []
    for name, source in sources.items():
        start = perf_counter()
        pipeline = parts.build(name, source)
        built = perf_counter() - start
        run = run_pipeline(pipeline, asked, known, depth=depth, spans=spans, progress=progress)
        scores = retrieval_metrics(run.rankings, {example.id: judged[example.id] for example in asked})
        cells = _cells(scores, run, spans, resamples=resamples, seed=seed)
        entries.append(_entry(pipeline, run, cells, built, len(documents)))
        rows.extend(_rows(pipeline, run, scores, spans))
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
            "chunk_overlap": None if chunk_size is None else chunk_overlap,
            "interval": {"method": "percentile bootstrap", "level": _LEVEL, "n": resamples, "seed": seed},
        },
        "fingerprint": data.fingerprint(),
        "versions": _versions(),
        "machine": machine,
    }
    if rows_out is not None:
        write_jsonl(rows_out, rows)
    if out is not None:
        write_json(out, result)
    return result


def _sources(pipelines: Sequence[str] | Mapping[str, object]) -> dict[str, object | None]:
    if isinstance(pipelines, Mapping):
        sources = dict(pipelines)
    elif isinstance(pipelines, str):
        raise InvalidInputError(
            f"pipelines is the text {pipelines!r}; give a list, such as ['bm25', 'dense']"
        )
    elif not isinstance(pipelines, Sequence) or not all(isinstance(name, str) for name in pipelines):
        raise InvalidInputError(f"pipelines is {pipelines!r:.80}; give a list of names, or name -> retriever")
    else:
        sources = dict.fromkeys(pipelines)
        if len(sources) != len(pipelines):
            raise InvalidInputError(f"pipelines {list(pipelines)} names one twice; name each once")
    if not sources:
        raise InvalidInputError(f"no pipeline is named; give at least one of {', '.join(RECIPES)}")
    for name, source in sources.items():
        if source is None and name not in RECIPES and ":" not in name:
            Parts([]).build(name)  # raises, before the data set is read and anything is embedded
    return sources


def _spans(data: EvaluationSet, asked: Sequence[Example], budget: int) -> SpanRecall | None:
    """The recall of gold spans, where at least half of the answered questions have some."""
    with_spans = sum(1 for example in data if example.spans)
    answered = sum(1 for example in data if example.answers)
    if 2 * with_spans < answered or not any(example.spans for example in asked):
        return None
    return SpanRecall(budget, documents={passage.id: passage.text for passage in data.corpus or ()})


def _span_metric(spans: SpanRecall) -> str:
    return f"gold_span_recall@{spans.budget}"


def _check_settings(**settings: int | None) -> None:
    for name, value in settings.items():
        if value is not None and (type(value) is not int or value < 1):
            raise InvalidInputError(f"{name} is {value!r:.60}; give a whole number from 1")


def _embeddings(given: Embeddings | str | None, sources: Mapping[str, object | None]) -> Embeddings | None:
    """The model, made only when a built-in pipeline needs it."""
    if not any(source is None and name in ("dense", "hybrid") for name, source in sources.items()):
        return None
    if given is not None and not isinstance(given, str):
        return given
    from rag_kit.models import embedding_model

    return embedding_model(given)


def _cache(folder: Path | str | None) -> Any:
    from rag_kit.evaluation.embedding_cache import EmbeddingCache

    return None if folder is None else EmbeddingCache(folder)


def _cells(
    scores: RetrievalScores, run: PipelineRun, spans: SpanRecall | None, *, resamples: int, seed: int
) -> dict[str, dict[str, float]]:
    columns = {metric: scores.values(metric) for metric in scores.metrics}
    ends = bootstrap_intervals(columns, level=_LEVEL, n=resamples, seed=seed)
    means = scores.means()
    if spans is not None:  # fewer queries, so intervals of their own
        hits, name = list(run.span_hits.values()), _span_metric(spans)
        ends |= bootstrap_intervals({name: hits}, level=_LEVEL, n=resamples, seed=seed)
        means[name] = sum(hits) / len(hits)
    return {
        name: {"value": round(value, 6), "low": round(ends[name][0], 6), "high": round(ends[name][1], 6)}
        for name, value in means.items()
    }


def _entry(
    pipeline: Pipeline, run: PipelineRun, cells: Mapping[str, Any], build_seconds: float, passages: int
) -> dict[str, Any]:
    count = len(run.returned)
    most = max(run.returned.values())
    entry = {
        "pipeline": pipeline.name,
        **cells,
        **run.speed(),
        "build_seconds": round(build_seconds, 3),
        "passages_returned": {"mean": round(sum(run.returned.values()) / count, 2), "max": most},
        "arms": {arm: round(run.arms[arm] / count, 6) for arm in sorted(run.arms)},
        "settings": dict(pipeline.settings),
        "notes": _notes(run, count, most, passages),
    }
    return entry


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
    pipeline: Pipeline, run: PipelineRun, scores: RetrievalScores, spans: SpanRecall | None
) -> list[dict[str, Any]]:
    rows = []
    for query, values in scores.per_query.items():
        row: dict[str, Any] = {"pipeline": pipeline.name, "query": query, **values}
        if spans is not None and query in run.span_hits:
            row[_span_metric(spans)] = run.span_hits[query]
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
        return {"cpus": cpus, "load_per_cpu": None}
    return {"cpus": cpus, "load_per_cpu": load}
