"""The small facts that a store keeps about itself, and whether they can be true."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from rag_kit.errors import IndexFormatError
from rag_kit.indexing.document_index.sql import Connection

_UID = re.compile("[0-9a-f]{32}")  # it becomes part of a file's name
_MOST = 2**63 - 1  # what the stores can hold


@dataclass(frozen=True)
class State:
    """The small facts about an index, as of one generation.

    Attributes:
        uid: Names this index among others.
        generation: Counter of write transactions.
        floor: Removals up to this generation are forgotten.
        embedding: Name of the embedding model, ``None`` for an index without vectors.
        dimension: Length of the vectors, once there is one.
        settings: How files were read and split.
        titles: Whether titles and headings are searched with the texts below them; not in folders of before.
        derived: Whether a row may have been made of passages (`searched.REPRESENTATION`).
        vector_store: Class of the vector store that its vectors are searched in; ``None`` for files.
    """

    uid: str
    generation: int
    floor: int
    embedding: str | None
    dimension: int | None
    settings: dict[str, Any]
    titles: bool = False
    derived: bool = True
    vector_store: str | None = None


def read_state(connection: Connection, path: object) -> State:
    """The facts in a store.

    Raises:
        IndexFormatError: One is missing or cannot be true; the message names it and what can be done.
    """
    found: dict[str, Any] = {}
    for key, value in connection.execute("SELECT key, value FROM meta"):
        try:
            found[key] = json.loads(value)
        except (ValueError, TypeError, RecursionError) as error:
            raise IndexFormatError(
                f"{path}: meta {str(key)[:200]!r} cannot be read ({error}). {_ADVICE}"
            ) from error
    found.setdefault("titles", False)
    found.setdefault("derived", True)  # in folders of before nobody looked
    found.setdefault("vector_store", None)
    if lacking := [name for name in State.__dataclass_fields__ if name not in found]:
        raise IndexFormatError(f"{path} lacks what an index needs (meta {lacking[0]!r}). {_ADVICE}")
    state = State(**{name: found[name] for name in State.__dataclass_fields__})
    if wrong := _wrong(state):
        raise IndexFormatError(
            f"{path}: meta {wrong[0]!r} is {str(getattr(state, wrong[0]))[:200]!r}; "
            f"it must be {wrong[1]}. {_ADVICE}"
        )
    return state


#: None of the facts is derived from anything.
_ADVICE = (
    "Nothing in the index tells what it was, so repair cannot mend it: put a backup in its place, or "
    "ingest again into a new folder."
)


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= _MOST


def _wrong(state: State) -> tuple[str, str] | None:
    """The first fact that is not what it must be, and what that is."""
    checks: list[tuple[str, bool, str]] = [
        ("uid", isinstance(state.uid, str) and _UID.fullmatch(state.uid) is not None, "32 hex digits"),
        ("generation", _is_count(state.generation), "a whole number from 0"),
        ("floor", _is_count(state.floor), "a whole number from 0"),
        ("embedding", state.embedding is None or isinstance(state.embedding, str), "a name or null"),
        ("dimension", state.dimension is None or _is_count(state.dimension), "a whole number or null"),
        ("settings", isinstance(state.settings, dict), "an object"),
        ("titles", isinstance(state.titles, bool), "true or false"),
        ("vector_store", isinstance(state.vector_store, str | None), "a name or null"),
        ("derived", isinstance(state.derived, bool), "true or false"),
    ]
    return next(((name, what) for name, good, what in checks if not good), None)
