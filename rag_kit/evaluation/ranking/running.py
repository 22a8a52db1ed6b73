"""Ask one pipeline every query, one at a time, and measure the times."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.documents import Document

from rag_kit.documents import get_provenance
from rag_kit.errors import InvalidInputError, RagKitError
from rag_kit.evaluation.examples import Example
from rag_kit.evaluation.ours.span_recall import SpanRecall
from rag_kit.evaluation.outputs import Passage
from rag_kit.evaluation.ranking.pipelines import Pipeline
from rag_kit.evaluation.sets.beir import CORPUS_ID
from rag_kit.models.clients import KeptVectors
from rag_kit.retrieval.inner import call_retriever

#: Queries asked before times are measured: caches, lazy imports and dictionaries are not what is measured.
_WARM_UP = 3

Progress = Callable[[str, int, int], None]


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
    kept: KeptVectors | None = None,
    progress: Progress = lambda what, done, total: None,
) -> PipelineRun:
    """Ask every query by ``invoke``, one after another, for ``depth`` passages.

    A pipeline, or arm of one, that brought nothing to any query, or only documents of another set, is an error.
    """
    for example in examples[:_WARM_UP]:
        _ask_pipeline(pipeline, example, depth)
    run, kept = PipelineRun(), kept or KeptVectors()
    for number, example in enumerate(examples, start=1):
        start, saved = time.perf_counter(), kept.saved
        documents = _ask_pipeline(pipeline, example, depth)
        # kept.saved grows by the seconds that embedding this query took for an earlier pipeline: they are added
        run.seconds[example.id] = time.perf_counter() - start + kept.saved - saved
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
    """Add the passages found for one query to the run: ranking, arms, degradations, share of gold spans found."""
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
    run.degraded += any(note.startswith("degraded") for note in notes)
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
