"""Parent-document and sentence-window retrieval against plain chunks, at an equal budget of characters.

python benchmarks/quality_parents.py                             every arm, keyword search
python benchmarks/quality_parents.py --pipelines bm25 dense      with dense search as well (vectors are cached)

A question counts when its gold answer lies wholly within one passage inside the first 3,000 characters that come
back. Each arm that returns more than it searches stands beside plain chunks of the size that it returns, and beside
the best plain size. covidqa: long articles. timeqa_slice: its paragraphs put together to the pages they are from.
"""

from __future__ import annotations

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import argparse
import json
import math
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from langchain_core.documents import Document

from rag_kit.evaluation import EvaluationSet, Example, load_dataset
from rag_kit.evaluation.examples import GoldSpan
from rag_kit.evaluation.ours.span_recall import SpanRecall
from rag_kit.evaluation.outputs import Passage
from rag_kit.evaluation.ranking.metrics import qrels
from rag_kit.evaluation.sets.beir import CORPUS_ID
from rag_kit.evaluation.statistics import bootstrap_interval
from rag_kit.indexing import DocumentIndex, split
from rag_kit.models.vector_cache import CachedEmbeddings
from rag_kit.retrieval import ParentDocumentRetriever, SentenceWindowRetriever, index_retriever

ROOT = Path(__file__).resolve().parent.parent
RESULT = ROOT / "benchmarks" / "results" / "parents.json"
BUDGET = 3000
PLAIN = (250, 400, 500, 750, 1000, 1500, 2000, 3000)
PARENTS = ((1000, 250), (1000, 400), (2000, 400))
WINDOWS = (1, 2, 3, 5)
DENSE = {"plain": ((400,), (1000,)), "parent": ((1000, 400),), "window": ((2,),)}


@dataclass(frozen=True)
class Arm:
    """One way to retrieve.

    Attributes:
        kind: ``plain``, ``parent`` or ``window``.
        name: For people.
        make: Index -> retriever that returns k passages; writes the documents first.
        nominal: Characters that a passage has about; decides how many are asked for.
    """

    kind: str
    name: str
    make: Callable[[DocumentIndex, Sequence[Document], str, int], Any]
    nominal: int


def plain(size: int) -> Arm:
    def make(index: DocumentIndex, documents: Sequence[Document], pipeline: str, k: int) -> Any:
        if not index.ids():
            index.upsert(split(documents, chunk_size=size, chunk_overlap=0))
        return index_retriever(index, pipeline, k=k)

    return Arm("plain", f"plain {size}", make, size)


def _family(
    cls: Any, index: DocumentIndex, documents: Sequence[Document], pipeline: str, k: int, **fields: Any
) -> Any:
    retriever = cls(index=index, pipeline=pipeline, k=k, **fields)
    if not index.ids():
        retriever.upsert(documents)
    return retriever


def parent(size: int, child: int) -> Arm:
    def make(index: DocumentIndex, documents: Sequence[Document], pipeline: str, k: int) -> Any:
        fields = {"parent_size": size, "child_size": child}
        return _family(ParentDocumentRetriever, index, documents, pipeline, k, **fields)

    return Arm("parent", f"parent {size}, children {child}", make, size)


def window(around: int) -> Arm:
    def make(index: DocumentIndex, documents: Sequence[Document], pipeline: str, k: int) -> Any:
        return _family(SentenceWindowRetriever, index, documents, pipeline, k, window=around)

    return Arm("window", f"sentence window {around}", make, 150 * (2 * around + 1))


def arms(pipeline: str) -> list[Arm]:
    every = {
        "plain": [(plain, (size,)) for size in PLAIN],
        "parent": [(parent, sizes) for sizes in PARENTS],
        "window": [(window, (around,)) for around in WINDOWS],
    }
    chosen: list[Arm] = []
    for kind, makers in every.items():
        for maker, sizes in makers:
            if pipeline == "bm25" or sizes in DENSE[kind]:
                chosen.append(maker(*sizes))
    return chosen


def pages(dataset: EvaluationSet) -> EvaluationSet:
    """The paragraphs of a page as one document; gold spans keep their places."""
    texts: dict[str, str] = {}
    heads: dict[str, str] = {}
    where: dict[str, tuple[str, int]] = {}
    for paragraph in dataset.corpus or ():
        page, title = str(paragraph.metadata["page"]), str(paragraph.metadata.get("title", ""))
        before = texts.get(page, "")
        start = len(before) + 2 if before else 0
        text = paragraph.text.removeprefix(f"{title}\n")
        texts[page] = f"{before}\n\n{text}" if before else text
        heads[page] = f"{title}\n" if title else ""
        where[paragraph.id] = (page, start - len(heads[page]))
    examples = []
    for example in dataset:
        places = [
            (where[span.document][0], span.text, where[span.document][1] + (span.start or 0))
            for span in example.spans
        ]
        page = places[0][0] if places else ""
        spans = tuple(
            GoldSpan(page, text, len(heads[page]) + start)
            for on, text, start in places
            if on == page and start >= 0
        )
        if spans:
            relevant = {page: 1}
            examples.append(
                Example(example.id, example.question, answers=example.answers, relevant=relevant, spans=spans)
            )
    corpus = [
        Passage(page, heads[page] + text, {"title": heads[page].strip(), CORPUS_ID: page})
        for page, text in texts.items()
    ]
    return EvaluationSet(dataset.name, examples, corpus=corpus)


class Known(CachedEmbeddings):
    """Vectors of the folder, made once a text."""

    def __init__(self, folder: Path | str) -> None:
        from rag_kit.models import embedding_model

        super().__init__(embedding_model("minilm"), folder)

    def learn(self, texts: Sequence[str]) -> None:
        fresh = sorted({text for text in texts if text not in self._known})
        if fresh:
            self.vectors(fresh)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.learn(texts)
        return super().embed_documents(texts)

    def embed_query(self, text: str) -> list[float]:
        return self._known[text].tolist()


@contextmanager
def built(
    arm: Arm, documents: Sequence[Document], pipeline: str, model: Known | None
) -> Iterator[Callable[[int], Any]]:
    """A written index; gives retrievers for any k."""
    with tempfile.TemporaryDirectory() as folder:
        if model is not None:  # all texts in one call, so that the cache holds them as one
            with DocumentIndex.create(Path(folder) / "texts") as texts:
                arm.make(texts, documents, "bm25", 1)
                model.learn([document.page_content for document in texts.get(texts.ids())])
        index = DocumentIndex.create(Path(folder) / "index", embeddings=model)
        try:
            arm.make(index, documents, pipeline, 1)
            yield lambda k: arm.make(index, documents, pipeline, k)
        finally:
            index.discard()


def measure(
    arm: Arm, dataset: EvaluationSet, documents: Sequence[Document], pipeline: str, model: Known | None
) -> dict[str, Any]:
    """Ask every question; as many passages as fill the budget."""
    spans = SpanRecall(BUDGET, documents={passage.id: passage.text for passage in dataset.corpus or ()})
    examples = [dataset[query] for query in qrels(dataset) if dataset[query].spans]
    with built(arm, documents, pipeline, model) as make:
        k = math.ceil(BUDGET / arm.nominal)
        for _ in range(3):
            retriever = make(k)
            lengths = [
                len(d.page_content) for asked in examples[:100] for d in retriever.invoke(asked.question)
            ]
            wanted = math.ceil(BUDGET / (sum(lengths) / len(lengths)))
            if wanted == k:
                break
            k = wanted
        retriever = make(k)
        hits, lengths, totals, times = [], [], [], []
        for example in examples:
            start = time.perf_counter()
            found = retriever.invoke(example.question)
            times.append(time.perf_counter() - start)
            passages = [Passage(str(d.metadata[CORPUS_ID]), d.page_content, d.metadata) for d in found]
            hits.append(spans.cell(example, passages).value)
            lengths += [len(d.page_content) for d in found]
            totals.append(sum(len(d.page_content) for d in found))
    low, high = bootstrap_interval(hits)
    return {
        "kind": arm.kind,
        "arm": arm.name,
        "k": k,
        "recall": {"value": float(np.mean(hits)), "low": low, "high": high},
        "passage_characters": round(float(np.mean(lengths))),
        "returned_characters": round(float(np.mean(totals))),
        "p50_ms": round(1000 * float(np.median(times)), 2),
        "hits": hits,
    }


def compare(rows: list[dict[str, Any]]) -> None:
    """Beside each arm that returns more than it searches: plain chunks of its size, and the best plain ones."""
    plains = [row for row in rows if row["kind"] == "plain"]
    best = max(plains, key=lambda row: row["recall"]["value"])
    for row in rows:
        if row["kind"] == "plain":
            continue
        same = min(
            plains, key=lambda other: abs(math.log(other["passage_characters"] / row["passage_characters"]))
        )
        for name, other in (("same_size", same), ("best_plain", best)):
            difference = np.array(row["hits"]) - np.array(other["hits"])
            low, high = bootstrap_interval(difference)
            row[name] = {
                "arm": other["arm"],
                "recall": other["recall"]["value"],
                "difference": {"value": float(difference.mean()), "low": low, "high": high},
            }
    for row in rows:
        del row["hits"]


def run(name: str, dataset: EvaluationSet, pipelines: Sequence[str], cache: Path) -> list[dict[str, Any]]:
    results = []
    documents = dataset.documents()
    for pipeline in pipelines:
        model = None
        if pipeline != "bm25":
            model = Known(cache)
            model.learn([dataset[query].question for query in qrels(dataset)])
        rows = []
        for arm in arms(pipeline):
            rows.append(
                {"set": name, "pipeline": pipeline, **measure(arm, dataset, documents, pipeline, model)}
            )
            row = rows[-1]
            print(
                f"{name} {pipeline} {row['arm']:<34} k={row['k']:<3} {row['recall']['value']:.3f} "
                f"passage {row['passage_characters']} all {row['returned_characters']} p50 {row['p50_ms']} ms",
                flush=True,
            )
        compare(rows)
        results += rows
    return results


def data_parser(description: str | None) -> argparse.ArgumentParser:
    """A parser with the folders of data sets and of cached vectors."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data", default=os.environ.get("RAG_KIT_DATA", str(ROOT.parent / "shared" / "data"))
    )
    parser.add_argument("--cache", default=str(ROOT / "benchmarks" / "results" / "local" / "vectors"))
    return parser


def main() -> int:
    parser = data_parser(__doc__)
    parser.add_argument("--pipelines", nargs="+", default=["bm25"], choices=["bm25", "dense", "hybrid"])
    parser.add_argument("--sets", nargs="+", default=["covidqa", "timeqa_slice"])
    parser.add_argument("--out", type=Path, default=RESULT)
    arguments = parser.parse_args()
    results: list[dict[str, Any]] = []
    cache = Path(arguments.cache)
    for name in arguments.sets:
        dataset = load_dataset(Path(arguments.data) / name)
        if name == "timeqa_slice":
            dataset = pages(dataset)
        results += run(name, dataset, arguments.pipelines, cache)
    done = {(row["set"], row["pipeline"]) for row in results}
    if arguments.out.is_file():  # what was not measured now stays
        earlier = json.loads(arguments.out.read_text(encoding="utf-8"))["rows"]
        results = [row for row in earlier if (row["set"], row["pipeline"]) not in done] + results
    content = {"metric": f"gold_span_recall@{BUDGET}", "rows": results}
    arguments.out.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
