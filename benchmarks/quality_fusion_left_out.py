"""Per-query fusion weights against fixed ones, each chosen without the set it is measured on; docs/decisions/0100.

python benchmarks/quality_fusion_left_out.py ../shared/data --cache DIR --limit 300

Three ways to fuse z-scores of a keyword and a dense list: a fixed weight; ``auto``'s rule with its two constants from
a grid; and the rule shrunk towards a fixed weight, ``share = centre + range * tanh(slope * (dense lead - keyword
lead))``, so that no query moves far. The constants of each are those that are best in mean nDCG@10 on all other
sets. Differences are tested by sign flips over queries, every set weighing the same, Holm-corrected.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
from quality_fusion import SETS, Case, Maker, holm, p_value

from rag_kit.evaluation.embedding_cache import EmbeddingCache
from rag_kit.retrieval.auto_fusion import gather
from rag_kit.retrieval.fusion import RankedList
from rag_kit.retrieval.normalise import normalise

Rule = Callable[[float, float], float]
SHIPPED = "rule slope 3.5 bias -0.2"
SHOWN = (SHIPPED, "0.4 +- 0.1 slope 5.0", "z 0.4", "z 0.3")
WEAK = (("half", "all"), ("all", "24 dimensions"), ("all", "noise"))


@dataclass(frozen=True)
class Query:
    """One query: z-scores of what either list holds, gains, leads.

    Attributes:
        scores: Shape (documents, 2).
        gains: Judgement of each document.
        owners: Which document of the set each is of; chunks of one share it.
        ideal: Best DCG@10.
        leads: Of the keyword and of the dense list.
    """

    scores: np.ndarray
    gains: np.ndarray
    owners: list[str]
    ideal: float
    leads: tuple[float, float]

    def ndcg(self, share: float) -> float:
        """nDCG@10 with this weight for the dense list."""
        fused = self.scores @ np.array([1 - share, share])
        total, seen = 0.0, set()
        for place in np.argsort(-fused, kind="stable"):
            if self.owners[place] in seen:
                continue
            seen.add(self.owners[place])
            total += self.gains[place] / math.log2(1 + len(seen))
            if len(seen) == 10:
                break
        return float(total / self.ideal) if self.ideal else 0.0


def _query(lists: list[RankedList], qrels: dict[str, int], owner: dict[str, str]) -> Query:
    keys = list(dict.fromkeys(key for ranked in lists for key in ranked.keys))
    scores = np.zeros((len(keys), 2))
    for column, ranked in enumerate(lists):
        if ranked.keys:
            table = normalise(list(ranked.scores), "z-score")
            scores[:, column] = table.absent
            for key, value in zip(ranked.keys, table.values, strict=True):
                scores[keys.index(key), column] = value
    best = sorted(qrels.values(), reverse=True)[:10]
    ideal = sum(gain / math.log2(2 + place) for place, gain in enumerate(best))
    leads = (0.0, 0.0)
    if all(ranked.keys for ranked in lists):
        evidence = gather(*lists)
        leads = (evidence.keyword_lead, evidence.dense_lead)
    gains = np.array([float(qrels.get(owner[key], 0)) for key in keys])
    return Query(scores, gains, [owner[key] for key in keys], ideal, leads)


def _fixed(weight: float) -> Rule:
    return lambda keyword, dense: weight


def _rule(slope: float, bias: float) -> Rule:
    return lambda keyword, dense: 1 / (1 + math.exp(-bias - slope * (dense - keyword)))


def _shrunk(centre: float, span: float, slope: float) -> Rule:
    return lambda keyword, dense: centre + span * math.tanh(slope * (dense - keyword))


def rules() -> dict[str, dict[str, Rule]]:
    """The families and their members."""
    slopes, biases = (2.0, 3.5, 5.0), (-0.6, -0.4, -0.2, 0.0)
    shrunk = product((0.3, 0.4, 0.5), (0.05, 0.1, 0.2), (2.0, 5.0))
    return {
        "fixed": {f"z {weight}": _fixed(weight) for weight in (0.2, 0.3, 0.4, 0.5, 0.6)},
        "rule": {f"rule slope {s} bias {b}": _rule(s, b) for s, b in product(slopes, biases)},
        "shrunk": {f"{c} +- {r} slope {s}": _shrunk(c, r, s) for c, r, s in shrunk},
    }


def measure(case: Case, only: tuple[str, ...] = ()) -> dict[str, np.ndarray]:
    """nDCG@10 of each query under each rule, or those named."""
    queries = [_query(lists, case.qrels[name], case.owner) for name, lists in case.lists.items()]
    return {
        name: np.array([query.ndcg(rule(*query.leads)) for query in queries])
        for family in rules().values()
        for name, rule in family.items()
        if not only or name in only
    }


def left_out(scores: dict[str, dict[str, np.ndarray]], names: list[str]) -> dict[str, str]:
    """For each set, the member that is best on the others."""

    def mean(name: str, without: str) -> float:
        return float(np.mean([of[name].mean() for other, of in scores.items() if other != without]))

    return {one: max(names, key=lambda name: mean(name, one)) for one in scores}


def main() -> None:
    """Read the arguments, measure, print Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="folder with the data sets")
    parser.add_argument("--cache", type=Path, required=True, help="folder that keeps vectors")
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    parser.add_argument("--limit", type=int, help="most queries a set")
    parser.add_argument("--weak", action="store_true", help="weakened lists too, as in quality_fusion.py")
    arguments = parser.parse_args()
    cache = EmbeddingCache(arguments.cache)
    scores: dict[str, dict[str, np.ndarray]] = {}
    weak: dict[str, dict[str, np.ndarray]] = {}
    parts: dict[str, float] = {}
    for name in arguments.sets:
        maker = Maker(arguments.data, name, cache, arguments.limit)
        case = maker.case()
        scores[name] = measure(case)
        if arguments.weak:
            weak |= {f"{name} {kind}": measure(maker.case(*kind), SHOWN) for kind in WEAK}
        only = [[_query([lists[n]] * 2, case.qrels[q], case.owner).ndcg(0.5) for q, lists in case.lists.items()]
                for n in (0, 1)]  # fmt: skip
        parts[name] = max(float(np.mean(one)) for one in only)
        print(f"{name} read", flush=True)
    families = rules()
    chosen = {family: left_out(scores, list(members)) for family, members in families.items()}
    print(
        "\n| set | better part | "
        + " | ".join(f"{f}, chosen elsewhere" for f in families)
        + " | auto as it ships |"
    )
    print("|---" * (len(families) + 3) + "|")
    for name, of in scores.items():
        cells = [f"{of[chosen[f][name]].mean():.4f} ({chosen[f][name]})" for f in families]
        print(f"| {name} | {parts[name]:.4f} | {' | '.join(cells)} | {of[SHIPPED].mean():.4f} |")
    means = [np.mean([of[chosen[f][n]].mean() for n, of in scores.items()]) for f in families]
    shipped = np.mean([of[SHIPPED].mean() for of in scores.values()])
    print(
        f"| **mean** | {np.mean(list(parts.values())):.4f} | "
        + " | ".join(f"{m:.4f}" for m in means)
        + f" | {shipped:.4f} |"
    )
    for family in ("rule", "shrunk"):
        differences = [of[chosen[family][n]] - of[chosen["fixed"][n]] for n, of in scores.items()]
        under = max(parts[n] - float(of[chosen[family][n]].mean()) for n, of in scores.items())
        print(
            f"{family} against fixed, both chosen elsewhere: {np.mean([d.mean() for d in differences]):+.4f}, "
            f"p = {p_value(differences):.4f}; at most {under:.4f} under the better part"
        )
        raw = {
            fixed: p_value([of[chosen[family][n]] - of[fixed] for n, of in scores.items()])
            for fixed in families["fixed"]
        }
        print(f"  against each fixed weight, Holm: { {name: round(p, 4) for name, p in holm(raw).items()} }")

    print("\nOne setting everywhere, mean, and the most under the better part:")
    for name in [*families["fixed"], *SHOWN[:2]]:
        mean = np.mean([of[name].mean() for of in scores.values()])
        under = max(parts[one] - float(of[name].mean()) for one, of in scores.items())
        print(f"  {name}: {mean:.4f}, {under:.4f}; scifact {scores['scifact'][name].mean():.4f}"
              if "scifact" in scores else f"  {name}: {mean:.4f}, {under:.4f}")  # fmt: skip
    for name in SHOWN if weak else ():
        print(f"  weakened, {name}: {np.mean([of[name].mean() for of in weak.values()]):.4f}")


if __name__ == "__main__":
    main()
