"""From families to rows: deterministic ids of children, metadata that a filter can trust."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from rag_kit.errors import InvalidInputError
from rag_kit.indexing.document_index.families.model import PARENT_KEY, Ancestor, Child, Family
from rag_kit.indexing.document_index.rows import Row, document_rows, make_row, same_row


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


def child_id(parent: str, text: str, occurrence: int) -> str:
    """The id of a child: from its parent's id, its text, and which of equal texts it is.

    Example:
        >>> child_id("p", "text", 0) == child_id("p", "text", 0) != child_id("q", "text", 0)
        True
    """
    return hashlib.sha256(
        f"child\0{parent}\0{occurrence}\0{text}".encode("utf-8", "surrogatepass")
    ).hexdigest()[:32]


def family_rows(
    families: Sequence[Family], ids: Sequence[str] | None = None, sources: Sequence[str] | None = None
) -> list[FamilyRow]:
    """Turn families into rows.

    Args:
        families: Documents with their children.
        ids: One id a document; else ``Document.id``, else one made from source and text.
        sources: One source a document; default: that in its metadata.

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
        key = child_id(parent.id, child.text, seen[child.text])
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


def load_path(text: str) -> tuple[Ancestor, ...]:
    """A stored path."""
    return tuple(Ancestor(*step) for step in json.loads(text))


def _check(child: Child, parent: Row) -> None:
    if child.start is None:
        return
    if child.end is None or parent.text[child.start : child.end] != child.text or child.start < 0:
        raise InvalidInputError(
            f"A child of {parent.id!r} is not what stands at {child.start}:{child.end} of its document (it "
            f"starts {child.text[:60]!r}). Give its true place, or start=None."
        )
