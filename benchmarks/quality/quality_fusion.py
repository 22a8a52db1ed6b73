"""Compare ways to fuse a keyword and a dense list on retrieval sets; the figures of docs/decisions/0011.

python benchmarks/quality/quality_fusion.py ../shared/data --cache DIR            every set that is there
python benchmarks/quality/quality_fusion.py ../shared/data --cache DIR --sets scifact limit_small

Both lists are made once a set, 100 deep; then every recipe fuses them by the code that ships. ``weakened`` rows
imitate retrievers that the sets lack: question words lost, question words replaced, vectors cut to 24
dimensions, vectors of noise.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rag_kit.evaluation import load_dataset
from rag_kit.evaluation.ranking.metrics import qrels, retrieval_metrics
from rag_kit.evaluation.sets.beir import CORPUS_ID
from rag_kit.indexing import BM25Index, split
from rag_kit.models import embedding_model
from rag_kit.models.vector_cache import CachedEmbeddings
from rag_kit.retrieval.convex import standardise, weighted_mean
from rag_kit.retrieval.fusion import ordered, reciprocal_rank_fusion

SETS = (
    "scifact",
    "limit_small",
    "timeqa_slice",
    "covidqa",
    "covidqa_chunks",
    "pubmedqa_l",
    "xquad_en",
    "xquad_zh",
    "cmrc2018_dev",
)
DEPTH = 100
CHUNK = 1000


@dataclass(frozen=True)
class RankedList:
    """Keys and scores of one search, best first; ``depth`` if what it does not find has the score 0."""

    keys: list[str]
    scores: list[float]
    depth: int | None = None


Fuse = Callable[[Sequence[RankedList]], list[str]]
"""Makes one list of keys, best first, of several lists."""


def by_rank(dense: float, rrf_k: float = 60) -> Fuse:
    """Reciprocal rank fusion with a weight for the dense list; the keyword list has the rest."""

    def fuse(lists: Sequence[RankedList]) -> list[str]:
        pairs = reciprocal_rank_fusion([one.keys for one in lists], weights=[1 - dense, dense], k=rrf_k)
        return [key for key, _ in pairs]

    return fuse


def by_score(weights: Sequence[float]) -> Fuse:
    """The weighted mean of z-scores, one weight a list."""

    def fuse(lists: Sequence[RankedList]) -> list[str]:
        tables = [standardise(one.scores, one.depth) for one in lists]
        rows = zip(lists, tables, weights, strict=True)
        weighed = [
            (dict(zip(one.keys, table.values, strict=True)), table.absent, weight)
            for one, table, weight in rows
        ]
        return [key for key, _ in ordered(weighted_mean(weighed))]

    return fuse


WEIGHTS = (0.3, 0.4, 0.5, 0.55, 0.6)  # of the dense list
SHIPPED = "z .5"
ARMS = {"bm25": by_rank(0.0), "dense": by_rank(1.0)}
FIXED = {
    "RRF 60": by_rank(0.5),
    "RRF 10": by_rank(0.5, rrf_k=10),
    **{f"z {weight:g}".replace("0.", "."): by_score([1 - weight, weight]) for weight in WEIGHTS},
}
RECIPES = {**ARMS, **FIXED}


@dataclass(frozen=True)
class Case:
    """One set with one pair of retrievers: for each query its two lists, and its judgements."""

    name: str
    lists: dict[str, list[RankedList]]
    qrels: dict[str, dict[str, int]]
    owner: dict[str, str]

    def score(self, fuse: Fuse) -> np.ndarray:
        """nDCG@10 of each query."""
        run = {
            query: list(dict.fromkeys(self.owner[key] for key in fuse(lists)))
            for query, lists in self.lists.items()
        }
        scores = retrieval_metrics(run, self.qrels)
        return np.array([scores.per_query[query]["ndcg@10"] for query in self.lists])


class Maker:
    """Makes the lists of one set; what is slow is done once.

    Args:
        folder: Folder of the data sets.
        name: Name of the set; ``_chunks`` at the end splits its documents.
        cache: Folder that keeps vectors.
        limit: Most queries, drawn with a fixed seed.
    """

    def __init__(self, folder: Path, name: str, cache: Path, limit: int | None) -> None:
        data = load_dataset(folder / name.removesuffix("_chunks"))
        documents = data.documents()
        if name.endswith("_chunks"):
            documents = split(documents, chunk_size=CHUNK)
        self.name = name
        self.owner = {str(place): str(doc.metadata[CORPUS_ID]) for place, doc in enumerate(documents)}
        everything = qrels(data)
        judged = list(everything)
        if limit and len(judged) > limit:
            judged = sorted(random.Random(0).sample(judged, limit))
        self.queries = {query: data[query].question for query in judged}
        self.qrels = {query: everything[query] for query in judged}
        texts = [doc.page_content for doc in documents]
        self.index = BM25Index.from_texts(texts, ids=list(self.owner))
        model = embedding_model("minilm")
        assert model is not None
        cached = CachedEmbeddings(model, cache)
        self.documents = unit(cached.vectors(texts))
        asked = [data[query].question for query in everything]
        vectors = dict(zip(everything, unit(cached.vectors(asked)), strict=True))
        self.vectors = np.array([vectors[query] for query in judged])

    def case(self, words: str = "all", vectors: str = "all") -> Case:
        """The lists of every query, weakened as named."""
        draw, noise = random.Random(1), np.random.default_rng(1)
        asked, known = self.vectors, self.documents
        if vectors == "24 dimensions":
            asked, known = unit(asked[:, :24]), unit(known[:, :24])
        elif vectors == "noise":
            asked = unit(noise.normal(size=asked.shape).astype(np.float32))
        lists = {}
        for number, (query, text) in enumerate(self.queries.items()):
            if words == "half":
                # The lost words become words that no document holds, as when other words are used.
                text = " ".join(word if draw.random() < 0.5 else "qxzv" for word in text.split())
            lists[query] = [self._keyword(text), self.dense(asked[number], known)]
        label = "" if (words, vectors) == ("all", "all") else f" / words: {words}, vectors: {vectors}"
        return Case(self.name + label, lists, self.qrels, self.owner)

    def _keyword(self, text: str) -> RankedList:
        scores = self.index.scores(text)
        best = np.lexsort((np.arange(len(scores)), -scores))[:DEPTH]
        best = best[scores[best] > 0]
        values = scores[best].astype(float).tolist()
        return RankedList([str(n) for n in best], values, DEPTH)

    def dense(self, vector: np.ndarray, known: np.ndarray) -> RankedList:
        """The nearest documents to a vector of length 1."""
        scores = known @ vector
        best = np.argsort(-scores, kind="stable")[:DEPTH]
        return RankedList([str(n) for n in best], scores[best].astype(float).tolist())


def unit(matrix: np.ndarray) -> np.ndarray:
    """Rows of length 1."""
    rows: np.ndarray = matrix / np.maximum(np.linalg.norm(matrix, axis=1, keepdims=True), 1e-12)
    return rows


def p_value(differences: Sequence[np.ndarray], draws: int = 10_000) -> float:
    """Two-sided sign-flip test of the mean over sets of the mean difference of a set's queries."""
    generator = np.random.default_rng(0)
    seen = abs(np.mean([d.mean() for d in differences]))
    sums = np.zeros(draws)
    for d in differences:
        live = d[d != 0]
        if len(live):
            signs = generator.integers(0, 2, size=(draws, len(live)), dtype=np.int8) * 2 - 1
            sums += signs @ live / len(d)
    return float((1 + (np.abs(sums / len(differences)) >= seen - 1e-12).sum()) / (draws + 1))


def holm(values: dict[str, float]) -> dict[str, float]:
    """Holm's correction for as many tests as there are values."""
    corrected, highest = {}, 0.0
    for place, name in enumerate(sorted(values, key=values.__getitem__)):
        highest = max(highest, min(1.0, values[name] * (len(values) - place)))
        corrected[name] = highest
    return corrected


def left_out(scores: dict[str, dict[str, np.ndarray]]) -> dict[str, tuple[str, float]]:
    """For each set, the fixed recipe that is best on the others, and what it scores on this one."""
    result = {}
    for name in scores:
        others = [other for other in scores if other != name]
        best = max(FIXED, key=lambda r: float(np.mean([scores[o][r].mean() for o in others])))
        result[name] = (best, float(scores[name][best].mean()))
    return result


def table(scores: dict[str, dict[str, np.ndarray]]) -> list[str]:
    """A Markdown table: a row a set, a column a recipe, and the shortfall under the better part."""
    lines = ["| | " + " | ".join(RECIPES) + f" | {SHIPPED}, under the better part |"]
    lines.append("|---" * (len(RECIPES) + 2) + "|")
    for name, of_set in scores.items():
        better = max(of_set["bm25"].mean(), of_set["dense"].mean())
        cells = [f"{of_set[r].mean():.3f}" for r in RECIPES]
        lines.append(f"| {name} | {' | '.join(cells)} | {max(0.0, better - of_set[SHIPPED].mean()):.3f} |")
    means = [np.mean([of_set[r].mean() for of_set in scores.values()]) for r in RECIPES]
    lines.append("| **mean** | " + " | ".join(f"{mean:.4f}" for mean in means) + " | |")
    return lines


def main() -> None:
    """Read the arguments, measure, print Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="folder with the data sets")
    parser.add_argument("--cache", type=Path, required=True, help="folder that keeps vectors")
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    parser.add_argument("--limit", type=int, help="most queries a set")
    parser.add_argument("--weak-limit", type=int, default=200, help="most queries a weakened case; 0: none")
    parser.add_argument("--out", type=Path, help="JSON file for the means")
    arguments = parser.parse_args()
    cache = arguments.cache
    real: dict[str, dict[str, np.ndarray]] = {}
    weak: dict[str, dict[str, np.ndarray]] = {}
    for name in arguments.sets:
        if not (arguments.data / name.removesuffix("_chunks")).is_dir():
            print(f"{name}: not there, left out")
            continue
        case = Maker(arguments.data, name, cache, arguments.limit).case()
        real[name] = {recipe: case.score(fuse) for recipe, fuse in RECIPES.items()}
        print(name, {recipe: round(float(v.mean()), 4) for recipe, v in real[name].items()}, flush=True)
        if arguments.weak_limit:
            maker = Maker(arguments.data, name, cache, arguments.weak_limit)
            for words, vectors in (("half", "all"), ("all", "24 dimensions"), ("all", "noise")):
                case = maker.case(words, vectors)
                weak[case.name] = {recipe: case.score(fuse) for recipe, fuse in RECIPES.items()}
    print("\n".join(["", *table(real), "", *table(weak), ""]))
    chosen = left_out(real)
    for name, (recipe, value) in chosen.items():
        print(f"{name}: best elsewhere {recipe} {value:.4f}, {SHIPPED} {real[name][SHIPPED].mean():.4f}")
    print(f"mean: best elsewhere {np.mean([v for _, v in chosen.values()]):.4f}")
    for label, scores in (("sets", real), ("weakened", weak)):
        if scores:
            raw = {r: p_value([s[SHIPPED] - s[r] for s in scores.values()]) for r in FIXED if r != SHIPPED}
            fixed = {r: f"{value:.4f}" for r, value in holm(raw).items()}
            print(f"{SHIPPED} against each other recipe, {label}, Holm-corrected p: {fixed}")
    if arguments.out:
        means = {n: {r: float(v.mean()) for r, v in s.items()} for n, s in (real | weak).items()}
        arguments.out.write_text(json.dumps(means, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
