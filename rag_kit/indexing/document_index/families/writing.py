"""Changes to families, inside the transaction that also changes their rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from rag_kit.errors import InvalidInputError
from rag_kit.indexing.document_index.families.rows import FamilyRow
from rag_kit.indexing.document_index.sql import Connection, in_groups, marks


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
    plain: Iterable[str],
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
    plan = Plan()
    kept = {family.row.id for family in families}
    removed_ids = list(removed_ids)
    gone = set(removed_sources)
    _refuse_clashes(connection, kept, list(plain), removed_ids, gone)
    for group in in_groups(removed_ids):
        plan.removed.update(_numbers(connection, "id", group, kept))
    for group in in_groups(gone):
        plan.removed.update(_numbers(connection, "source", group, kept))
    for group in in_groups(plan.removed.values()):
        plan.stale.update(_children_of(connection, group))
    present = _present(connection, kept)
    for family in families:
        old = present.get(family.row.id)
        if old is None:
            plan.added.append(family.row.id)
            continue
        children = _stored_children(connection, old[0])
        if old[1:] == _content(family) and children == _wanted_children(family):
            plan.unchanged.append(family.row.id)
            continue
        plan.updated.append(family.row.id)
        plan.stale.update(key for key, *_ in children)
    plan.stale.difference_update(child.row.id for family in families for child in family.children)
    return plan


def write_families(connection: Connection, plan: Plan, families: Sequence[FamilyRow]) -> None:
    """Do to parents and places what was planned; the children's rows are written by the caller."""
    for group in in_groups(plan.removed.values()):
        connection.execute(f"DELETE FROM children WHERE parent IN ({marks(group)})", group)
        connection.execute(f"DELETE FROM parents WHERE n IN ({marks(group)})", group)
    unchanged = set(plan.unchanged)
    for family in families:
        if family.row.id in unchanged:
            continue
        row = family.row
        cursor = connection.execute(
            "INSERT INTO parents (id, source, ordinal, text, metadata, hash, size) VALUES (?, ?, ?, ?, ?, ?, ?) "
            "ON CONFLICT (id) DO UPDATE SET source = excluded.source, ordinal = excluded.ordinal, "
            "text = excluded.text, metadata = excluded.metadata, hash = excluded.hash, size = excluded.size "
            "RETURNING n",
            (row.id, *_content(family), len(family.children)),
        )
        n = int(cursor.fetchone()[0])
        connection.execute("DELETE FROM children WHERE parent = ?", (n,))
        connection.executemany(
            'INSERT INTO children (id, parent, ordinal, start, "end", path) VALUES (?, ?, ?, ?, ?, ?)',
            [(key, n, *rest) for key, *rest in _wanted_children(family)],
        )


def _content(family: FamilyRow) -> tuple[str, int, str, str, bytes]:
    row = family.row
    return row.source, row.ordinal, row.text, row.metadata, row.hash


def _wanted_children(family: FamilyRow) -> list[tuple[str, int, int | None, int | None, str]]:
    return [(c.row.id, c.row.ordinal, c.start, c.end, c.path) for c in family.children]


def _stored_children(connection: Connection, n: int) -> list[tuple[str, int, int | None, int | None, str]]:
    query = 'SELECT id, ordinal, start, "end", path FROM children WHERE parent = ? ORDER BY ordinal'
    return connection.execute(query, (n,)).fetchall()


def _present(
    connection: Connection, ids: Iterable[str]
) -> Mapping[str, tuple[int, str, int, str, str, bytes]]:
    found = {}
    for group in in_groups(ids):
        query = (
            f"SELECT id, n, source, ordinal, text, metadata, hash FROM parents WHERE id IN ({marks(group)})"
        )
        for key, n, source, ordinal, text, metadata, digest in connection.execute(query, group):
            found[key] = (n, source, ordinal, text, metadata, digest)
    return found


def _numbers(connection: Connection, column: str, values: Sequence[str], kept: set[str]) -> dict[str, int]:
    query = f"SELECT id, n FROM parents WHERE {column} IN ({marks(values)}) ORDER BY source, ordinal"
    return {key: n for key, n in connection.execute(query, values) if key not in kept}


def _children_of(connection: Connection, parents: Sequence[int]) -> list[str]:
    query = f"SELECT id FROM children WHERE parent IN ({marks(parents)})"
    return [key for (key,) in connection.execute(query, parents)]


def _refuse_clashes(
    connection: Connection, families: set[str], plain: list[str], removed: list[str], gone: set[str]
) -> None:
    """Refuse ids that have another meaning in the index; what is of a source that goes has none any more."""
    for what, ids in (("written", plain), ("removed", removed)):
        for group in in_groups(ids):
            query = (
                "SELECT c.id, p.id FROM children c JOIN parents p ON p.n = c.parent "
                f"WHERE c.id IN ({marks(group)})"
            )
            for child, parent in connection.execute(query, group):
                raise InvalidInputError(
                    f"{child!r} is a part of the document {parent!r} and cannot be {what} alone; write or "
                    "delete the document."
                )
    for group in in_groups(plain):
        query = f"SELECT id, source FROM parents WHERE id IN ({marks(group)})"
        for key, source in connection.execute(query, group):
            if source in gone:
                continue
            raise InvalidInputError(
                f"The id {key!r} is that of a document with children. Delete it first, or give another id."
            )
    for group in in_groups(families):
        query = f"SELECT id, source FROM chunks WHERE id IN ({marks(group)})"
        for key, source in connection.execute(query, group):
            if source in gone:
                continue
            raise InvalidInputError(
                f"The id {key!r} is that of a document without children. Delete it first, or give another id."
            )
