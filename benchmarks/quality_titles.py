"""Search with titles and headings beside search without, on every set that has titles.

python benchmarks/quality_titles.py                          every set; writes results/titles.json
python benchmarks/quality_titles.py --sets scifact --cache DIR

An index of each set is built from the texts alone, titles in the metadata, searched, then written
again without titles and headings, and searched again. covidqa: chunks of 1,000 characters, whose documents are
scored; scifact: the relevant abstracts among 1,500.
"""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from langchain_core.documents import Document
from quality_parents import Known, data_parser

from rag_kit.evaluation import EvaluationSet, load_dataset
from rag_kit.evaluation.ranking.metrics import qrels, retrieval_metrics
from rag_kit.evaluation.sets.beir import CORPUS_ID
from rag_kit.evaluation.statistics import bootstrap_interval
from rag_kit.indexing import DocumentIndex, split
from rag_kit.indexing.searched import embedded_text
from rag_kit.retrieval import index_retriever

ROOT = Path(__file__).resolve().parent.parent
RESULT = ROOT / "benchmarks" / "results" / "titles.json"
SETS = ("scifact", "timeqa_slice", "covidqa", "xquad_en", "xquad_zh", "cmrc2018_dev")
CHINESE = ("xquad_zh", "cmrc2018_dev")  # which the embedding model does not read
LONG = ("covidqa",)
SAMPLED = {"scifact": 1500}  # documents: the relevant ones, and others drawn with a fixed seed
DEPTH = 100


def scores(index: DocumentIndex, pipeline: str, data: EvaluationSet, queries: Sequence[str]) -> np.ndarray:
    """nDCG@10 of each query; chunks of one document count once."""
    retriever = index_retriever(index, pipeline, k=DEPTH)
    found = retriever.batch([data[query].question for query in queries], config={"max_concurrency": 1})
    run = {
        query: list(dict.fromkeys(str(document.metadata[CORPUS_ID]) for document in documents))
        for query, documents in zip(queries, found, strict=True)
    }
    measured = retrieval_metrics(run, {query: data[query].relevant for query in queries}).per_query
    return np.array([measured[query]["ndcg@10"] for query in queries])


def measure(folder: Path, name: str, model: Known, limit: int | None) -> list[dict[str, Any]]:
    """One row a pipeline."""
    data = load_dataset(folder / name)
    documents = [
        Document(text, id=passage.id, metadata={"title": title, CORPUS_ID: passage.id})
        for passage in data.corpus or ()
        for title in [passage.metadata.get("title", "")]
        for text in [passage.text.removeprefix(f"{title}\n")]
    ]
    if name in LONG:
        documents = split(documents)
    queries = list(qrels(data))
    if name in SAMPLED:
        relevant = {document for query in queries for document in data[query].relevant}
        others = sorted(document.id for document in documents if document.id not in relevant)
        kept = {*relevant, *random.Random(0).sample(others, SAMPLED[name] - len(relevant))}
        documents = [document for document in documents if document.id in kept]
    if limit and len(queries) > limit:
        queries = sorted(random.Random(0).sample(queries, limit))
    if name not in CHINESE:
        texts = [(document.page_content, document.metadata) for document in documents]
        model.learn(
            [data[query].question for query in queries]
            + [text for text, _ in texts]
            + [embedded_text(text, metadata) for text, metadata in texts]
        )
    pipelines = ("bm25",) if name in CHINESE else ("bm25", "dense", "hybrid")
    with tempfile.TemporaryDirectory() as place:
        with DocumentIndex.create(
            Path(place) / "index", embeddings=None if name in CHINESE else model
        ) as index:
            index.upsert(documents)
            after = {pipeline: scores(index, pipeline, data, queries) for pipeline in pipelines}
            bare = [Document(one.page_content, id=one.id) for one in documents]
            index.upsert(bare)
            before = {pipeline: scores(index, pipeline, data, queries) for pipeline in pipelines}
    rows = []
    for pipeline in pipelines:
        difference = after[pipeline] - before[pipeline]
        low, high = bootstrap_interval(difference.tolist())
        rows.append(
            {
                "set": name,
                "chunks": len(documents),
                "queries": len(queries),
                "search": pipeline,
                "without": float(before[pipeline].mean()),
                "with": float(after[pipeline].mean()),
                "difference": {"value": float(difference.mean()), "low": low, "high": high},
            }
        )
        print(name, pipeline, f"{rows[-1]['without']:.4f} -> {rows[-1]['with']:.4f}", flush=True)
    return rows


def main() -> int:
    """Read the arguments, measure, write the result file."""
    parser = data_parser(__doc__)
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    parser.add_argument("--limit", type=int, help="most queries a set, drawn with a fixed seed")
    arguments = parser.parse_args()
    model = Known(arguments.cache)
    rows = json.loads(RESULT.read_text(encoding="utf-8"))["rows"] if RESULT.is_file() else []
    for name in arguments.sets:
        fresh = measure(Path(arguments.data), name, model, arguments.limit)
        rows = [row for row in rows if row["set"] != name] + fresh
        rows.sort(key=lambda row: SETS.index(row["set"]))
        RESULT.write_text(json.dumps({"metric": "ndcg@10", "rows": rows}, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
