"""Children that were found, put together by what holds them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rag_kit.indexing.document_index.families.model import PARENT_KEY, Ancestor
from rag_kit.retrieval.parents.matches import Match, Passes


@dataclass
class Group:
    """Matches that one result stands for.

    Attributes:
        matches: They, best first.
        parent: Id of their document, ``None`` for a document that is no part of another.
        span: The span of it that is returned, ``None`` for all of it.
        leaves: How many children that span has.
        own: Whether the child itself is returned.
    """

    matches: list[Match]
    parent: str | None
    span: Ancestor | None
    leaves: int
    own: bool = False

    def passes(self, metadata: Mapping[str, dict[str, Any]], passes: Passes) -> bool:
        """Whether what is returned passes a filter; a child has passed it already."""
        if self.parent is None or self.own:
            return passes(self.matches[0].document.metadata)
        if self.parent not in metadata:
            return False
        seen = {**metadata[self.parent], PARENT_KEY: self.parent}
        if self.span is not None and self.span.heading:
            seen["heading"] = self.span.heading
        return passes(seen)

    def as_dict(self) -> dict[str, Any]:
        """More for the provenance."""
        return {} if self.parent is None else {"matched": len(self.matches), "of": self.leaves}


def by_parent(matches: Sequence[Match]) -> list[Group]:
    """One group a parent, in the order of their best children.

    The parent of a child is the largest span on its path, or the document.
    """
    groups: dict[Any, Group] = {}
    for number, match in enumerate(matches):
        place = match.place
        if place is None:
            groups[number] = Group([match], None, None, 1)
            continue
        span = place.path[0] if place.path else None
        key = (place.parent, span)
        if key in groups:
            groups[key].matches.append(match)
        else:
            groups[key] = Group([match], place.parent, span, span.leaves if span else place.size)
    return list(groups.values())


def by_share(matches: Sequence[Match], least: float) -> list[Group]:
    """A span in place of its children where enough of them were found, else the children alone.

    Of the spans that hold a child, the largest one that has the share is taken.

    Args:
        matches: The children found, best first.
        least: Share of a span's children, above 0 to 1.
    """
    spans: list[list[tuple[Any, Ancestor | None, int]]] = []
    counts: Counter[Any] = Counter()
    for match in matches:
        spans.append(_spans(match))
        counts.update(key for key, _, _ in spans[-1])
    groups: dict[Any, Group] = {}
    for number, (match, around) in enumerate(zip(matches, spans, strict=True)):
        parent = match.place.parent if match.place else None
        enough = next((step for step in around if counts[step[0]] >= least * step[2]), None)
        if enough is None:
            groups[number] = Group([match], parent, None, 1, own=True)
            continue
        key, span, leaves = enough
        if key in groups:
            groups[key].matches.append(match)
        else:
            groups[key] = Group([match], parent, span, leaves)
    return list(groups.values())


def _spans(match: Match) -> list[tuple[Any, Ancestor | None, int]]:
    """What holds a match, largest first: key, span, number of children."""
    place = match.place
    if place is None:
        return []
    if not place.path:
        return [((place.parent, None), None, place.size)]
    return [((place.parent, span), span, span.leaves) for span in place.path]
