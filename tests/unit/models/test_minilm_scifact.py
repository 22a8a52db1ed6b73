"""The embedded model on scifact: the published quality."""

from __future__ import annotations

import csv
import gzip
import json
import math
from pathlib import Path

import numpy as np
import pytest

from rag_kit.models.minilm import MiniLMEmbeddings, files


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.timeout(1800)
@pytest.mark.skipif(not files.is_installed(), reason="the weights of minilm are not installed")
def test_dense_ndcg_on_scifact(data_sets: Path) -> None:
    """Exact cosine search over 5,183 documents reaches nDCG@10 = 0.645 +- 0.005, as published."""
    folder = data_sets / "scifact"
    if not folder.is_dir():
        pytest.skip(f"{folder} is not there")
    with gzip.open(folder / "corpus.jsonl.gz", "rt", encoding="utf-8") as lines:
        corpus = [json.loads(line) for line in lines]
    queries = [
        json.loads(line) for line in (folder / "queries.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    relevant: dict[str, set[str]] = {}
    with (folder / "qrels.tsv").open(encoding="utf-8") as lines:
        for row in csv.reader(lines, delimiter="\t"):
            if row[-1].isdigit() and int(row[-1]) > 0:
                relevant.setdefault(row[0], set()).add(row[-2])
    queries = [query for query in queries if query["_id"] in relevant]
    assert len(corpus) == 5183 and len(queries) == 300

    model = MiniLMEmbeddings()
    documents = model.embed_array([f"{row['title']} {row['text']}".strip() for row in corpus])
    scores = model.embed_array([query["text"] for query in queries]) @ documents.T
    total = 0.0
    for query, row in zip(queries, scores, strict=True):
        top = [corpus[i]["_id"] for i in np.argsort(-row, kind="stable")[:10]]
        wanted = relevant[query["_id"]]
        gain = sum(1 / math.log2(rank + 2) for rank, name in enumerate(top) if name in wanted)
        total += gain / sum(1 / math.log2(rank + 2) for rank in range(min(10, len(wanted))))
    assert total / len(queries) == pytest.approx(0.645, abs=0.005)
