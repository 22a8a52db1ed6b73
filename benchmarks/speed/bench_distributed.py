"""ingest on a Dask cluster of this machine: workers against one process, and an endpoint kept busy.

Nothing is written: the first rows read and split (a dry run), the third embeds. The endpoint is scripted, a process of
its own on loopback that takes 50 ms for each request and serves four at once, which is its limit; eight are sent.
"""

from __future__ import annotations

from harness import Row, at_least, at_most, timed  # isort: skip  (sets the threads first)

import os
import random
import statistics
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from bench_ingest import scripted

WAIT = 0.05
REQUESTS = 4
TEXTS = 64  # of one request


def run(quick: bool = False) -> list[Row]:
    """Reading and splitting, embedding, overhead."""
    from rag_kit.indexing.cluster.connecting import cluster_client

    rounds, requests, files = (1, 60, 300) if quick else (3, 200, 1_000)
    load = os.getloadavg()[0]
    seconds: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as name:
        heavy, tiny = Path(name, "heavy"), Path(name, "tiny")
        pages(heavy, 40 if quick else 120)
        notes(tiny, files)
        with cluster_client(1, None) as one, cluster_client(2, None) as two:
            for place, client in {"one process": None, "one worker": one, "two workers": two}.items():
                read(heavy, client)  # starts readers, imports what they need
                seconds[f"heavy, {place}"] = median(partial(read, heavy, client), rounds)
            seconds["tiny, one process"] = median(partial(read, tiny, None), rounds)
            seconds["tiny, one worker"] = median(partial(read, tiny, one), rounds)
            seconds["requests"] = endpoint(requests)
    heavy_one = seconds["heavy, one process"]
    overhead = (seconds["tiny, one worker"] - seconds["tiny, one process"]) / files * 1000
    share = requests / REQUESTS * WAIT / seconds["requests"]
    note = f"load {load:.1f} before; {', '.join(f'{name} {value:.1f} s' for name, value in seconds.items())}"
    return [
        at_least("two workers, reading and splitting", heavy_one / seconds["heavy, two workers"], 1.6, note),
        at_least("one worker, reading and splitting", heavy_one / seconds["heavy, one worker"], 0.8),
        at_least("an endpoint of 50 ms, share of its limit", share, 0.9),
        at_most("milliseconds that a tiny file takes longer with one worker", overhead, 5.0),
    ]


def median(call: Callable[[], object], rounds: int) -> float:
    """The median of the seconds that a call takes."""
    return statistics.median(timed(call)[0] for _ in range(rounds))


def read(docs: Path, client: Any) -> None:
    """Read and split a folder."""
    from rag_kit.indexing import IngestOptions, ingest

    options = IngestOptions(scheduler=client, keep_duplicates=True)
    report = ingest(docs, docs.parent / "none", dry_run=True, options=options)
    assert not report.failed, report.failed


def endpoint(requests: int) -> float:
    """Seconds that so many requests take to the endpoint; this process sends them, whoever reads."""
    from rag_kit.indexing.document_index.embedding import embed_ahead
    from rag_kit.models import embedding_model

    with scripted(WAIT, REQUESTS) as url:
        model = embedding_model("openai:test", base_url=url, api_key="sk-test")

        def send(count: int) -> None:
            with closing(embed_ahead(model, groups(count), None, 2 * REQUESTS)) as made:
                assert sum(len(vectors) for vectors in made) == count * TEXTS

        send(20 * REQUESTS)  # the client is imported, and connects
        return timed(partial(send, requests))[0]


def groups(count: int) -> Iterator[dict[bytes, str]]:
    """So many requests' texts by their keys."""
    for number in range(count):
        yield {f"{number} {each}".encode(): f"text {number} {each}" for each in range(TEXTS)}


def words(chance: random.Random, count: int) -> str:
    """Some sentences."""
    return " ".join(f"{' '.join(f'word{chance.randrange(3_000)}' for _ in range(12))}." for _ in range(count))


def pages(folder: Path, files: int) -> None:
    """PDFs of six pages."""
    from reportlab.lib.styles import getSampleStyleSheet
    from reportlab.platypus import PageBreak, Paragraph, SimpleDocTemplate

    folder.mkdir()
    chance, style = random.Random(0), getSampleStyleSheet()["BodyText"]
    for number in range(files):
        story: list[Any] = []
        for _ in range(6):
            story += [Paragraph(words(chance, 8), style) for _ in range(5)]
            story.append(PageBreak())
        SimpleDocTemplate(str(folder / f"{number:04}.pdf")).build(story)


def notes(folder: Path, files: int) -> None:
    """Text files of one passage."""
    folder.mkdir()
    chance = random.Random(1)
    for number in range(files):
        (folder / f"{number:05}.txt").write_text(words(chance, 3), encoding="utf-8")
