"""SentenceWindowRetriever: sentences are searched, the text around them is returned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.documents import Document
from pydantic import Field

from rag_kit.indexing.document_index.rows import PARENT_KEY, Family, FamilyView
from rag_kit.indexing.splitting.hierarchy import sentence_family
from rag_kit.retrieval.parents.base import (
    FamilyRetriever,
    Match,
    ParentPassage,
    Passes,
    parents_metadata,
    span_of,
)


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

    def _family(self, document: Document) -> Family:
        return sentence_family(document, max_chars=self.max_sentence)

    def _passages(
        self, view: FamilyView, matches: Sequence[Match], k: int, passes: Passes | None
    ) -> list[ParentPassage]:
        """Return the best ``k`` windows around matches as passages; overlapping windows become one."""
        metadata = parents_metadata(view, matches) if passes is not None else {}
        windows: list[_Window] = []
        for match in matches:
            place = match.place
            if place is None:
                around = _Window([match], None, 0, 0)
            elif passes is not None and not passes(_seen(match, metadata.get(place.parent, {}))):
                continue
            else:
                first, last = self._reach(view, match, passes)
                around = _Window([match], place.parent, first, last)
            joined = [window for window in windows if window.overlaps(around)]
            if not joined and len(windows) == k:
                break
            windows = _join(windows, joined, around)
        texts = view.parents([window.parent for window in windows if window.parent is not None])
        return [window.passage(view, texts) for window in windows]

    def _reach(self, view: FamilyView, match: Match, passes: Passes | None) -> tuple[int, int]:
        """Return numbers of the first and last sentence of a match's window; it stops at one that does not pass."""
        place = match.place
        assert place is not None
        first, last = max(0, place.ordinal - self.window), min(place.size - 1, place.ordinal + self.window)
        if place.start is None:
            return place.ordinal, place.ordinal
        if passes is None:
            return first, last
        siblings = view.siblings(place.parent, first, last)
        barred = [sibling.ordinal for sibling in siblings if not passes(dict(sibling.metadata))]
        first = max([first, *(number + 1 for number in barred if number < place.ordinal)])
        last = min([last, *(number - 1 for number in barred if number > place.ordinal)])
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

    def passage(self, view: FamilyView, texts: dict[str, Document]) -> ParentPassage:
        """Return the text of the window, or the matching sentence alone if its position in the parent is unknown."""
        best = self.matches[0]
        siblings = [] if self.parent is None else view.siblings(self.parent, self.first, self.last)
        placed = [s for s in siblings if s.start is not None]
        if self.parent is None or not placed:  # no sentence has a position in the parent
            return ParentPassage(self.matches, best.score, best.document)
        start = min(s.start for s in placed if s.start is not None)
        end = max(s.end for s in placed if s.end is not None)
        heading = placed[0].metadata.get("heading")
        document = span_of(texts[self.parent], start, end, heading if isinstance(heading, str) else None)
        return ParentPassage(self.matches, best.score, document, {"sentences": [self.first, self.last]})


def _seen(match: Match, parent: dict[str, Any]) -> dict[str, Any]:
    """Return the metadata of a match's document, with the heading above its sentence, as a filter sees it."""
    metadata = match.document.metadata
    heading = {"heading": metadata["heading"]} if "heading" in metadata else {}
    return {**heading, **parent, PARENT_KEY: metadata.get(PARENT_KEY)}


def _join(windows: list[_Window], joined: list[_Window], new: _Window) -> list[_Window]:
    """Join a new window with those it overlaps, at the position of the best of them."""
    if not joined:
        return [*windows, new]
    target = joined[0]
    for window in (*joined[1:], new):
        target.first, target.last = min(target.first, window.first), max(target.last, window.last)
        target.matches += window.matches
    target.matches.sort(key=lambda match: match.rank)
    return [window for window in windows if window is target or window not in joined]
