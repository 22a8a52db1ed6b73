"""The default hybrid beside its parts and other fixed weights, with and without feedback; docs/decisions/0011.

python benchmarks/quality/quality_hybrid.py ../shared/data --cache DIR --limit 400

All recipes fuse the same two lists of 100, and "z" is the weight of the dense side in the mean of z-scores. "+" adds
feedback, the second dense list. For "chosen elsewhere" the recipe is the best one in the mean of all other sets.
Differences are tested by sign flips over queries, every set weighing the same.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from quality_fusion import FIXED, SETS, WEIGHTS, Case, Maker, by_score, p_value

from rag_kit.retrieval.hybrid import _FEEDBACK, _FIRST, _move_towards

RANKS, SHIPPED = "RRF 60", "z .5 +"
NAMES = {weight: f"z {weight:g}".replace("0.", ".") for weight in WEIGHTS}
GRID = [RANKS, *NAMES.values(), *(f"{name} +" for name in NAMES.values())]


def _ndcg(keys: list[str], gains: Mapping[str, int], owner: Mapping[str, str]) -> float:
    """nDCG@10; chunks of one document count once."""
    documents = list(dict.fromkeys(owner[key] for key in keys))[:10]
    total = sum(gains.get(name, 0) / math.log2(2 + place) for place, name in enumerate(documents))
    best = sorted(gains.values(), reverse=True)[:10]
    return total / sum(gain / math.log2(2 + place) for place, gain in enumerate(best))


def measure(case: Case, maker: Maker) -> dict[str, np.ndarray]:
    """nDCG@10 of each query by each recipe."""
    scores: dict[str, list[float]] = {}
    for number, (query, lists) in enumerate(case.lists.items()):
        found = {"keyword": lists[0].keys, "dense": lists[1].keys, RANKS: FIXED[RANKS](lists)}
        for weight, name in NAMES.items():
            found[name] = FIXED[name](lists)
            first = [int(key) for key in found[name][:_FIRST]]
            moved = np.array(_move_towards(maker.vectors[number], maker.documents[first]))
            near = maker.dense(moved / np.linalg.norm(moved), maker.documents)
            shares = [1 - weight, weight * (1 - _FEEDBACK), weight * _FEEDBACK]
            found[f"{name} +"] = by_score(shares)([*lists, near])
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
    scores: dict[str, dict[str, np.ndarray]] = {}
    for name in arguments.sets:
        maker = Maker(arguments.data, name, arguments.cache, arguments.limit)
        scores[name] = measure(maker.case(), maker)

    def elsewhere(one: str) -> str:
        others = [of for other, of in scores.items() if other != one] or [*scores.values()]
        return max(GRID, key=lambda recipe: np.mean([of[recipe].mean() for of in others]))

    shown = ["keyword", "dense", *GRID]
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
    for other in GRID:
        if other != SHIPPED:
            differences = [of[SHIPPED] - of[other] for of in scores.values()]
            mean = np.mean([one.mean() for one in differences])
            print(f"{SHIPPED} against {other}: {mean:+.4f}, p = {p_value(differences):.4f}")


if __name__ == "__main__":
    main()
