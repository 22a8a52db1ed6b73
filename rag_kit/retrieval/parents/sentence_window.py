"""Search single sentences, return each with its neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.documents import Document
from pydantic import Field

from rag_kit.indexing.document_index.rows import PARENT_KEY, ChildPlace, Family, FamilyView
from rag_kit.indexing.splitting.hierarchy import sentence_family
from rag_kit.retrieval.parents.base import FamilyRetriever, Match, Passage, Passes, parents_metadata, span_of


class SentenceWindowRetriever(FamilyRetriever):
    """Search single sentences, return each with its neighbours.

    Windows of one document that overlap become one. A result is a verbatim span of its document
    (``metadata["start"]`` and ``["end"]``), and its provenance lists the sentences that matched.

    Args:
        window: How many sentences before and after, 0 for none; each, and the document, passes the filter.
        max_sentence: Longest sentence, in characters; a longer one is cut at a clause.
        **more: ``index``, ``pipeline``, ``retriever``, ``k``, ``fetch_k``...: see ``ParentDocumentRetriever``.

    Example:
        >>> text = "It rains. The lake is deep. Trout live in it. Goats do not. It snows."
        >>> with SentenceWindowRetriever.from_documents([Document(text, id="lake")], window=1) as retriever:
        ...     [found] = retriever.invoke("trout")
        >>> found.page_content, text[found.metadata["start"] : found.metadata["end"]] == found.page_content
        ('The lake is deep. Trout live in it. Goats do not.', True)
    """

    window: int = Field(default=3, ge=0, strict=True)
    max_sentence: int = Field(default=1000, ge=20, strict=True)
    stage: str = "sentence_window"

    def _families(self, documents: Sequence[Document]) -> list[Family]:
        return [sentence_family(document, max_chars=self.max_sentence) for document in documents]

    def _passages(
        self, view: FamilyView, matches: Sequence[Match], k: int, passes: Passes | None
    ) -> list[Passage]:
        """Return the best ``k`` windows around matches as passages; overlapping windows become one."""
        metadata = parents_metadata(view, matches) if passes is not None else {}
        windows: list[_Window] = []
        for match in matches:
            place = match.place
            if place is None:  # no sentence of a document: it has no neighbours
                new = _Window([match], None, first=0, last=0)
            elif passes is not None and not passes(_fields_of(match, metadata.get(place.parent, {}))):
                continue
            else:
                new = _Window([match], place.parent, *self._bounds(view, place, passes))
            overlapping = [window for window in windows if window.overlaps(new)]
            if overlapping:  # the best of them takes up the new one, and those that the new one joins to it
                best, *others = overlapping
                for window in [*others, new]:
                    best.absorb(window)
                windows = [window for window in windows if window not in others]
            elif len(windows) < k:
                windows.append(new)
            else:
                break
        documents = view.parents([window.parent for window in windows if window.parent is not None])
        return [window.passage(view, documents) for window in windows]

    def _bounds(self, view: FamilyView, place: ChildPlace, passes: Passes | None) -> tuple[int, int]:
        """Return the numbers of a window's first and last sentence; it ends where a sentence fails the filter."""
        number = place.ordinal
        if place.start is None:  # its position in the document is unknown, so it is shown alone
            return number, number
        first, last = max(0, number - self.window), min(place.size - 1, number + self.window)
        if passes is None:
            return first, last
        siblings = view.siblings(place.parent, first, last)
        failing = [sibling.ordinal for sibling in siblings if not passes(dict(sibling.metadata))]
        first = max([first, *(other + 1 for other in failing if other < number)])
        last = min([last, *(other - 1 for other in failing if other > number)])
        return first, last


@dataclass
class _Window:
    """Some sentences of a document, by their numbers."""

    matches: list[Match]
    parent: str | None
    first: int
    last: int

    def overlaps(self, other: _Window) -> bool:
        same_parent = self.parent is not None and self.parent == other.parent
        return same_parent and self.first <= other.last and other.first <= self.last

    def absorb(self, other: _Window) -> None:
        """Add the sentences and matches of a window that this one overlaps."""
        self.first, self.last = min(self.first, other.first), max(self.last, other.last)
        self.matches = sorted([*self.matches, *other.matches], key=lambda match: match.rank)

    def passage(self, view: FamilyView, documents: dict[str, Document]) -> Passage:
        """Return the text of the window, or the matching sentence alone if its position in the parent is unknown."""
        best = self.matches[0]
        siblings = [] if self.parent is None else view.siblings(self.parent, self.first, self.last)
        placed = [sibling for sibling in siblings if sibling.start is not None]
        if self.parent is None or not placed:
            return Passage(self.matches, best.score, best.document)
        start = min(sibling.start for sibling in placed if sibling.start is not None)
        end = max(sibling.end for sibling in placed if sibling.end is not None)
        heading = placed[0].metadata.get("heading")
        document = span_of(documents[self.parent], start, end, heading if isinstance(heading, str) else None)
        return Passage(self.matches, best.score, document, {"sentences": [self.first, self.last]})


def _fields_of(match: Match, parent_metadata: dict[str, Any]) -> dict[str, Any]:
    """Return the metadata that a filter sees: those of the match's parent, and the heading above its sentence."""
    metadata = match.document.metadata
    heading = {"heading": metadata["heading"]} if "heading" in metadata else {}
    return {**heading, **parent_metadata, PARENT_KEY: metadata.get(PARENT_KEY)}
