"""What maximal marginal relevance costs and gains by its balance, with MiniLM's vectors.

python benchmarks/quality_mmr.py ../shared/data --cache DIR [--sets ...] [--limit 250]

The first 100 of the dense list are put in another order. A cell is the change of nDCG@10 against the dense list, and
the mean similarity of the pairs among the first ten. "Chosen elsewhere" is the smallest balance that loses at most .01
on each of the other sets.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from quality_fusion import Maker
from quality_hybrid import _ndcg

from rag_kit.retrieval.rerank.scorers import marginal_relevance

SETS = ("scifact", "limit_small", "timeqa_slice", "covidqa", "covidqa_chunks", "pubmedqa_l", "xquad_en")
BALANCES = (0.5, 0.7, 0.8, 0.85, 0.9, 0.95, 1.0)
DEPTH, MOST_LOST = 100, 0.01


def measure(maker: Maker) -> dict[float, tuple[float, float]]:
    """By balance: nDCG@10, and mean similarity of the first ten."""
    rows = []
    for number, query in enumerate(maker.queries):
        similarities = maker.documents @ maker.vectors[number]
        best = np.argsort(-similarities, kind="stable")[:DEPTH]
        vectors = maker.documents[best].astype(float)
        row = []
        for balance in BALANCES:
            order, _ = marginal_relevance(similarities[best].astype(float), vectors, balance)
            ten = vectors[order[:10]]
            pairs = (ten @ ten.T)[np.triu_indices(len(ten), 1)]
            ranked = [str(best[place]) for place in order]
            row.append((_ndcg(ranked, maker.qrels[query], maker.owner), pairs.mean()))
        rows.append(row)
    means = np.mean(rows, axis=0)
    return {balance: (float(means[n][0]), float(means[n][1])) for n, balance in enumerate(BALANCES)}


def main() -> None:
    """Measure each set, print Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="folder with the data sets")
    parser.add_argument("--cache", type=Path, required=True, help="folder that keeps vectors")
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    parser.add_argument("--limit", type=int, default=250, help="most queries a set")
    arguments = parser.parse_args()
    cache = arguments.cache
    scores = {name: measure(Maker(arguments.data, name, cache, arguments.limit)) for name in arguments.sets}
    lost = {name: {b: of[1.0][0] - of[b][0] for b in BALANCES} for name, of in scores.items()}
    print("| set | dense | " + " | ".join(map(str, BALANCES[:-1])) + " | chosen elsewhere |")
    print("|---" * (len(BALANCES) + 2) + "|")
    for name, of in scores.items():
        others = [lost[other] for other in scores if other != name]
        chosen = next(b for b in BALANCES if all(other[b] <= MOST_LOST for other in others))
        cells = [f"{-lost[name][b]:+.3f}, {of[b][1]:.2f}" for b in BALANCES[:-1]]
        dense = f"{of[1.0][0]:.3f}, {of[1.0][1]:.2f}"
        print(f"| {name} | {dense} | " + " | ".join(cells) + f" | {chosen} ({-lost[name][chosen]:+.3f}) |")


if __name__ == "__main__":
    main()
