"""State that stores and legs share: the connection and its SQL, small facts about an index, the report of a check."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field

from rag_kit.errors import IndexFormatError, IndexMissingError, LockedError

_MAX_PLACEHOLDERS = 500  # placeholders in one statement
NO_GENERATION = -1  # below all generations: what has changed since is everything


class Connection(Protocol):
    """A connection inside a transaction: sqlite3's own, or PostgreSQL's behind an adapter; placeholders are ``?``."""

    def execute(self, sql: str, parameters: Sequence[Any] = ..., /) -> Any: ...  # noqa: D102
    def executemany(self, sql: str, parameters: Iterable[Sequence[Any]], /) -> Any: ...  # noqa: D102


def scan(connection: Connection, query: str) -> Iterable[Any]:
    """Return the rows of a query one after the other, for a result too large to be in memory as a whole."""
    # SQLite gives row after row by itself, PostgreSQL's connection by its method `scan`
    read: Callable[[str], Iterable[Any]] = getattr(connection, "scan", connection.execute)
    return read(query)


def upsert_statement(table: str, key: str, *columns: str) -> str:
    """Return the SQL that adds a row, or replaces the one with the same key; the key is the first column."""
    values = ", ".join(f"{column} = excluded.{column}" for column in columns)
    names = (key, *columns)
    return (
        f"INSERT INTO {table} ({', '.join(names)}) VALUES ({placeholders(names)}) "
        f"ON CONFLICT ({key}) DO UPDATE SET {values}"
    )


def select_in(connection: Connection, query: str, values: Iterable[Any]) -> Iterator[Any]:
    """Return the rows of a query such as ``... WHERE id IN ({})`` for any number of values, some hundred at a time."""
    for group in in_groups(values):
        yield from connection.execute(query.format(placeholders(group)), group)


def in_groups(values: Iterable[Any]) -> Iterator[list[Any]]:
    """Yield lists of values that fit into one statement."""
    iterator = iter(values)
    while group := list(islice(iterator, _MAX_PLACEHOLDERS)):
        yield group


def placeholders(values: Sequence[Any]) -> str:
    """Return placeholders for a list of values."""
    return ",".join("?" * len(values))


@dataclass
class IndexReport:
    """The state of an index.

    Example:
        >>> print(IndexReport(checked={"chunks": 3}))
        ok: checked 3 chunks
    """

    problems: list[str] = field(default_factory=list)  # what is wrong now, in words
    notes: list[str] = field(default_factory=list)  # what is not a fault, but worth knowing
    repaired: list[str] = field(default_factory=list)  # what a repair did
    checked: dict[str, int] = field(default_factory=dict)  # how many chunks, vectors... were looked at

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        return {"ok": self.ok, **asdict(self)}

    def __str__(self) -> str:
        checked = ", ".join(f"{count} {name}" for name, count in self.checked.items())
        lines = [f"repaired: {repair}" for repair in self.repaired]
        lines += [f"note: {note}" for note in self.notes]
        lines += [f"problem: {problem}" for problem in self.problems]
        lines.append(f"{'ok' if self.ok else 'NOT ok'}: checked {checked or 'nothing'}")
        return "\n".join(lines)


VERSION = 4  # of the tables
_Count = Annotated[int, Field(ge=0, lt=2**63)]  # what the stores can hold


class IndexState(BaseModel):
    """The small facts about an index, as of one generation."""

    model_config = ConfigDict(strict=True, frozen=True, extra="ignore")

    uid: Annotated[str, Field(pattern="^[0-9a-f]{32}$")]  # a part of the names of its files
    generation: _Count = 0  # counts the writes; each row has that of its last change
    floor: _Count = 0  # removals up to this generation are forgotten
    embedding: str | None = None  # name of the model; None for an index without vectors
    dimension: _Count | None = None
    settings: dict[str, Any] = {}  # how files were read and split
    derived: bool = True  # where nothing says so, it may
    version: int = VERSION  # of the tables
    terms: int = 1  # version of the terms in the tables of a database
    legs: list[Literal["trigram", "sparse", "tokens"]] = []  # those beside keyword and vectors
    legs_since: _Count = 0  # generation at which these were chosen
    sparse_encoder: str | None = None  # name of the one that made the sparse vectors
    token_model: str | None = None  # name of the one that makes the token vectors
    vector_store: str | None = None  # class of the store that its vectors are searched in; None for files
    next_embedding: str | None = None  # name of the model that `reembed` is making vectors by
    next_dimension: _Count | None = None


def read_state(connection: Connection, location: object) -> IndexState:
    """Read the facts in a store; raise IndexMissingError for an index that was begun, but never finished."""
    rows = connection.execute("SELECT key, value FROM meta").fetchall()
    if not {key for key, _ in rows} - {"uid"}:  # the uid is written first
        raise missing_index(location)
    try:
        facts = {key: json.loads(value) for key, value in rows}
        if not isinstance(location, Path):  # a database has the version in its table of migrations
            facts.setdefault("version", VERSION)
        if facts.get("version") == VERSION:
            return IndexState.model_validate(facts)
    except (ValueError, TypeError, RecursionError) as error:
        raise IndexFormatError(
            f"{location}: the facts in its table meta cannot be read ({' '.join(str(error).split())[:300]}). Nothing "
            "else tells what they were: take the newer rag_kit that wrote them, put a backup in its place, or ingest "
            "again into a new folder."
        ) from error
    version = "no format version, as the oldest had"
    if "version" in facts:
        version = f"format version {facts['version']!r}"
    raise IndexFormatError(
        f"{location} has {version}; this rag_kit reads {VERSION}. Take the rag_kit that "
        "wrote it, or ingest again into another folder."
    )


def missing_index(location: object) -> IndexMissingError:
    """Return the error for a folder or database without an index; a folder may have the rest of one."""
    remains = isinstance(location, Path) and any(location.glob("*-*.index"))
    lost = " any more (store.sqlite3 is lost or empty; restore a backup, if any)" if remains else ""
    message = f"There is no index in {location}{lost}. Make one: rag-kit ingest PATH --index '{location}'"
    return IndexMissingError(message)


def locked_index(location: object, wait: float) -> LockedError:
    """Return the error for an index that another process writes to, after some seconds of waiting."""
    return LockedError(
        f"Another process is writing to the index in {location}{f' (waited {wait:g} s)' if wait > 0 else ''}. "
        "Wait for it, or let this one wait: wait=SECONDS, rag-kit ingest --wait SECONDS."
    )
