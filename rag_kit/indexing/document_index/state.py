"""The small facts about an index, which are kept in its store."""

from __future__ import annotations

import json
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from rag_kit.errors import IndexFormatError, IndexMissingError
from rag_kit.indexing.document_index.sql import Connection

VERSION = 4  # of the tables
_Count = Annotated[int, Field(ge=0, lt=2**63)]  # what the stores can hold


class State(BaseModel):
    """The small facts about an index, as of one generation.

    Attributes:
        uid: Names this index among others; a part of the names of its files.
        generation: Counter of write transactions.
        floor: Removals up to this generation are forgotten.
        embedding: Name of the embedding model, ``None`` for an index without vectors.
        dimension: Length of the vectors, once there is one.
        settings: How files were read and split.
        derived: Whether a row may have been made of passages (`searched.REPRESENTATION`).
        version: Of the tables.
        vector_store: Class of the vector store that its vectors are searched in; ``None`` for files.
        next_embedding: Name of the model that ``reembed`` is making vectors by.
        next_dimension: Length of those vectors.
    """

    model_config = ConfigDict(strict=True, frozen=True, extra="ignore")

    uid: Annotated[str, Field(pattern="^[0-9a-f]{32}$")]
    generation: _Count = 0
    floor: _Count = 0
    embedding: str | None = None
    dimension: _Count | None = None
    settings: dict[str, Any] = {}
    derived: bool = True  # where nothing says so, it may
    version: int = VERSION
    vector_store: str | None = None
    next_embedding: str | None = None
    next_dimension: _Count | None = None


def read_state(connection: Connection, location: object) -> State:
    """The facts in a store.

    Raises:
        IndexMissingError: There are none: an index was begun, and never made.
        IndexFormatError: It is of another version; or a fact is missing or cannot be true.
    """
    rows = connection.execute("SELECT key, value FROM meta").fetchall()
    if not {key for key, _ in rows} - {"uid"}:
        raise missing_index(location)
    try:
        facts = {key: json.loads(value) for key, value in rows}
        if facts.get("version", VERSION) == VERSION:
            return State.model_validate(facts)
    except (ValueError, TypeError, RecursionError) as error:
        raise IndexFormatError(
            f"{location}: the facts in its table meta cannot be read ({' '.join(str(error).split())[:300]}). Nothing "
            "else tells what they were: put a backup in its place, or ingest again into a new folder."
        ) from error
    raise IndexFormatError(
        f"{location} has format version {facts['version']!r}; this rag_kit reads {VERSION}. Take the rag_kit that "
        "wrote it, or ingest again into another folder."
    )


def missing_index(location: object) -> IndexMissingError:
    """The error for a folder or database without an index."""
    return IndexMissingError(
        f"There is no index in {location}. Make one: rag-kit ingest PATH --index '{location}'"
    )
