"""``python benchmarks/quality/quality_tune.py DATA``: small searches on public sets."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

from langchain_core.documents import Document

from rag_kit.evaluation import load_dataset, tune
from rag_kit.evaluation.ranking.pipelines import Parts
from rag_kit.indexing import split
from rag_kit.models import embedding_model

#: Set, questions drawn, settings, embedding model.
RUNS = (
    ("timeqa_slice", 120, 12, None),
    ("cmrc2018_dev", 60, 10, "none"),
    ("scifact", 60, 10, "none"),
)
#: Fusions whose arms have weights.
WEIGHTED = ("rrf", "convex")


def retrievers(
    documents: list[Document], embeddings: str | None, cache: Path
) -> tuple[Callable[[dict[str, Any]], Any], dict[str, Any]]:
    """Give the maker of a setting's retriever, and what may be set; indexes are made once for each chunk size."""
    model = embedding_model(embeddings)

    @lru_cache
    def parts(size: int | None) -> Parts:
        chunks = documents if size is None else split(documents, chunk_size=size, chunk_overlap=size // 10)
        return Parts(chunks, embeddings=model, cache=cache)

    def make(settings: dict[str, Any]) -> Any:
        update: dict[str, Any] = {"k": 10}
        if settings["pipeline"] in WEIGHTED:
            update["weights"] = [settings["bm25_weight"], round(1 - settings["bm25_weight"], 6)]
        made = parts(settings["chunk_size"]).build(settings["pipeline"])
        return made.retriever.model_copy(update=update)

    vectors = ["dense", "mmr", *WEIGHTED]
    weight = {"float": [0.1, 0.9], "step": 0.1, "default": 0.6}
    space: dict[str, Any] = {"pipeline": ["bm25"], "chunk_size": [1000, 500, None]}
    if model is not None:
        space |= {"pipeline": ["hybrid", "bm25", *vectors], "bm25_weight": weight}
    return make, space


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help="folder of the public data sets")
    parser.add_argument("--out", type=Path, help="folder that keeps searches and vectors; default: a new one")
    parser.add_argument("--only", help="name of one set")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        out = given.out or Path(scratch)
        for name, count, trials, embeddings in RUNS:
            if given.only not in (None, name):
                continue
            whole = load_dataset(given.data / name)
            make, space = retrievers(whole.documents(), embeddings, out / "vectors")
            questions = whole.sample(count, seed=0)
            result = tune(make, questions, "ndcg@10", space=space, out=out / name, n_trials=trials)
            print(f"\n{name}\n{result}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
