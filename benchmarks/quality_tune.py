"""``python benchmarks/quality_tune.py DATA``: small searches on public sets."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from rag_kit.evaluation import SearchSpace, load_dataset, tune

#: Set, questions drawn, settings, embedding model.
RUNS = (
    ("timeqa_slice", 120, 12, None),
    ("cmrc2018_dev", 60, 10, "none"),
    ("scifact", 60, 10, "none"),
)


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
            space = SearchSpace.of_retrievers(
                whole.documents(), embeddings=embeddings, chunk_sizes=(1000, 500, None), cache=out / "vectors"
            )
            result = tune(space, whole.sample(count, seed=0), "ndcg@10", out=out / name, n_trials=trials)
            print(f"\n{name}\n{result}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
