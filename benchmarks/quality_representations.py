"""Chunks found by further texts that are made of them by rule, against the same chunks found by their text alone.

python benchmarks/quality_representations.py                             keyword search
python benchmarks/quality_representations.py --pipelines dense --sets timeqa_slice

What a language model would write is not measured here. A question counts when its gold answer lies wholly within one
chunk inside the first 3,000 characters that come back.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from langchain_core.documents import Document
from quality_parents import ROOT, Arm, Known, compare, data_parser, measure, pages

from rag_kit.evaluation import EvaluationSet, load_dataset
from rag_kit.evaluation.ranking.metrics import qrels
from rag_kit.evaluation.sets.beir import CORPUS_ID
from rag_kit.indexing import DocumentIndex, split
from rag_kit.indexing.raptor.build import build_raptor
from rag_kit.models import chat_model
from rag_kit.retrieval import MultiRepresentationRetriever, RaptorRetriever, index_retriever

RESULT = ROOT / "benchmarks" / "results" / "representations.json"
SIZE = 1000
KINDS: tuple[tuple[str, ...], ...] = (
    ("summary",),
    ("keywords",),
    ("children:250",),
    ("children:500",),
    ("children:250", "children:500"),
    ("summary", "keywords", "children:250"),
)


def plain(index: DocumentIndex, documents: Sequence[Document], pipeline: Any, k: int) -> Any:
    if not index.ids():
        index.upsert(split(documents, chunk_size=SIZE, chunk_overlap=0))
    return index_retriever(index, pipeline, k=k)


def represented(kinds: Sequence[str], weights: Mapping[str, float] | None = None) -> Any:
    def make(index: DocumentIndex, documents: Sequence[Document], pipeline: Any, k: int) -> Any:
        retriever = MultiRepresentationRetriever(
            index=index,
            pipeline=pipeline,
            k=k,
            kinds=("text", *kinds),
            weights=weights,
            represent=kinds,
            llm=chat_model("extractive"),
        )
        if not index.ids():
            retriever.upsert(split(documents, chunk_size=SIZE, chunk_overlap=0))
        return retriever

    return make


def tree(index: DocumentIndex, documents: Sequence[Document], pipeline: Any, k: int) -> Any:
    """Passages and summaries of a tree; a summary takes its place and holds no gold answer."""
    new = not index.ids()
    found = plain(index, documents, pipeline, k)
    if pipeline == "bm25":
        return found
    if new:
        build_raptor(index, chat_model("extractive"))
    return RaptorRetriever(index=index, k=k) | _placed


def _placed(documents: list[Document]) -> list[Document]:
    return [
        Document(doc.page_content, id=doc.id, metadata={**doc.metadata, CORPUS_ID: ""})
        if "level" in doc.metadata
        else doc
        for doc in documents
    ]


def arms(pipeline: str) -> list[Arm]:
    return [
        Arm("plain", "text alone", plain, SIZE),
        *(Arm("represented", f"text, {', '.join(kinds)}", represented(kinds), SIZE) for kinds in KINDS),
        *([Arm("tree", "tree", tree, SIZE)] if pipeline == "dense" else ()),
    ]


def main() -> int:
    parser = data_parser(__doc__)
    parser.add_argument("--pipelines", nargs="+", default=["bm25"], choices=["bm25", "dense", "hybrid"])
    parser.add_argument("--sets", nargs="+", default=["covidqa", "cmrc2018_dev", "timeqa_slice"])
    parser.add_argument("--kinds", nargs="+", choices=["plain", "represented", "tree"], help="default: all")
    parser.add_argument("--questions", type=int, help="the first so many of each set; default: all")
    parser.add_argument("--out", type=Path, default=RESULT)
    arguments = parser.parse_args()
    results: list[dict[str, Any]] = []
    for name in arguments.sets:
        dataset = load_dataset(Path(arguments.data) / name)
        if name == "timeqa_slice":
            dataset = pages(dataset)
        if arguments.questions:
            few = [dataset[query] for query in qrels(dataset)][: arguments.questions]
            dataset = EvaluationSet(dataset.name, few, corpus=dataset.corpus)
        documents = dataset.documents()
        for pipeline in arguments.pipelines:
            model = None
            if pipeline != "bm25":
                model = Known(arguments.cache)
                model.learn([dataset[query].question for query in qrels(dataset)])
            rows = []
            for arm in (
                each for each in arms(pipeline) if not arguments.kinds or each.kind in arguments.kinds
            ):
                measured = measure(arm, dataset, documents, pipeline, model)
                row = {"set": name, "pipeline": pipeline, "questions": len(measured["hits"]), **measured}
                print(
                    name,
                    pipeline,
                    arm.name,
                    f"{row['recall']['value']:.3f}",
                    f"{row['p50_ms']} ms",
                    flush=True,
                )
                rows.append(row)
            compare(rows)
            results += rows
    done = {(row["set"], row["pipeline"]) for row in results}
    if arguments.out.is_file():  # what was not measured now stays
        earlier = json.loads(arguments.out.read_text(encoding="utf-8"))["rows"]
        results = [row for row in earlier if (row["set"], row["pipeline"]) not in done] + results
    content = {"metric": "gold_span_recall@3000", "rows": results}
    arguments.out.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
