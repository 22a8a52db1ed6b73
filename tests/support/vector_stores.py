"""Vector stores for an index, each made by a function that is given the embedding model."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore

SIZE = 48


class Points(Embeddings):
    """A random vector for each text, the same each time; keeps what it was asked for."""

    def __init__(self, size: int = SIZE) -> None:
        self.size = size
        self.texts: list[str] = []

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.texts += texts
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        seed = list(text.encode())
        return [float(x) for x in 0.3 + np.random.default_rng(seed).normal(size=self.size)]


def rows(numbers: range, version: int = 0) -> list[Document]:
    """English and Chinese; some texts twice below another title, metadata that a store may not hold."""
    made = []
    for n in numbers:
        metadata: dict[str, Any] = {"n": n, "v": version, "kind": "ab"[n % 2], "none": None, "empty": []}
        metadata |= {"tags": ["x", "y"][: 1 + n % 2]} if n % 3 else {}
        text = (
            f"文本 {n} {version}" if n % 5 == 0 else f"text {n} {version} about pumps and valves in the plant"
        )
        if n % 10 == 1:
            text, metadata["title"] = "The same text, which has a title above it, in every tenth", f"Page {n}"
        made.append(Document(text, id=f"d{n}", metadata=metadata))
    return made


@dataclass
class Kind:
    """A kind of store.

    Attributes:
        name: What an error has to name.
        make: Makes it anew, or connects to what was written before.
    """

    name: str
    make: Callable[[Embeddings], VectorStore]
    clients: list[Any] = field(default_factory=list)

    def arguments(self) -> dict[str, Any]:
        """As `DocumentIndex.create` and `open` take them."""
        return {"vector_store": self.make}


def qdrant(size: int = SIZE) -> Kind:
    """Qdrant in this process."""
    from langchain_qdrant import QdrantVectorStore
    from qdrant_client import QdrantClient
    from qdrant_client.http.models import Distance, VectorParams

    client = QdrantClient(":memory:")
    client.create_collection("rows", vectors_config=VectorParams(size=size, distance=Distance.COSINE))
    return Kind("Qdrant", lambda embeddings: QdrantVectorStore(client, "rows", embeddings), clients=[client])


def chroma(name: str, client: Any) -> Kind:
    """A collection of Chroma, whose metric is not cosine."""
    from langchain_chroma import Chroma

    return Kind("Chroma", lambda embeddings: Chroma(name, embeddings, client=client))


def milvus(folder: Path) -> Kind:
    """Milvus Lite."""
    from langchain_milvus import Milvus

    def make(embeddings: Embeddings) -> VectorStore:
        return Milvus(
            embeddings,
            connection_args={"uri": str(folder / "milvus.db")},
            collection_name="rows",
            enable_dynamic_field=True,
            auto_id=False,
            consistency_level="Strong",
            index_params={"index_type": "FLAT", "metric_type": "COSINE"},
        )

    return Kind("Milvus", make)


class ChromaServer:
    """Chroma's own server in a process group of its own; it may be killed and started again."""

    def __init__(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]

    def start(self) -> None:
        """Start it, and wait until it answers."""
        program = Path(sys.executable).with_name("chroma")
        command = [
            str(program),
            "run",
            "--path",
            self._folder.name,
            "--host",
            "127.0.0.1",
            "--port",
            str(self.port),
        ]
        self._process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
            env={**os.environ, "ANONYMIZED_TELEMETRY": "False"},
        )  # fmt: skip
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and self._process.poll() is None:
            with socket.socket() as probe:
                if not probe.connect_ex(("127.0.0.1", self.port)):
                    return
            time.sleep(0.1)
        raise RuntimeError("the Chroma server does not answer")

    def kill(self) -> None:
        """End it at once."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def kind(self, name: str) -> Kind:
        """A collection on it."""
        return Kind("Chroma", ServedChroma(name, self.port))

    def __enter__(self) -> ChromaServer:
        self._folder = tempfile.TemporaryDirectory(prefix="rkchroma", ignore_cleanup_errors=True)
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
        self._folder.cleanup()


@dataclass
class ServedChroma:
    """Connects to a collection of a server; can be pickled."""

    name: str
    port: int

    def __call__(self, embeddings: Embeddings) -> VectorStore:
        from langchain_chroma import Chroma

        return Chroma(self.name, embeddings, host="127.0.0.1", port=self.port)
