"""The default hybrid beside its parts and other weights of the dense side, with several embedding models.

    python quality_hybrid.py DATA WORK [--sets scifact ...] [--models minilm e5] [--limit 150] [--documents 1000]

WORK keeps vectors. Prints nDCG@10 as a Markdown table, a row a pair of set and model. "chosen elsewhere" has the weight
that is the best in the mean of the other sets; docs/decisions/0011.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from pathlib import Path
from typing import Any

from sampled import SETS, ndcg, sample

from rag_kit.evaluation.ranking.pipelines import Parts
from rag_kit.models.wheels.embeddings import WheelEmbeddings
from rag_kit.retrieval.hybrid import HybridRetriever

WEIGHTS = (0.4, 0.45, 0.5, 0.55, 0.6)  # of the dense side
DEPTH = 100
Row = dict[str, float]


def measure(folder: Path, model: str, options: Any) -> Row:
    """The mean nDCG@10 of each part and weight over a set with an embedding model."""
    asked, passages = sample(folder, options.limit, options.documents)
    embeddings: Any = WheelEmbeddings(model, threads=1)
    parts = Parts(passages, depth=DEPTH, embeddings=embeddings, cache=options.work / "vectors")
    depth: dict[str, Any] = {"k": DEPTH, "fetch_k": DEPTH, "on_error": "raise"}
    ways: dict[str, Any] = {"keyword": parts.bm25, "dense": parts.dense}
    for weight in WEIGHTS:
        sides = [parts.bm25, parts.dense]
        ways[f"{weight:g}"] = HybridRetriever(retrievers=sides, weights=[1 - weight, weight], **depth)
    scores: dict[str, list[float]] = {name: [] for name in ways}
    for example in asked:
        for name, retriever in ways.items():
            found = [document.metadata["document"] for document in retriever.invoke(example.question)]
            scores[name].append(ndcg(found, example.relevant))
    return {name: statistics.mean(values) for name, values in scores.items()}


def table(found: dict[tuple[str, str], Row]) -> str:
    """A Markdown table with the weight that the other sets choose."""
    names = [f"{weight:g}" for weight in WEIGHTS]
    lines = ["| set | model | keyword | dense | " + " | ".join(names) + " | chosen elsewhere |"]
    lines.append("|" + " --- |" * (len(names) + 5))
    for (name, model), row in found.items():
        others = [other for (one, _), other in found.items() if one != name] or [row]
        best = max(names, key=lambda weight: statistics.mean(other[weight] for other in others))
        cells = [f"{row[column]:.4f}" for column in ("keyword", "dense", *names)]
        lines.append(f"| {name} | {model} | {' | '.join(cells)} | {row[best]:.4f} ({best}) |")
    means = [
        statistics.mean(row[column] for row in found.values()) for column in ("keyword", "dense", *names)
    ]
    return "\n".join([*lines, "| mean | | " + " | ".join(f"{mean:.4f}" for mean in means) + " | |"])


def main() -> None:
    """Read the arguments, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--sets", nargs="*", default=list(SETS))
    parser.add_argument("--models", nargs="*", default=["minilm", "e5"])
    parser.add_argument("--limit", type=int, default=150, help="questions a set")
    parser.add_argument("--documents", type=int, default=1000, help="documents a set")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    found: dict[tuple[str, str], Row] = {}
    for model in options.models:
        for name in options.sets:
            found[name, model] = measure(options.data / name, model, options)
            print(name, model, found[name, model], file=sys.stderr, flush=True)
    print(table(found))


if __name__ == "__main__":
    main()
