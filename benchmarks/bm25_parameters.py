"""nDCG@10 of BM25 over the public data sets for many k1 and b, and for the ways to cut Chinese.

python benchmarks/bm25_parameters.py [DATA]     (DATA: RAG_KIT_DATA, default ../shared/data)

Prints the tables of docs/benchmarks.md.
"""

from __future__ import annotations

import gzip
import json
import math
import os
import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rag_kit.indexing.bm25.index import BM25Index
from rag_kit.text import Analyzer

SETS = (
    "scifact",
    "limit_small",
    "timeqa_slice",
    "covidqa",
    "pubmedqa_l",
    "xquad_en",
    "cmrc2018_dev",
    "xquad_zh",
)
PAIRS = [(k1, b) for k1 in (0.6, 0.9, 1.2, 1.5, 2.0) for b in (0.2, 0.3, 0.4, 0.5, 0.75)]


def lines(path: Path) -> list[Any]:
    packed = path.with_name(path.name + ".gz")
    data = path.read_bytes() if path.exists() else gzip.decompress(packed.read_bytes())
    return [json.loads(line) for line in data.decode("utf-8").split("\n") if line]


class DataSet:
    """Texts, queries and relevance, and the terms of each text under one analyzer."""

    def __init__(self, folder: Path, analyzer: Callable[[str], list[str]]) -> None:
        corpus = lines(folder / "corpus.jsonl")
        self.ids = [row["_id"] for row in corpus]
        self.texts = [f"{row.get('title') or ''}\n{row['text']}".strip() for row in corpus]
        self.relevant: dict[str, dict[str, int]] = defaultdict(dict)
        for row in (folder / "qrels.tsv").read_text(encoding="utf-8").splitlines()[1:]:
            query, document, grade = row.split("\t")
            self.relevant[query][document] = int(grade)
        self.queries = [
            (row["_id"], row["text"])
            for row in lines(folder / "queries.jsonl")
            if row["_id"] in self.relevant
        ]
        self.terms = {text: analyzer(text) for text in [*self.texts, *(text for _, text in self.queries)]}

    def ndcg(self, k1: float, b: float) -> float:
        index = BM25Index.from_texts(
            self.texts, ids=None, k1=k1, b=b, analyzer=self.terms.__getitem__, metadatas=self._metadata()
        )
        total = 0.0
        for query, text in self.queries:
            grades = self.relevant[query]
            found = [doc.metadata["id"] for doc, _ in index.search(text, 10)]
            gained = sum(grades.get(key, 0) / math.log2(rank + 2) for rank, key in enumerate(found))
            best = sorted(grades.values(), reverse=True)[:10]
            total += gained / sum(grade / math.log2(rank + 2) for rank, grade in enumerate(best))
        return total / len(self.queries)

    def _metadata(self) -> list[dict[str, str]]:
        return [{"id": key} for key in self.ids]


def parameters(data: Path) -> None:
    sets = {name: DataSet(data / name, Analyzer()) for name in SETS}
    print("| k1 | b | " + " | ".join(SETS) + " | mean |")
    print("|---|---|" + "---|" * (len(SETS) + 1))
    for k1, b in PAIRS:
        values = [sets[name].ndcg(k1, b) for name in SETS]
        cells = " | ".join(f"{value:.4f}" for value in values)
        print(f"| {k1} | {b} | {cells} | {sum(values) / len(values):.4f} |", flush=True)


if __name__ == "__main__":
    default = Path(__file__).resolve().parents[2] / "shared" / "data"
    parameters(Path(sys.argv[1] if len(sys.argv) > 1 else os.environ.get("RAG_KIT_DATA", default)))
