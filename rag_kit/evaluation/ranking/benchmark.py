"""Retrieval data sets, and how well pipelines do on them; the code behind ``rag-kit benchmark``."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_kit.errors import InvalidInputError
from rag_kit.evaluation._files import check_target, write_json, write_jsonl
from rag_kit.evaluation.examples import Example
from rag_kit.evaluation.ours.span_recall import SpanRecall
from rag_kit.evaluation.ranking.metrics import qrels, require_ir_measures, retrieval_metrics
from rag_kit.evaluation.runs.gold import MAX_MISSING, check_gold, check_share
from rag_kit.evaluation.runs.results import describe_missing
from rag_kit.evaluation.runs.run import versions
from rag_kit.evaluation.sets.beir import read_beir
from rag_kit.evaluation.sets.evaluation_set import EvaluationSet
from rag_kit.evaluation.statistics import bootstrap_interval, latency_percentiles
from rag_kit.indexing import split
from rag_kit.indexing.files import as_path
from rag_kit.models.clients import keep_query_vectors
from rag_kit.retrieval.fields import check_count

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

    from rag_kit.evaluation.ranking.pipelines import PipelineRun, Progress

_LEVEL = 0.95
_RESAMPLES = 10_000
_SPAN_BUDGET = 3000  # characters a reader sees, for the recall of gold spans


def load_dataset(folder: Path | str, *, split: str = "test") -> EvaluationSet:
    """Read and check a data set in BEIR's layout, with ``qa.jsonl`` where there is one.

    The documents are the corpus: title, a newline, text. Grades, accepted answers and every offset where these stand
    (any one will do) are in the examples.

    Args:
        folder: Folder with ``corpus.jsonl``, ``queries.jsonl`` (both also ``.gz``) and ``qrels.tsv`` or
            ``qrels/<split>.tsv``; ``qa.jsonl`` holds ``id``, ``answers``, ``doc_ids`` and ``answer_starts``.
        split: Which file of ``qrels/`` to read where the set has that folder and no ``qrels.tsv``.

    Raises:
        InvalidInputError: If a file is missing, empty or malformed (file and line are named), an id comes twice, or a
            judgement or gold answer names an unknown document or query.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as name:
        ...     folder = Path(name)
        ...     _ = (folder / "corpus.jsonl").write_text('{"_id": "d1", "title": "Tides", "text": "Moon."}')
        ...     _ = (folder / "queries.jsonl").write_text('{"_id": "q1", "text": "What moves the sea?"}')
        ...     _ = (folder / "qrels.tsv").write_text("query-id\\tcorpus-id\\tscore\\nq1\\td1\\t1\\n")
        ...     dataset = load_dataset(folder)
        >>> dataset["q1"].relevant, dataset.corpus[0].text
        ({'d1': 1}, 'Tides\\nMoon.')
    """
    name, examples, corpus = read_beir(folder, split)
    return EvaluationSet(name, examples, corpus=corpus)


def benchmark(
    dataset: EvaluationSet | Path | str,
    pipelines: Sequence[str] | Mapping[str, object],
    *,
    out: Path | None = None,
    rows_out: Path | None = None,
    limit: int | None = None,
    depth: int = 100,
    chunk_size: int | None = None,
    embeddings: Embeddings | str | None = None,
    cache: Path | str | None = None,
    max_missing_gold: float | None = MAX_MISSING,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Measure how well, and how fast, each pipeline finds the relevant documents.

    Only queries with a relevant document are asked; the others are counted. Times are of ``invoke``, embedding the
    query included, one query after another, after three to warm up. A query is embedded once for all pipelines; each is
    charged with the time that it took.

    Args:
        dataset: A set with a corpus, or the folder of one (see :func:`load_dataset`).
        pipelines: Names (``"bm25"``, ``"dense"``, ``"hybrid"``, ``"module:object"``), or name -> retriever or
            function from a list of documents to a retriever.
        out: File for the result, written as a whole when all is done.
        rows_out: JSON Lines file with one row for each pipeline and query.
        limit: Ask only the first so many queries with a relevant document.
        depth: Passages of a ranking that count.
        chunk_size: Most characters of a chunk (neighbours may share a tenth); a document then ranks where its best
            chunk does. ``None``: whole documents.
        embeddings: Embedding model or its name; default: what ``embedding_model()`` finds.
        cache: Folder that keeps vectors of documents between runs.
        max_missing_gold: Most of the gold (ids and spans) that the corpus may lack, as a share; ``None``: not
            looked up.
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
        >>> from rag_kit.evaluation.outputs import Passage
        >>> corpus = [Passage("s", "sun"), Passage("m", "moon")]
        >>> dataset = EvaluationSet("sky", [Example("q", "moon", relevant={"m": 1})], corpus=corpus)
        >>> def mine(documents):
        ...     return ExactVectorRetriever.from_documents(documents, DeterministicFakeEmbedding(size=8))
        >>> result = benchmark(dataset, {"mine": mine})
        >>> result["pipelines"][0]["ndcg@10"]
        {'value': 1.0, 'low': 1.0, 'high': 1.0}
    """
    from rag_kit.evaluation.ranking.pipelines import Parts, pipeline_sources, run_pipeline

    require_ir_measures()
    cpus = os.cpu_count() or 1
    load = round(os.getloadavg()[0] / cpus, 2) if hasattr(os, "getloadavg") else None  # not on Windows
    sources = pipeline_sources(pipelines)
    for label, number in {"limit": limit, "depth": depth, "chunk_size": chunk_size}.items():
        if number is not None:
            check_count(label, number)
    check_share(max_missing_gold)
    out_file, rows_file = (None if path is None else as_path(path, "out") for path in (out, rows_out))
    check_target(out_file)
    check_target(rows_file)
    data = dataset if isinstance(dataset, EvaluationSet) else load_dataset(dataset)
    grades_by_query = qrels(data)
    queries = [data[query] for query in grades_by_query][:limit]
    judged = {example.id: grades_by_query[example.id] for example in queries}
    if not queries:
        raise InvalidInputError(f"no query of {data.name!r} has a relevant document; nothing can be scored")
    missing: dict[str, list[str]] = {}
    if data.corpus and max_missing_gold is not None:
        missing = check_gold(queries, [data.corpus], max_missing_gold)
    documents = data.documents()
    if chunk_size is not None:
        documents = split(documents, chunk_size=chunk_size, chunk_overlap=chunk_size // 10)
    vectors = None if cache is None else as_path(cache, "cache")
    show = progress or (lambda what, done, total: None)  # nobody wants to see it
    parts = Parts(documents, depth, embeddings, vectors, show)
    spans = _make_span_metric(data, queries)
    doc_ids = {passage.id for passage in data.corpus or ()}
    entries: list[dict[str, Any]] = []
    rows: list[dict[str, Any]] = []
    with keep_query_vectors() as kept:
        for name, source in sources.items():
            start = time.perf_counter()
            pipeline = parts.build(name, source)
            build_seconds = round(time.perf_counter() - start, 3)
            run = run_pipeline(pipeline, queries, doc_ids, depth=depth, spans=spans, kept=kept, progress=show)
            values = retrieval_metrics(run.rankings, judged)
            for query, share in run.span_hits.items():
                values[query][f"gold_span_recall@{_SPAN_BUDGET}"] = share
            notes = [describe_missing(missing), *_run_notes(run, len(documents))]
            entries.append({
                "pipeline": name, **_metric_means(values), **_run_figures(run),
                "build_seconds": build_seconds, "settings": dict(pipeline.settings),
                "notes": [note for note in notes if note],
            })  # fmt: skip
            for query, row in values.items():
                timing = {"ms": round(run.seconds[query] * 1000, 3), "ranking": run.rankings[query]}
                rows.append({"pipeline": name, "query": query, **row, **timing})
    result = {
        "dataset": data.name, "pipelines": entries,
        "counts": {
            "documents": len(doc_ids), "passages": len(documents), "queries": len(data),
            "queries_without_relevant_documents": len(data) - len(grades_by_query), "queries_scored": len(queries),
            "queries_with_gold_span": sum(1 for example in queries if example.spans) if spans else 0,
        },
        "settings": {
            "depth": depth, "limit": limit, "chunk_size": chunk_size,
            "chunk_overlap": None if chunk_size is None else chunk_size // 10,
            "interval": {"method": "percentile bootstrap", "level": _LEVEL, "n": _RESAMPLES, "seed": 0},
        },
        "fingerprint": data.fingerprint(), "versions": versions(),
        "machine": {"cpus": cpus, "load_per_cpu": load},  # times taken on a busy machine are too long
    }  # fmt: skip
    if rows_file is not None:
        write_jsonl(rows_file, rows)
    if out_file is not None:
        write_json(out_file, result)
    return result


def _make_span_metric(data: EvaluationSet, queries: Sequence[Example]) -> SpanRecall | None:
    """Return the recall of gold spans; ``None`` if no question has spans."""
    if not any(example.spans for example in queries):
        return None
    return SpanRecall(_SPAN_BUDGET, documents={passage.id: passage.text for passage in data.corpus or ()})


def _metric_means(values: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
    """Return mean and interval of every metric from query -> metric -> value, over the queries that have a value."""
    columns: dict[str, list[float]] = {}
    for row in values.values():
        for metric, value in row.items():
            columns.setdefault(metric, []).append(value)
    means = {}
    for metric, column in columns.items():
        low, high = bootstrap_interval(column, level=_LEVEL, n=_RESAMPLES)
        mean = math.fsum(column) / len(column)
        means[metric] = {"value": round(mean, 6), "low": round(low, 6), "high": round(high, 6)}
    return means


def _run_figures(run: PipelineRun) -> dict[str, Any]:
    """Return times, numbers of passages, and the share of queries for which each arm found some."""
    count, seconds = len(run.returned), list(run.seconds.values())
    p50, p95 = latency_percentiles(seconds)
    mean = round(sum(run.returned.values()) / count, 2)
    return {
        "p50_ms": round(1000 * (p50 or 0.0), 3),  # ``or``: for mypy, there is a query
        "p95_ms": round(1000 * (p95 or 0.0), 3),
        "queries_per_second": round(count / max(sum(seconds), 1e-9), 1),  # a clock may stand still
        "passages_returned": {"mean": mean, "max": max(run.returned.values())},
        "arms": {arm: round(run.arms[arm] / count, 6) for arm in sorted(run.arms)},
    }


def _run_notes(run: PipelineRun, passages: int) -> list[str]:
    """Return warnings for a reader of the table, such as that rankings end before rank 10 of ``passages``."""
    notes = []
    most = max(run.returned.values())
    if most < min(10, passages):
        notes.append(f"returned at most {most} passages a query: metrics at a greater rank count only those")
    if run.degraded:
        count = len(run.returned)
        notes.append(f"{run.degraded} of {count} queries were answered without a part that failed")
    if run.foreign:
        notes.append(f"{run.foreign} passages belong to no document of the data set and were not counted")
    return notes
