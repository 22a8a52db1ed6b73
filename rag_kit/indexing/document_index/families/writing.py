"""Changes to families, inside the transaction that also changes their rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from rag_kit.errors import InvalidInputError
from rag_kit.indexing.document_index.families.rows import FamilyRow
from rag_kit.indexing.document_index.sql import Connection, chosen, replacing

_PLACE = ("id", "ordinal", "start", '"end"', "path")


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
    """Look what a batch means for families, before anything is changed.

    Args:
        connection: The open transaction.
        families: To be written.
        plain: Ids of rows to be written that are no children.
        removed_ids: Ids to be removed: of parents, or of rows that are no children.
        removed_sources: Sources that are removed, or of which the batch holds all there is.

    Raises:
        InvalidInputError: A row would take the place of a parent or of a child, or a child be removed alone.
    """
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
