"""kill -9 of a reembed at random moments: one model's vectors or the other's, never a mixture."""

from __future__ import annotations

import multiprocessing
import os
import random
import shutil
import time
from pathlib import Path

import pytest
from langchain_core.documents import Document
from support.embedding import WordEmbeddings

from rag_kit.indexing import DocumentIndex

KILLS = int(os.environ.get("RAG_KIT_KILLS", "50"))
SEED = int(os.environ.get("RAG_KIT_SEED", "20261121"))
OLD, NEW = 128, 96


def reembed(folder: Path) -> None:
    with DocumentIndex.open(folder, mode="w", check=False) as index:
        index.reembed(WordEmbeddings(NEW))


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif(not hasattr(os, "fork"), reason="kill -9 and fork are of POSIX")
def test_killed_and_run_again_gives_one_models_vectors(tmp_path: Path) -> None:
    """After each kill the index is whole by the old model or by the new one; the same call ends the work."""
    base = tmp_path / "base"
    with DocumentIndex.create(base, embeddings=WordEmbeddings(OLD)) as index:
        index.upsert([Document(f"pump{i} valve{i % 90} common", id=f"d{i}") for i in range(3000)])
    chance, fork = random.Random(SEED), multiprocessing.get_context("fork")
    duration, killed, after = 0.0, 0, set()
    for number in range(KILLS + 1):
        work = tmp_path / f"work{number}"
        shutil.copytree(base, work)
        process = fork.Process(target=reembed, args=(work,))
        started = time.monotonic()
        process.start()
        if number:
            process.join(chance.random() * duration)
            process.kill()
        process.join()
        if process.exitcode == -9:
            killed += 1
        else:  # the last whole run: the speed of the machine may have changed
            duration = time.monotonic() - started
        after.add(_whole(work))
        reembed(work)
        assert _whole(work) == NEW, f"kill {number}, seed {SEED}"
        shutil.rmtree(work)
    assert killed >= KILLS * 0.5, "most of the kills must hit; is the machine's speed jumping?"
    assert after == {OLD, NEW}


def _whole(folder: Path) -> int:
    """Which model an index has vectors of, all of them."""
    with DocumentIndex.open(folder) as index:
        size = index.stats()["dimension"]
    model = WordEmbeddings(size)
    name = DocumentIndex.recorded_embedding(folder)
    assert name is not None and name.endswith(f"[{size}]")
    with DocumentIndex.open(folder, embeddings=model) as index:
        assert all("behind" in problem for problem in index.verify().problems)
        for i in (0, 511, 512, 2999):
            assert index.vectors([f"d{i}"])[f"d{i}"] == pytest.approx(
                model.vector(f"pump{i} valve{i % 90} common")
            )
        text = "pump77 valve77 common"
        assert text in [document.page_content for document, _ in index.search_dense(text, 60)]
    return size
