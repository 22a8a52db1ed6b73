"""ingest against the slowest of its parts by itself: reading and splitting, embedding by an endpoint, writing.

The endpoint is scripted, a process of its own on loopback. What it, the reader and the disk wait is chosen so that each
part is the slowest in turn; the seconds of each stand in the note. Where nothing waits, all parts compete for one
interpreter, and their sum is what to compare with.
"""

from __future__ import annotations

from harness import Row, at_most, timed  # isort: skip  (sets the threads first)

import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings

SIZE = 16
CHUNK = 400
TESTS = Path(__file__).resolve().parents[2] / "tests"
SERVER = """
import sys, threading, time
from support.openai_server import OpenAIServer
wait, places = float(sys.argv[1]), threading.Semaphore(int(sys.argv[2]))
def answer(request):
    with places:
        time.sleep(wait)
with OpenAIServer(embeddings=[answer]) as server:
    print(server.url, flush=True)
    sys.stdin.read()
"""


@dataclass(frozen=True)
class Waits:
    """Seconds that each part waits.

    Attributes:
        name: What the row is called.
        reader: For each file of 16 chunks.
        endpoint: For each request for embeddings.
        disk: Longer for each commit.
        add: Compare with the sum of the parts.
    """

    name: str
    reader: float
    endpoint: float
    disk: float
    add: bool = False


CASES = (
    Waits("reading is the slowest", reader=0.03, endpoint=0.1, disk=0.02),
    Waits("embedding is the slowest", reader=0.004, endpoint=2.0, disk=0.02),
    Waits("writing is the slowest", reader=0.004, endpoint=0.1, disk=0.5),
    Waits("nothing waits, against the sum", reader=0.0, endpoint=0.0, disk=0.0, add=True),
)


class Prepared(Embeddings):
    """One vector for all, so that only writing is timed."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [[1.0] * SIZE] * len(texts)

    def embed_query(self, text: str) -> list[float]:
        return [1.0] * SIZE


def run(quick: bool = False) -> list[Row]:
    """Each part the slowest in turn, then none of them."""
    files, rounds = (300, 1) if quick else (400, 2)
    with tempfile.TemporaryDirectory() as name:
        base = Path(name)
        docs = base / "docs"
        docs.mkdir()
        chance, words = random.Random(0), [f"word{number}" for number in range(3_000)]
        for number in range(files):
            lines = (f"{' '.join(chance.choices(words, k=12))}." for _ in range(64))
            (docs / f"{number}.note").write_text("\n".join(lines), encoding="utf-8")
        return [case(docs, rounds, each) for each in CASES]


def case(docs: Path, rounds: int, waits: Waits) -> Row:
    """One row: medians over rounds."""
    from rag_kit.indexing import IngestOptions, ingest
    from rag_kit.models import embedding_model

    def read(path: str) -> list[Document]:
        time.sleep(waits.reader)
        return [Document(Path(path).read_text(encoding="utf-8"))]

    readers = {"*.note": read}
    parts: dict[str, list[float]] = {"read": [], "embed": [], "write": []}
    whole = []
    with scripted(waits.endpoint) as url, slower(waits.disk):
        model = embedding_model("openai:test", base_url=url, api_key="sk-test")
        assert model is not None
        for _ in range(rounds):
            folders = [Path(tempfile.mkdtemp(dir=docs.parent)) for _ in range(2)]
            for part, seconds in alone(docs, folders[0], model, readers).items():
                parts[part].append(seconds)
            options = IngestOptions(readers=readers, chunk_size=CHUNK, chunk_overlap=0)
            taken = partial(ingest, docs, folders[1], embeddings=model, options=options)
            whole.append(timed(taken)[0])
    medians = {part: statistics.median(seconds) for part, seconds in parts.items()}
    against = sum(medians.values()) if waits.add else max(medians.values())
    note = ", ".join(f"{part} {seconds:.1f} s" for part, seconds in medians.items())
    return at_most(waits.name, statistics.median(whole) / against, 1.1, note)


def alone(docs: Path, folder: Path, model: Embeddings, readers: Mapping[str, Any]) -> dict[str, float]:
    """Seconds of each part, one after the other."""
    from rag_kit.indexing import DocumentIndex
    from rag_kit.indexing.document_index.embedding import embed_ahead
    from rag_kit.indexing.document_index.rows import text_hash
    from rag_kit.indexing.ingestion.converting import Converter
    from rag_kit.indexing.ingestion.grouping import Grouping
    from rag_kit.indexing.ingestion.opening import list_files
    from rag_kit.indexing.ingestion.report import IngestReport, Progress
    from rag_kit.indexing.ingestion.settings import IngestOptions, SplitSettings
    from rag_kit.indexing.splitting.api import choose_splitter

    settings = SplitSettings(choose_splitter("structure", chunk_size=CHUNK, chunk_overlap=0), CHUNK, 0)
    with DocumentIndex.create(folder, embeddings=Prepared()) as index:
        start = time.perf_counter()
        files, *_ = list_files([docs], folder, [], prune=False)
        with closing(Converter(settings, None, readers)) as converter:
            grouping = Grouping(
                index,
                files,
                converter,
                {},
                settings.key,
                IngestReport(),
                Progress(None, 0),
                size=256,
                options=IngestOptions(),
            )
            groups = list(grouping.groups())
        read = time.perf_counter()
        texts = ({text_hash(row.text): row.text for row in group.rows} for group in groups)
        with closing(embed_ahead(model, texts, None)) as made:
            for _ in made:
                pass
        embedded = time.perf_counter()
        index.record_settings(settings.values)
        for group in groups:
            index.write(group)
    return {"read": read - start, "embed": embedded - read, "write": time.perf_counter() - embedded}


@contextmanager
def scripted(wait: float, at_once: int = 1_000) -> Iterator[str]:
    """The address of an endpoint that takes so long for each request, and serves so many at once."""
    with subprocess.Popen(
        [sys.executable, "-c", SERVER, str(wait), str(at_once)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=TESTS,
    ) as server:
        assert server.stdin is not None and server.stdout is not None
        yield server.stdout.readline().strip()
        server.stdin.close()


@contextmanager
def slower(wait: float) -> Iterator[None]:
    """A disk that takes longer to commit what was written."""
    from rag_kit.indexing.document_index.store import Store

    original = Store.writing

    @contextmanager
    def writing(store: Store) -> Iterator[Any]:
        outermost = store._open is None
        with original(store) as connection:
            yield connection
            if outermost:
                time.sleep(wait)

    Store.writing = writing  # type: ignore[method-assign]
    try:
        yield
    finally:
        Store.writing = original  # type: ignore[method-assign]
