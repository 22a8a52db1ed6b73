"""Checks of the Chroma collection against the store."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

from rag_kit.indexing.document_index.changes import changed_vectors
from rag_kit.indexing.document_index.lost_rows import MirrorError, all_lost, harmed, most_unreached
from rag_kit.indexing.document_index.mirror import ChromaMirror
from rag_kit.indexing.document_index.store import Store


def chroma_problems(
    folder: Path,
    mirror: ChromaMirror,
    store: Store,
    connection: sqlite3.Connection,
    progress: Callable[[int], None],
) -> tuple[list[str], list[str]]:
    """Look whether each row finds itself.

    Args:
        folder: The folder of the index.
        mirror: The collection.
        store: The truth.
        connection: The store, for ids and vectors.
        progress: Told how many rows were looked at.

    Returns:
        What is wrong, and what is only worth knowing, in words; empty where all is well.
    """
    state = store.state(connection)
    chroma = state.chroma
    if not chroma["clean"]:
        return ["chroma: a writer is at work or was killed; the collection is not used meanwhile"], []
    rows = dict(changed_vectors(connection, -1))
    if not rows and not (folder / chroma["folder"]).is_dir():
        return [], []
    found: list[str] = []
    try:
        with mirror.lock:
            if chroma["generation"] != state.generation:
                found.append(
                    f"chroma: stands at generation {chroma['generation']}, the store at {state.generation}"
                )
                rows = {key: rows[key] for key in mirror.known(chroma) if key in rows}
            else:
                there = set(mirror.known(chroma))
                if lacking := rows.keys() - there:
                    found.append(f"chroma: {len(lacking)} rows are missing, for example {min(lacking)}")
                if extra := there - rows.keys():
                    found.append(f"chroma: {len(extra)} rows should be gone, for example {min(extra)}")
                rows = {key: rows[key] for key in sorted(rows.keys() & there)}
            collection, dimension = mirror.opened(chroma), state.dimension or 0
            lost = all_lost(collection, rows, dimension, progress)
            lost = sorted(set(lost).difference(chroma.get("unreached", [])))
            wrong = harmed(collection, lost, rows, dimension)
    except MirrorError as error:
        return [f"chroma: {error}"], []
    if wrong:
        found.append(
            f"chroma: {len(wrong)} rows have other vectors than were written, for example {wrong[0]}"
        )
        return found, []
    if len(lost) > most_unreached(len(rows)):
        return [*found, f"chroma: {len(lost)} rows do not find themselves, for example {lost[0]}"], []
    if not lost:
        return found, []
    note = (
        f"{len(lost)} of {len(rows)} rows are out of reach of Chroma's graph (exact search finds them; "
        f"after a repair all do), for example {lost[0]}"
    )
    return found, [note]
