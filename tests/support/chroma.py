"""One in-memory Chroma a process: a second one with other settings is refused."""

from __future__ import annotations

from typing import Any


def memory_client() -> Any:
    """A client of the process's in-memory Chroma, which sends nothing."""
    import chromadb
    from chromadb.config import Settings

    return chromadb.EphemeralClient(Settings(anonymized_telemetry=False))
