"""The default hybrid beside its parts and the default before it; docs/decisions/0011.

python benchmarks/quality_hybrid.py ../shared/data --cache DIR --limit 400

All recipes weigh z-scores of the same two lists of 100. "Before" is a fixed .4 for the dense list, with z-scores
over the hits alone. The others fill the keyword list up with zeros; "feedback" adds the second dense list, and
"per query" moves the dense side's weight by how clearly each list's first result stands out. For "chosen elsewhere"
centre and slope are those that are best in the mean of all other sets. Differences are tested by sign flips over
queries, every set weighing the same.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping
from itertools import product
from pathlib import Path

import numpy as np
from quality_fusion import SETS, Case, Maker, p_value

from rag_kit.retrieval.convex import LEAST, MOST, Normalised, RankedList, combine, lead, normalise
from rag_kit.retrieval.hybrid import _FIRST, _WEIGHT, _moved

DEPTH = 100
CENTRES, SLOPES = (0.4, 0.45, 0.5, 0.55), (0.0, 0.06, 0.12)
SHIPPED = "0.45, slope 0.06"


def _table(ranked: RankedList, *, filled: bool) -> Normalised:
    return normalise(list(ranked.scores), "z-score", depth=DEPTH if filled else None)


def _ndcg(keys: list[str], gains: Mapping[str, int], owner: Mapping[str, str]) -> float:
    """nDCG@10; chunks of one document count once."""
    documents = list(dict.fromkeys(owner[key] for key in keys))[:10]
    total = sum(gains.get(name, 0) / math.log2(2 + place) for place, name in enumerate(documents))
    best = sorted(gains.values(), reverse=True)[:10]
    return total / sum(gain / math.log2(2 + place) for place, gain in enumerate(best))


def _fused(lists: list[list[str]], tables: list[Normalised], weights: list[float]) -> list[str]:
    return [key for key, _ in combine(lists, tables, weights)]


def measure(case: Case, maker: Maker) -> dict[str, np.ndarray]:
    """nDCG@10 of each query by each recipe."""
    scores: dict[str, list[float]] = {}
    for number, (query, (words, dense)) in enumerate(case.lists.items()):
        keys = [list(words.keys), list(dense.keys)]
        plain = [_table(words, filled=False), _table(dense, filled=False)]
        tables = [_table(words, filled=True), plain[1]]
        found = {
            "keyword": keys[0],
            "dense": keys[1],
            "before": _fused(keys, plain, [0.6, 0.4]),
            "filled up, .5": _fused(keys, tables, [0.5, 0.5]),
        }
        for centre, slope in product(CENTRES, SLOPES):
            share = centre + slope * (lead(tables[1]) - lead(tables[0])) if keys[0] else 1.0
            share = min(MOST, max(LEAST, share))
            first = [int(key) for key in _fused(keys, tables, [1 - share, share])[:_FIRST]]
            near = maker._dense(
                np.array(_moved(maker.vectors[number], maker.documents[first])), maker.documents
            )
            weights = [1 - share, share * (1 - _WEIGHT), share * _WEIGHT]
            three = [*keys, list(near.keys)]
            name = f"{centre}, slope {slope}"
            found[name] = _fused(three, [*tables, _table(near, filled=False)], weights)
        for name, ranked in found.items():
            scores.setdefault(name, []).append(_ndcg(ranked, case.qrels[query], case.owner))
    return {name: np.array(values) for name, values in scores.items()}


def main() -> None:
    """Read the arguments, measure, print Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="folder with the data sets")
    parser.add_argument("--cache", type=Path, required=True, help="folder that keeps vectors")
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    parser.add_argument("--limit", type=int, help="most queries a set")
    arguments = parser.parse_args()
    cache = arguments.cache
    scores: dict[str, dict[str, np.ndarray]] = {}
    for name in arguments.sets:
        maker = Maker(arguments.data, name, cache, arguments.limit)
        scores[name] = measure(maker.case(), maker)
    grid = [f"{centre}, slope {slope}" for centre, slope in product(CENTRES, SLOPES)]

    def elsewhere(one: str) -> str:
        return max(
            grid, key=lambda name: np.mean([of[name].mean() for other, of in scores.items() if other != one])
        )

    shown = ["keyword", "dense", "before", "filled up, .5", "0.55, slope 0.0", SHIPPED]
    print("| set | " + " | ".join(shown) + " | chosen elsewhere | shipped, under the better part |")
    print("|---" * (len(shown) + 3) + "|")
    for name, of in scores.items():
        best = elsewhere(name)
        under = max(of["keyword"].mean(), of["dense"].mean()) - of[SHIPPED].mean()
        cells = [
            *(f"{of[one].mean():.4f}" for one in shown),
            f"{of[best].mean():.4f} ({best})",
            f"{under:.4f}",
        ]
        print(f"| {name} | " + " | ".join(cells) + " |")
    means = [np.mean([of[one].mean() for of in scores.values()]) for one in shown]
    chosen = np.mean([of[elsewhere(name)].mean() for name, of in scores.items()])
    print("| **mean** | " + " | ".join(f"{mean:.4f}" for mean in means) + f" | {chosen:.4f} | |")
    differences = [of[SHIPPED] - of["before"] for of in scores.values()]
    mean = np.mean([one.mean() for one in differences])
    print(f"\nshipped against before: {mean:+.4f}, p = {p_value(differences):.4f}")


if __name__ == "__main__":
    main()
