"""Which rows a Chroma collection does not find, and the errors that it may raise meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from rag_kit.errors import IndexError_
from rag_kit.indexing.document_index.matrix import Vectors, unpack
from rag_kit.indexing.document_index.store import in_groups

#: Chroma's graph leaves single rows out of reach (10 of 20,000 measured); more than this share is damage.
_UNREACHED = 0.005
#: In a small collection, whose graph each process makes anew, a share says nothing: this many may be missed.
_FEW = 3


class MirrorError(IndexError_):
    """Chroma failed, or its collection cannot be used at the moment."""


@contextmanager
def guarded(doing: str) -> Iterator[None]:
    """Whatever Chroma raises, a panic of its Rust part included, becomes a MirrorError."""
    try:
        yield
    except MirrorError:
        raise
    except Exception as error:
        raise MirrorError(f"Chroma failed while {doing}: {type(error).__name__}: {error}") from error
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise MirrorError(f"Chroma panicked while {doing}: {error}") from error


def all_lost(
    collection: Any, rows: dict[str, bytes], dimension: int, progress: Callable[[int], None]
) -> list[str]:
    """Rows that a search for their own vector does not bring."""
    found: list[str] = []
    with guarded("checking its rows"):
        for group in in_groups(rows, 200):
            found += lost(collection, group, unpack([rows[key] for key in group], dimension))
            progress(len(group))
    return found


def lost(collection: Any, ids: list[str], vectors: Vectors) -> list[str]:
    """Rows whose own vector does not bring them, or an equal vector, at distance 0."""
    found = []
    live = [i for i in range(len(ids)) if vectors[i].any()]
    if not live:
        return []
    for n in (1, 20):  # the graph is approximate: a second, wider look before a row counts as lost
        answer = collection.query(query_embeddings=vectors[live], n_results=n, include=["distances"])
        found = [
            i
            for i, keys, distances in zip(live, answer["ids"], answer["distances"], strict=True)
            if ids[i] not in keys and not (distances and min(distances) < 1e-5)
        ]
        if not found:
            break
        live = found
    return [ids[i] for i in found]


def harmed(collection: Any, ids: list[str], rows: dict[str, bytes], dimension: int) -> list[str]:
    """Those of some rows for which Chroma does not hold the vector that it was given."""
    found = []
    with guarded("reading vectors"):
        for group in in_groups(ids, 200):
            answer = collection.get(ids=group, include=["embeddings"])
            held = dict(zip(answer["ids"], np.asarray(answer["embeddings"], np.float32), strict=True))
            for key, vector in zip(group, unpack([rows[key] for key in group], dimension), strict=True):
                if key not in held or not np.allclose(held[key], vector, rtol=1e-4, atol=1e-6):
                    found.append(key)
    return found


def most_unreached(rows: int) -> int:
    """How many rows Chroma's graph may miss before it counts as damage: a share, or a few of a few rows."""
    return max(int(rows * _UNREACHED), min(_FEW, rows // 10))
