"""What stores and legs share: the connection and its SQL, the small facts about an index, the report of a check."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any, Protocol

from pydantic import BaseModel, ConfigDict, Field

from rag_kit.errors import IndexFormatError, IndexMissingError

_MAX_PLACEHOLDERS = 500  # placeholders in one statement


class Connection(Protocol):
    """A connection inside a transaction: sqlite3's own, or PostgreSQL's behind an adapter; placeholders are ``?``."""

    def execute(self, sql: str, parameters: Sequence[Any] = ..., /) -> Any: ...  # noqa: D102
    def executemany(self, sql: str, parameters: Iterable[Sequence[Any]], /) -> Any: ...  # noqa: D102


def scan(connection: Connection, query: str) -> Iterable[Any]:
    """The rows of a large answer, which is never in memory as a whole."""
    read: Callable[[str], Iterable[Any]] = getattr(connection, "scan", connection.execute)
    return read(query)


def upsert_statement(table: str, key: str, *columns: str) -> str:
    """The statement that adds a row, or replaces the one with the same key, which comes first."""
    values = ", ".join(f"{column} = excluded.{column}" for column in columns)
    names = (key, *columns)
    return (
        f"INSERT INTO {table} ({', '.join(names)}) VALUES ({placeholders(names)}) "
        f"ON CONFLICT ({key}) DO UPDATE SET {values}"
    )


def select_in(connection: Connection, query: str, values: Iterable[Any]) -> Iterator[Any]:
    """The rows of a query for any number of values, which stand where ``{}`` does.

    Example:
        >>> import sqlite3
        >>> list(select_in(sqlite3.connect(":memory:"), "SELECT 3 WHERE 3 IN ({})", [2, 3]))
        [(3,)]
    """
    for group in in_groups(values):
        yield from connection.execute(query.format(placeholders(group)), group)


def in_groups(values: Iterable[Any], size: int = _MAX_PLACEHOLDERS) -> Iterator[list[Any]]:
    """Lists of at most ``size`` values."""
    group: list[Any] = []
    for value in values:
        group.append(value)
        if len(group) >= size:
            yield group
            group = []
    if group:
        yield group


def placeholders(values: Sequence[Any]) -> str:
    """Placeholders for a list of values."""
    return ",".join("?" * len(values))


@dataclass
class IndexReport:
    """The state of an index.

    Attributes:
        problems: What is wrong now, in words; empty for a sound index.
        notes: What is no fault, but worth knowing.
        repaired: What a repair did.
        checked: How much was looked at: ``chunks``, ``vectors``, ``vector rows``, ``keyword rows``.

    Example:
        >>> print(IndexReport(checked={"chunks": 3}))
        ok: checked 3 chunks
    """

    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    repaired: list[str] = field(default_factory=list)
    checked: dict[str, int] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    def as_dict(self) -> dict[str, Any]:
        """As plain JSON."""
        return {"ok": self.ok, **asdict(self)}

    def __str__(self) -> str:
        looked = ", ".join(f"{count} {what}" for what, count in self.checked.items())
        lines = [f"repaired: {what}" for what in self.repaired]
        lines += [f"note: {what}" for what in self.notes]
        lines += [f"problem: {what}" for what in self.problems]
        lines.append(f"{'ok' if self.ok else 'NOT ok'}: checked {looked or 'nothing'}")
        return "\n".join(lines)


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
