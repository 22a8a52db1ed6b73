"""Checks of families: no orphan, no half."""

from __future__ import annotations

import hashlib
import json

from rag_kit.indexing.document_index.families.reading import FamilyView
from rag_kit.indexing.document_index.sql import Connection, scan


def family_problems(connection: Connection) -> tuple[list[str], int]:
    """What is wrong with families, in words, and how many parents were looked at."""
    if not FamilyView(connection)._there:
        return [], 0
    found: list[str] = []

    def tell(what: str, keys: list[str]) -> None:
        if keys:
            found.append(f"parents: {len(keys)} {what}, for example {keys[0]}")

    damaged, number = _damaged(connection)
    tell("are not what was written; write them again", [key for _, key in damaged])
    for what, query in _ORPHANS.items():
        tell(what, [str(row[0]) for row in connection.execute(query)])
    moved = []
    parents: dict[int, str] = {}
    rows = connection.execute(
        'SELECT c.id, c.parent, c.start, c."end", CAST(r.text AS BLOB) FROM children c '
        "JOIN chunks r ON r.id = c.id WHERE c.start IS NOT NULL ORDER BY c.parent"
    ).fetchall()
    for key, parent, start, end, text in rows:
        if parent not in parents:
            row = connection.execute(
                "SELECT CAST(text AS BLOB) FROM parents WHERE n = ?", (parent,)
            ).fetchone()
            parents = {parent: _text(row[0]) if row else ""}
        if parents[parent][start:end] != _text(text):
            moved.append(key)
    tell("children are not what stands at their place", moved)
    return found, number


def mend_families(connection: Connection) -> int:
    """Make damaged parents differ from what any document gives, so that writing them again replaces them.

    Returns:
        How many parents.
    """
    if not FamilyView(connection)._there:
        return 0
    damaged, _ = _damaged(connection)
    for n, _key in damaged:
        text, metadata = connection.execute(
            "SELECT CAST(text AS BLOB), CAST(metadata AS BLOB) FROM parents WHERE n = ?", (n,)
        ).fetchone()
        connection.execute(
            "UPDATE parents SET text = ?, metadata = ?, hash = ? WHERE n = ?",
            (
                _text(text),
                bytes(metadata).decode() if _is_object(metadata) else "{}",
                b"damaged parent %d" % n,
                n,
            ),
        )
    return len(damaged)


def orphans(connection: Connection) -> list[str]:
    """Ids of children without a parent or without a row."""
    if not FamilyView(connection)._there:
        return []
    queries = [query for what, query in _ORPHANS.items() if what.startswith("children")]
    return sorted({str(key) for query in queries for (key,) in connection.execute(query)})


_ORPHANS = {
    "children have no parent": (
        "SELECT id FROM children c WHERE NOT EXISTS (SELECT 1 FROM parents p WHERE p.n = c.parent)"
    ),
    "children have no row": "SELECT id FROM children c WHERE NOT EXISTS (SELECT 1 FROM chunks r WHERE r.id = c.id)",
    "have not all their children": (
        "SELECT p.id FROM parents p WHERE p.size != (SELECT count(*) FROM children c WHERE c.parent = p.n)"
    ),
}


def _damaged(connection: Connection) -> tuple[list[tuple[int, str]], int]:
    found, number = [], 0
    query = "SELECT n, id, CAST(text AS BLOB), CAST(metadata AS BLOB), hash FROM parents"
    for n, key, text, metadata, digest in scan(connection, query):
        number += 1
        if hashlib.sha256(text).digest() != digest or not _is_object(metadata):
            found.append((n, key))
    return found, number


def _text(stored: bytes) -> str:
    return bytes(stored).decode("utf-8", "replace")


def _is_object(metadata: bytes) -> bool:
    try:
        return isinstance(json.loads(bytes(metadata).decode()), dict)
    except (ValueError, RecursionError):
        return False
