"""From families to rows, and changes to families inside the transaction that also changes their rows."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rag_kit.errors import InvalidInputError
from rag_kit.indexing.document_index.families import PARENT_KEY, Child, Family
from rag_kit.indexing.document_index.rows import Row, chunk_id, document_rows, make_row, same_row
from rag_kit.indexing.document_index.sql import Connection, chosen, replacing

_PLACE = ("id", "ordinal", "start", '"end"', "path")


class ChildRow(NamedTuple):
    """A child as it is stored: its row among the chunks, and its place."""

    row: Row
    start: int | None
    end: int | None
    path: str


class FamilyRow(NamedTuple):
    """A parent as it is stored, with its children in order."""

    row: Row
    children: tuple[ChildRow, ...]


def family_rows(
    families: Sequence[Family], ids: Sequence[str] | None = None, sources: Sequence[str] | None = None
) -> list[FamilyRow]:
    """Turn families into rows.

    Raises:
        InvalidInputError: Ids that clash, a child's span that is not in its document, or text that cannot be
            stored.
    """
    made: dict[str, FamilyRow] = {}
    parents = document_rows([family.parent for family in families], ids, sources)
    for family, parent in zip(families, parents, strict=True):
        row = FamilyRow(parent, tuple(_children(family, parent)))
        first = made.setdefault(parent.id, row)
        if not same_row(first.row, parent) or first.children != row.children:
            raise InvalidInputError(
                f"The id {parent.id!r} names two different documents in one call. Give each its own id."
            )
    return list(made.values())


def _children(family: Family, parent: Row) -> Iterator[ChildRow]:
    inherited: dict[str, Any] = json.loads(parent.metadata)
    shift = offset_in_source(inherited, len(parent.text))
    inherited.pop("start", None)
    inherited.pop("end", None)
    leaves = Counter((a.start, a.end) for child in family.children for a in set(child.path))
    seen: Counter[str] = Counter()
    for ordinal, child in enumerate(family.children):
        _check(child, parent)
        place = {} if child.start is None else {"start": child.start + shift, "end": (child.end or 0) + shift}
        metadata = {**inherited, **child.metadata, PARENT_KEY: parent.id, **place}
        key = chunk_id(f"child\0{parent.id}", child.text, seen[child.text])
        row = make_row(f"A child of {parent.id!r}", key, parent.source, ordinal, child.text, metadata)
        seen[child.text] += 1
        path = [[a.start, a.end, leaves[a.start, a.end], a.heading] for a in child.path]
        yield ChildRow(
            row, child.start, child.end, json.dumps(path, ensure_ascii=False, separators=(",", ":"))
        )


def offset_in_source(metadata: dict[str, Any], length: int) -> int:
    """Where a document begins that is itself a verbatim span of its source; else 0.

    Example:
        >>> offset_in_source({"start": 100, "end": 104}, 4), offset_in_source({"start": 100}, 4)
        (100, 0)
    """
    start, end = metadata.get("start"), metadata.get("end")
    return start if type(start) is int and type(end) is int and end - start == length and start >= 0 else 0


def _check(child: Child, parent: Row) -> None:
    if child.start is None:
        return
    if child.end is None or parent.text[child.start : child.end] != child.text or child.start < 0:
        raise InvalidInputError(
            f"A child of {parent.id!r} is not what stands at {child.start}:{child.end} of its document (it "
            f"starts {child.text[:60]!r}). Give its true place, or start=None."
        )


@dataclass
class Plan:
    """What a transaction will do to families.

    Attributes:
        stale: Ids of children that go.
        added: Ids of new parents.
        updated: Ids of parents that change, or whose children do.
        unchanged: Ids of parents that stay as they are.
        removed: Ids of parents that go, with their numbers.
    """

    stale: set[str] = field(default_factory=set)
    added: list[str] = field(default_factory=list)
    updated: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    removed: dict[str, int] = field(default_factory=dict)


def plan_families(
    connection: Connection,
    families: Sequence[FamilyRow],
    plain: Sequence[str],
    removed_ids: Iterable[str],
    removed_sources: Iterable[str],
) -> Plan:
    """Look what a batch means for families before anything is changed; `plain`: ids of rows that are no children."""
    plan, wanted = Plan(), {family.row.id for family in families}
    removed_ids, gone = list(removed_ids), set(removed_sources)
    _refuse_parts(connection, plain, "written")
    _refuse_parts(connection, removed_ids, "removed")
    _refuse_taken(connection, "parents", "with", plain, gone)
    _refuse_taken(connection, "chunks", "without", wanted, gone)
    for column, values in (("id", removed_ids), ("source", gone)):
        query = f"SELECT id, n FROM parents WHERE {column} IN ({{}}) ORDER BY source, ordinal"
        plan.removed.update(row for row in chosen(connection, query, values) if row[0] not in wanted)
    query = "SELECT id FROM children WHERE parent IN ({})"
    plan.stale.update(key for (key,) in chosen(connection, query, plan.removed.values()))
    query = "SELECT id, n, source, ordinal, text, metadata, hash FROM parents WHERE id IN ({})"
    present = {key: (n, tuple(content)) for key, n, *content in chosen(connection, query, wanted)}
    for family in families:
        key = family.row.id
        if key not in present:
            plan.added.append(key)
            continue
        n, content = present[key]
        query = f"SELECT {', '.join(_PLACE)} FROM children WHERE parent = ? ORDER BY ordinal"
        children = connection.execute(query, (n,)).fetchall()
        if content == _content(family) and children == _places(family):
            plan.unchanged.append(key)
            continue
        plan.updated.append(key)
        plan.stale.update(child for child, *_ in children)
    plan.stale.difference_update(child.row.id for family in families for child in family.children)
    return plan


def write_families(connection: Connection, plan: Plan, families: Sequence[FamilyRow]) -> None:
    """Do to parents and places what was planned; the children's rows are written by the caller."""
    going = [(n,) for n in plan.removed.values()]
    connection.executemany("DELETE FROM children WHERE parent = ?", going)
    connection.executemany("DELETE FROM parents WHERE n = ?", going)
    unchanged = set(plan.unchanged)
    for family in families:
        if family.row.id in unchanged:
            continue
        statement = replacing("parents", "id", "source", "ordinal", "text", "metadata", "hash", "size")
        values = (family.row.id, *_content(family), len(family.children))
        [n] = connection.execute(f"{statement} RETURNING n", values).fetchone()
        connection.execute("DELETE FROM children WHERE parent = ?", (n,))
        connection.executemany(
            f"INSERT INTO children (parent, {', '.join(_PLACE)}) VALUES (?, ?, ?, ?, ?, ?)",
            [(n, *place) for place in _places(family)],
        )


def _content(family: FamilyRow) -> tuple[str, int, str, str, bytes]:
    row = family.row
    return row.source, row.ordinal, row.text, row.metadata, row.hash


def _places(family: FamilyRow) -> list[tuple[str, int, int | None, int | None, str]]:
    return [(c.row.id, c.row.ordinal, c.start, c.end, c.path) for c in family.children]


def _refuse_parts(connection: Connection, ids: Iterable[str], what: str) -> None:
    """Refuse ids of children."""
    query = "SELECT c.id, p.id FROM children c JOIN parents p ON p.n = c.parent WHERE c.id IN ({})"
    for child, parent in chosen(connection, query, ids):
        raise InvalidInputError(
            f"{child!r} is a part of the document {parent!r} and cannot be {what} alone; write or delete the document."
        )


def _refuse_taken(connection: Connection, table: str, how: str, ids: Iterable[str], gone: set[str]) -> None:
    """Refuse ids that have another meaning in the index; what is of a source that goes has none any more."""
    for key, source in chosen(connection, f"SELECT id, source FROM {table} WHERE id IN ({{}})", ids):
        if source not in gone:
            raise InvalidInputError(
                f"The id {key!r} is that of a document {how} children. Delete it first, or give another id."
            )
