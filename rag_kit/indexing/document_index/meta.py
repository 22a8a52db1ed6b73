"""The small facts that a store keeps about itself."""

from __future__ import annotations

import json
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rag_kit.errors import IndexFormatError
from rag_kit.indexing.document_index.sql import Connection

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
        vector_store: Class of the vector store that its vectors are searched in; ``None`` for files.
    """

    model_config = ConfigDict(strict=True, frozen=True, extra="ignore")

    uid: Annotated[str, Field(pattern="^[0-9a-f]{32}$")]
    generation: _Count = 0
    floor: _Count = 0
    embedding: str | None = None
    dimension: _Count | None = None
    settings: dict[str, Any] = {}
    derived: bool = True  # where nothing says so, it may
    vector_store: str | None = None


def read_state(connection: Connection, path: object) -> State:
    """The facts in a store.

    Raises:
        IndexFormatError: One is missing or cannot be true; the message names it and what can be done.
    """
    key = None
    try:
        found: dict[str, Any] = {}
        for key, value in connection.execute("SELECT key, value FROM meta"):
            found[key] = json.loads(value)
        return State.model_validate(found)
    except ValidationError as error:
        [wrong, *_] = error.errors(include_url=False)
        key, why = ".".join(map(str, wrong["loc"])), f"is {str(wrong['input'])[:200]!r}: {wrong['msg']}"
    except (ValueError, TypeError, RecursionError) as error:
        why = f"cannot be read ({error})"
    raise IndexFormatError(
        f"{path}: meta {str(key)[:200]!r} {why}. Nothing in the index tells what it was, so repair cannot mend it: put "
        "a backup in its place, or ingest again into a new folder."
    )
