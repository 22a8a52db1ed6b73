"""Snapshots of the vector leg: a small file that lists, for a generation, segments and what is dead in them.

It is put in place whole, after the segments that it lists are safe on disk; segments never change. So a reader
that has mapped a snapshot keeps it, whatever is written meanwhile.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from rag_kit.errors import IndexFormatError, IndexMissingError
from rag_kit.indexing.bm25 import container
from rag_kit.indexing.document_index.folder import private, remove_parts, repair_advice
from rag_kit.indexing.document_index.meta import State
from rag_kit.indexing.document_index.segment import Segment, mapped
from rag_kit.indexing.document_index.vector_view import View

logger = logging.getLogger(__name__)

KIND = container.Kind(b"RAGKVECS", 1, "vector snapshot")
_SEGMENT = re.compile(r"vectors-[0-9a-f]{8}-[0-9a-f]{16}\.rows")
_TRIES = 100  # each one a newer snapshot that a writer put in place meanwhile


def generations(folder: Path, state: State) -> list[int]:
    """The generations of the snapshots on disk, newest first."""
    pattern = re.compile(rf"vectors-{state.uid[:8]}-(\d+)\.index")
    names = (pattern.fullmatch(path.name) for path in folder.glob("vectors-*.index"))
    return sorted((int(match[1]) for match in names if match), reverse=True)


def path_of(folder: Path, state: State, generation: int) -> Path:
    """The path of a generation's snapshot."""
    return folder / f"vectors-{state.uid[:8]}-{generation}.index"


def newest(folder: Path, state: State, known: View, *, strict: bool = False) -> View:
    """The newest snapshot that is not ahead of the store, or ``known`` where none is newer or can be read.

    Raises:
        IndexFormatError, IndexMissingError, OSError: It is damaged, if ``strict``; else there is a warning.
    """
    for _ in range(_TRIES):
        # one that is ahead belongs to a log that was lost with the power; the writer removes it
        found = [generation for generation in generations(folder, state) if generation <= state.generation]
        if not found or found[0] <= known.generation:
            return known
        try:
            view = read(folder, state, found[0], known.segments)
            return known if view is None else view
        except (IndexFormatError, IndexMissingError, OSError) as error:
            if path_of(folder, state, found[0]).exists():
                if strict:
                    raise
                warn_of(error, folder)
                return known
    return known


def warn_of(error: Exception, folder: Path) -> None:
    """Say that a file is damaged, and what is done instead."""
    logger.warning("%s Vectors are searched in memory instead. %s", error, repair_advice(folder))


def read(folder: Path, state: State, generation: int, known: Iterable[Segment] = ()) -> View | None:
    """A snapshot with its segments mapped, or ``None`` where its vectors are of another model than the store's.

    Args:
        folder: Of the index.
        state: The store's.
        generation: The snapshot's.
        known: Segments that are mapped already.

    Raises:
        IndexMissingError: It is not there.
        IndexFormatError: It, or a segment, is damaged.
        OSError: A segment cannot be read.
    """
    segments = {segment.name: segment for segment in known}

    def parse(file: container.Sections) -> View | None:
        if file.header.get("embedding") != state.embedding:
            return None
        dead, found = np.frombuffer(file.raw("dead"), "<i8"), []
        for name, count, killed in file.header["segments"]:
            if not isinstance(name, str) or not _SEGMENT.fullmatch(name):
                raise ValueError(f"{name!r} is no name of a segment")
            if type(count) is not int or type(killed) is not int or not 0 <= killed < count:
                raise ValueError(f"{killed!r} of {count!r} rows are dead")
            segment = segments.get(name) or mapped(folder / name, count, state.dimension or 0)
            found.append(segment.with_dead(dead[:killed]))
            dead = dead[killed:]
        return View(generation, tuple(found), state.embedding)

    return container.load(path_of(folder, state, generation), KIND, parse)


def save(folder: Path, state: State, view: View) -> None:
    """Write the snapshot of a view, all segments of which are files."""
    dead = [segment.dead() for segment in view.segments]
    listed = [
        [segment.name, len(segment.numbers), len(killed)]
        for segment, killed in zip(view.segments, dead, strict=True)
    ]
    section = np.concatenate([np.empty(0, np.int64), *dead]).astype("<i8").tobytes()
    path = path_of(folder, state, view.generation)
    container.save(path, KIND, {"segments": listed, "embedding": view.embedding}, {"dead": section})
    private(path)


def remove_others(folder: Path, state: State, view: View) -> None:
    """Remove the vector files that are not of a view that is saved, and the Chroma folder of older versions."""
    keep = {path_of(folder, state, view.generation).name, *(segment.name for segment in view.segments)}
    found = [*folder.glob("*vectors*"), *folder.glob("chroma*")]
    # snapshots go before what they list: a reader that misses a segment sees that its snapshot is gone, and looks again
    remove_parts(sorted(found, key=lambda path: path.suffix != ".index"), keep)
