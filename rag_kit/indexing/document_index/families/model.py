"""Families: a document, and the parts of it that are searched in its place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from langchain_core.documents import Document

#: Metadata key of a stored child that holds the id of its parent.
PARENT_KEY = "parent_id"


class Ancestor(NamedTuple):
    """A larger span of the document in which a child lies.

    Attributes:
        start: Offset in the document's text.
        end: Offset, excluded.
        leaves: How many children lie in it.
        heading: The headings above its beginning.
    """

    start: int
    end: int
    leaves: int = 0
    heading: str = ""


@dataclass(frozen=True, slots=True)
class Child:
    """A part of a document that is searched in its place.

    Attributes:
        text: What is indexed.
        start: Where it stands in the document's text; ``None`` for a text that stands nowhere in it.
        end: Offset, excluded.
        path: Spans of the document that hold it, largest first; empty for the whole document only. Their
            ``leaves`` are counted on writing.
        metadata: More metadata; those of the document are added on writing.
    """

    text: str
    start: int | None = None
    end: int | None = None
    path: tuple[Ancestor, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Family:
    """A document and its children, in their order.

    Attributes:
        parent: The document. It can be had by its id, and is not searched itself.
        children: What is searched; their ids are made from the parent's id and their text.
    """

    parent: Document
    children: Sequence[Child]


class Place(NamedTuple):
    """Where a child belongs.

    Attributes:
        parent: The id of its document.
        ordinal: Its number among the document's children, from 0.
        start: Offset in the document's text, or ``None``.
        end: Offset, excluded, or ``None``.
        path: Spans of the document that hold it, largest first.
        size: How many children the document has.
    """

    parent: str
    ordinal: int
    start: int | None
    end: int | None
    path: tuple[Ancestor, ...]
    size: int
