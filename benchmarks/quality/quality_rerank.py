"""Measure rerankers above the default hybrid, by their scores alone and blended with the first score.

    python quality_rerank.py DATA WORK [--sets scifact ...] [--models minilm e5] [--limit 150] [--depth 20]

WORK keeps vectors and the scores of pairs, so that a run that was stopped goes on. Corpora are cut to the relevant
documents of the questions and others up to ``--documents``; long documents are read in chunks of 1,000 characters, of
which the best counts. Prints nDCG@10 of the hybrid, of the reranker alone and of blends, with the rank depths 10 to 50.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import sys
import time
from pathlib import Path
from typing import Any

from langchain_core.documents import Document
from sampled import SETS, ndcg, sample

from rag_kit.documents.provenance import peek_score
from rag_kit.evaluation.ranking.pipelines import Parts
from rag_kit.models.wheels.embeddings import WheelEmbeddings
from rag_kit.models.wheels.rerankers import wheel_reranker
from rag_kit.retrieval.convex import standardise


class PairScores:
    """The scores of a reranker, kept in a file."""

    def __init__(self, name: str, path: Path) -> None:
        self.model, self.seconds, self.asked = wheel_reranker(name, threads=1), 0.0, 0
        self.file = sqlite3.connect(path)
        self.file.execute(
            "create table if not exists pairs (query, passage, score, primary key (query, passage))"
        )

    def __call__(self, query: str, passages: list[str]) -> list[float]:
        find = "select score from pairs where query = ? and passage = ?"
        known = {text: self.file.execute(find, (query, text)).fetchone() for text in passages}
        missing = [text for text, row in known.items() if row is None]
        started = time.process_time()
        scores = dict(zip(missing, self.model.score([(query, text) for text in missing]), strict=True))
        self.seconds, self.asked = self.seconds + time.process_time() - started, self.asked + len(missing)
        rows = [(query, text, score) for text, score in scores.items()]
        self.file.executemany("insert into pairs values (?, ?, ?)", rows)
        self.file.commit()
        return [
            scores[text] if row is None else row[0]
            for text, row in ((text, known[text]) for text in passages)
        ]


def blended(found: list[Document], scores: list[float], share: float) -> list[str]:
    """Ids by the blend of both scores; the documents that were not scored follow."""
    size = len(scores)
    first = standardise([peek_score(document) for document in found[:size]]).values
    second = standardise(scores).values
    value = [(1 - share) * one + share * other for one, other in zip(first, second, strict=True)]
    order = sorted(range(size), key=lambda place: -value[place])
    return [found[place].metadata["document"] for place in [*order, *range(size, len(found))]]


def measure(folder: Path, model: str, scorers: dict[str, PairScores], options: Any) -> dict[str, float]:
    """The mean nDCG@10 of each way over a set with an embedding model."""
    asked, passages = sample(folder, options.limit, options.documents)
    embeddings: Any = WheelEmbeddings(model, threads=1)
    parts = Parts(passages, depth=100, embeddings=embeddings, cache=options.work / "vectors")
    retriever = parts.build("hybrid").retriever
    sums: dict[str, float] = {}
    for number, example in enumerate(asked):
        found = retriever.invoke(example.question)
        ways = {"hybrid": [document.metadata["document"] for document in found]}
        for name, score in scorers.items():
            scores = score(example.question, [document.page_content for document in found[: options.depth]])
            for depth in (depth for depth in (10, 20, 30, 50) if depth <= options.depth):
                for share in (0.3, 0.5, 0.7, 1.0):
                    ways[f"{name} {share} {depth}"] = blended(found, scores[:depth], share)
        for way, ranking in ways.items():
            sums[way] = sums.get(way, 0.0) + ndcg(ranking, example.relevant)
        if number % 25 == 0:
            print(folder.name, model, number, file=sys.stderr, flush=True)
    return {way: total / len(asked) for way, total in sums.items()} | {"questions": len(asked)}


def main() -> None:
    """Measure each set with each model, and print a line of JSON for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--sets", nargs="*", default=list(SETS))
    parser.add_argument("--models", nargs="*", default=["minilm", "e5"])
    parser.add_argument("--rerankers", nargs="*", default=["cross-encoder"])
    parser.add_argument("--limit", type=int, default=150)
    parser.add_argument("--documents", type=int, default=1000)
    parser.add_argument("--depth", type=int, default=20)
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    scorers = {name: PairScores(name, options.work / f"{name}.sqlite") for name in options.rerankers}
    for model in options.models:
        for name in options.sets:
            figures = measure(options.data / name, model, scorers, options)
            print(json.dumps({"set": name, "model": model} | figures), flush=True)
    for name, scorer in scorers.items():
        if scorer.asked:
            print(f"{name}: {1000 * scorer.seconds / scorer.asked:.1f} ms a pair", flush=True)


if __name__ == "__main__":
    main()
