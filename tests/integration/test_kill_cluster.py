"""Workers are killed at random moments: the index is that of an undisturbed process."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from support.embedding import WordEmbeddings

from rag_kit.indexing import DocumentIndex, IngestOptions, ingest
from rag_kit.indexing.cluster.connecting import cluster_client

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1_800)]


def slow_reader(path: Path) -> str:
    time.sleep(0.02)
    return path.read_text(encoding="utf-8")


READERS = {"*.note": slow_reader}


def dump(folder: Path) -> Any:
    with DocumentIndex.open(folder) as index:
        ids = index.ids()
        rows = [(one.id, one.page_content, one.metadata) for one in index.get(ids)]
        return rows, index.vectors(ids), str(index.verify())


def write(docs: Path) -> None:
    docs.mkdir()
    for number in range(120):
        lines = "\n\n".join(
            f"Paragraph {part} of note {number} is about valve {part * number}." for part in range(9)
        )
        (docs / f"{number:03}.{'note' if number % 2 else 'md'}").write_text(f"# Note {number}\n\n{lines}")


def test_twenty_kills_change_nothing(tmp_path: Path) -> None:
    """kill -9 of a worker at 20 random moments: the run goes on, nothing twice, nothing missing."""
    docs, chance = tmp_path / "docs", random.Random(14)
    write(docs)
    options: dict[str, Any] = {"readers": READERS, "chunk_size": 200, "chunk_overlap": 0}
    ingest(docs, tmp_path / "one", embeddings=WordEmbeddings(), options=IngestOptions(**options))
    expected, hits = dump(tmp_path / "one"), 0
    with cluster_client(2, None) as client:
        for turn in range(20):
            ended = threading.Event()

            def kill(seconds: float, ended: threading.Event = ended) -> None:
                nonlocal hits
                if not ended.wait(seconds) and (pids := sorted(client.run(os.getpid).values())):
                    os.kill(chance.choice(pids), signal.SIGKILL)
                    hits += 1

            killer = threading.Thread(target=kill, args=(chance.uniform(0, 2.5),))
            killer.start()
            report = ingest(
                docs,
                tmp_path / f"{turn}",
                embeddings=WordEmbeddings(),
                options=IngestOptions(scheduler=client, **options),
            )
            ended.set()
            killer.join()
            assert not report.failed and report.added == 120
            assert dump(tmp_path / f"{turn}") == expected
    assert hits > 10
