"""One process writes to an index for a while, four search it and one verifies it: no crash, no half of a write."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from support.embedding import WordEmbeddings

from rag_kit.indexing import DocumentIndex
from rag_kit.retrieval import index_retriever

SECONDS = float(os.environ.get("RAG_KIT_SOAK", "20"))
SEED = int(os.environ.get("RAG_KIT_SEED", "20261122"))
TOGETHER = 25  # documents that always change in one write
KINDS = ("keyword", "dense", "hybrid", "hybrid", "verify")


def write(folder: Path, end: float) -> int:
    """Write rounds of documents, save, delete and close at random until the time is up; the number of rounds."""
    chance, number = random.Random(SEED), 0
    while time.monotonic() < end:
        with DocumentIndex.open(folder, embeddings=WordEmbeddings(), mode="w") as index:
            for _ in range(chance.randrange(1, 30)):
                number += 1
                together = [
                    Document(f"pangolin walk {place} {number}", id=str(place), metadata={"round": number})
                    for place in range(TOGETHER)
                ]
                with index.transaction():
                    index.upsert(together)
                    filler = [
                        f"filler {chance.randrange(500)} of {number}" for _ in range(chance.randrange(40))
                    ]
                    index.upsert([Document(text, metadata={"round": 0}) for text in dict.fromkeys(filler)])
                    index.delete(chance.sample(index.ids("") or ["-"], 5) if number > 5 else [])
                    index.upsert(together)
                if chance.random() < 0.2:
                    index.flush()
    return number


def read(folder: Path, kind: str, end: float) -> int:
    """Search or verify until the time is up, opening the index anew now and then; how often."""
    chance, done, latest = random.Random(kind), 0, 0
    while time.monotonic() < end:
        with DocumentIndex.open(folder, embeddings=WordEmbeddings()) as index:
            retriever = index_retriever(index, "hybrid", k=TOGETHER, filter={"round": {"$gt": 0}})
            searches: dict[str, Callable[[], list[Document]]] = {
                "keyword": lambda: [d for d, _ in index.search_keyword("pangolin", 2 * TOGETHER)],
                "dense": lambda: [
                    d for d, _ in index.search_dense("pangolin walk", TOGETHER, {"round": {"$gt": 0}})
                ],
            }
            for _ in range(chance.randrange(1, 60)):
                done += 1
                if kind == "verify":
                    wrong = index.verify().problems
                    assert not wrong, wrong
                elif kind == "hybrid":  # two searches, so two states may be seen
                    found = retriever.invoke("pangolin walk")
                    assert len({d.id for d in found}) == len(found) == TOGETHER
                else:
                    found = searches[kind]()
                    rounds = {d.metadata["round"] for d in found}
                    assert len(found) == TOGETHER and len(rounds) == 1, (kind, len(found), rounds)
                    assert max(rounds) >= latest, "a later search saw an earlier state"
                    latest = max(rounds)
                if time.monotonic() > end:
                    break
    return done


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_many_processes_while_one_writes(tmp_path: Path) -> None:
    """Every process lives to the end, and every answer is that of one committed state."""
    folder = tmp_path / "index"
    with DocumentIndex.create(folder, embeddings=WordEmbeddings()) as index:
        index.upsert(
            [Document(f"pangolin walk {i} 0", id=str(i), metadata={"round": 0.5}) for i in range(TOGETHER)]
        )
    tests = str(Path(__file__).resolve().parents[1])
    environment: dict[str, Any] = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([tests, os.environ.get("PYTHONPATH", "")]),
        "OPENBLAS_NUM_THREADS": "1",
    }
    processes = {
        f"{kind} {number}": subprocess.Popen(
            [sys.executable, __file__, str(folder), kind, str(SECONDS)],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number, kind in enumerate(("write", *KINDS))
    }
    for name, process in processes.items():
        out, errors = process.communicate(timeout=SECONDS + 300)
        assert process.returncode == 0 and errors == "", f"{name}: {process.returncode}\n{errors}"
        print(f"{name}: {out.strip()}", file=sys.stderr)
        assert int(out) > 0
    with DocumentIndex.open(folder, embeddings=WordEmbeddings()) as index:
        assert index.verify().ok


if __name__ == "__main__":
    where, what, seconds = Path(sys.argv[1]), sys.argv[2], float(sys.argv[3])
    until = time.monotonic() + seconds
    print(write(where, until) if what == "write" else read(where, what, until))
