"""The store: the truth of an index, out of which keyword and vector search are derived.

Every row carries the generation (a counter of write transactions) that last changed it, so that whatever is
derived can be brought up to date from the generation it stands at.
"""

from __future__ import annotations

import json
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rag_kit.errors import IndexFormatError, IndexMissingError
from rag_kit.indexing.document_index.sql import Connection, replacing

if TYPE_CHECKING:
    from pathlib import Path

    from rag_kit.indexing.postgres.location import Location

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


def read_state(connection: Connection, path: object) -> State:
    """The facts in a store.

    Raises:
        IndexMissingError: There are none: an index was begun, and never made.
        IndexFormatError: It is of another version; or one is missing or cannot be true, which the message names.
    """
    key = None
    try:
        found: dict[str, Any] = {}
        for key, value in connection.execute("SELECT key, value FROM meta"):
            found[key] = json.loads(value)
        if not found.keys() - {"uid"}:
            raise IndexMissingError(
                f"There is no index in {path}. Make one: rag-kit ingest PATH --index FOLDER"
            )
        if found.get("version", VERSION) == VERSION:
            return State.model_validate(found)
        raise IndexFormatError(
            f"{path} has format version {found['version']!r}; this rag_kit reads {VERSION}. Take the rag_kit that "
            "wrote it, or build the index again in another folder."
        )
    except ValidationError as error:
        [wrong, *_] = error.errors(include_url=False)
        key, why = ".".join(map(str, wrong["loc"])), f"is {str(wrong['input'])[:200]!r}: {wrong['msg']}"
    except (ValueError, TypeError, RecursionError) as error:
        why = f"cannot be read ({error})"
    raise IndexFormatError(
        f"{path}: meta {str(key)[:200]!r} {why}. Nothing in the index tells what it was, so repair cannot mend it: put "
        "a backup in its place, or ingest again into a new folder."
    )


class Store(ABC):
    """Transactions over the tables of an index; see ``sqlite_store`` and ``rag_kit.indexing.postgres.store``.

    Attributes:
        path: Where it is, for messages.
        write_lock: Held by the thread that writes.
    """

    def __init__(self, path: Path | Location) -> None:
        self.path = path
        self.write_lock = threading.RLock()
        self._depth = 0
        self._open: Connection | None = None

    @abstractmethod
    def explained(self) -> AbstractContextManager[None]:
        """Turn the database's errors into ours."""

    @abstractmethod
    def reading(self) -> AbstractContextManager[Connection]:
        """One consistent view of the committed state."""

    @abstractmethod
    def _begin(self) -> Connection:
        """Begin a write transaction, or raise where the index was opened for reading."""

    @abstractmethod
    def _commit(self, connection: Connection) -> None:
        """Commit the write transaction; rolls back where that fails."""

    @abstractmethod
    def _rollback(self, connection: Connection) -> None:
        """Undo the write transaction."""

    @abstractmethod
    def damage(self, connection: Connection) -> str:
        """What the database itself says is damaged; empty for a sound one."""

    @abstractmethod
    def close(self) -> None:
        """Close all connections."""

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """One write transaction; nested ones join the outermost. Rolled back when anything is raised.

        Raises:
            DocumentIndexError: The index was opened for reading, or the database cannot write.
        """
        with self.write_lock, self.explained():
            if self._depth == 0:
                self._open = self._begin()
            assert self._open is not None
            self._depth += 1
            try:
                yield self._open
            except BaseException:
                self._depth -= 1
                if self._depth == 0:
                    self._rollback(self._open)
                raise
            self._depth -= 1
            if self._depth == 0:
                self._commit(self._open)

    @contextmanager
    def looking(self) -> Iterator[Connection]:
        """As ``reading``, but inside an open write transaction with what it has written so far."""
        with self.write_lock:
            if self._depth and self._open is not None:
                yield self._open
                return
            with self.reading() as connection:
                yield connection

    def state(self, connection: Connection | None = None) -> State:
        """The small facts, by default as last committed."""
        if connection is None:
            with self.reading() as reader:
                return self.state(reader)
        return read_state(connection, self.path)

    def set_meta(self, **values: Any) -> None:
        """Set small facts, in the open write transaction or one of its own."""
        with self.writing() as connection:
            facts = [(key, json.dumps(value)) for key, value in values.items()]
            connection.executemany(replacing("meta", "key", "value"), facts)
