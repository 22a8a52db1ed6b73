"""Retrievers that search small parts of documents, and return their parents, or the sentences around."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

from langchain_core.documents import Document
from pydantic import Field, StrictInt, field_validator, model_validator

from rag_kit.errors import InvalidInputError
from rag_kit.indexing.document_index.rows import PARENT_KEY, ChildPlace, Family, FamilyView
from rag_kit.indexing.splitting.api import Splitter, check_splitter
from rag_kit.indexing.splitting.hierarchy import check_levels, sentence_family, split_family
from rag_kit.indexing.splitting.named import check_name, named_splitter
from rag_kit.retrieval.parents.base import FamilyRetriever, Match, Passage, Passes, parents_metadata, span_of


class ParentDocumentRetriever(FamilyRetriever):
    """Search small pieces of text, return the larger ones they are cut from.

    A small piece is found well; a large one tells enough to answer. Documents and pieces live in one
    ``DocumentIndex`` and are written, replaced and deleted together, in one transaction. Every result's
    provenance lists the children that matched with their scores and offsets.

    Args:
        index: The index that holds documents and children.
        pipeline: How children are searched: ``"hybrid"``, ``"bm25"`` or ``"dense"``.
        retriever: Any LangChain retriever over the same index, to search children; its filter holds for parents too.
        k: Most parents to return; children are fetched deeper until there are so many, or no more.
        filter: Metadata filter for every call; children and parents must both pass.
        parent_size: Most characters of a parent; ``None`` for whole documents.
        child_size: Most characters of a child.
        child_overlap: Most characters that a child repeats of the one before.
        parent_splitter: A LangChain text splitter, a function from documents to documents, or a name that `split`
            takes (of 1000 characters), which cuts documents into parents instead.
        child_splitter: One that cuts parents into children instead; by name in ``child_size`` characters.
        fetch_k: Children to fetch first; default: five times ``k``, at least 20.
        max_fetch_k: How many children to fetch at most; where that cuts the result short, a note says so.
        id_key: Metadata key that holds a document's id, for writing.

    Example:
        >>> lake = Document("The lake is deep. " * 9 + "Trout live in it.", id="lake")
        >>> with ParentDocumentRetriever.from_documents([lake], child_size=20) as retriever:
        ...     [found] = retriever.invoke("trout")
        >>> found.id, len(found.page_content)
        ('lake', 179)
    """

    other_names: ClassVar[Mapping[str, str]] = {
        "merge": "nothing: auto-merging was taken out, as it is behind plain chunks on every measured set"
    }

    parent_size: StrictInt | None = None
    child_size: int = 400
    child_overlap: int = 0
    parent_splitter: Any = None
    child_splitter: Any = None

    @field_validator("parent_splitter", "child_splitter")
    @classmethod
    def _splitter_is_one(cls, value: Any) -> Any:
        if value is not None:
            check_name(value) if isinstance(value, str) else check_splitter(value)
        return value

    @model_validator(mode="after")
    def _arguments_fit(self) -> Self:
        if self.parent_splitter is not None and self.parent_size is not None:
            raise InvalidInputError("Give parent_size or parent_splitter, not both.")
        check_levels([*self._parent_sizes, self.child_size], self.child_overlap)
        return self

    @property
    def _parent_sizes(self) -> list[int]:
        return [] if self.parent_size is None else [self.parent_size]

    @cached_property
    def _cuts(self) -> list[Splitter | int]:
        """Return how documents are cut, level by level; splitters given by name are made."""
        parent, child, embeddings = self.parent_splitter, self.child_splitter, self.index.embeddings
        if isinstance(parent, str):
            parent = named_splitter(parent, chunk_overlap=0, embeddings=embeddings)
        if isinstance(child, str):
            child = named_splitter(
                child, chunk_size=self.child_size, chunk_overlap=self.child_overlap, embeddings=embeddings
            )
        return [*([parent] if parent else self._parent_sizes), child or self.child_size]

    def _family(self, document: Document) -> Family:
        return split_family(document, self._cuts, self.child_overlap)

    def _passages(
        self, view: FamilyView, matches: Sequence[Match], k: int, passes: Passes | None
    ) -> list[Passage]:
        """Return a passage for each of the best ``k`` parents, in the order of each one's best match."""
        groups: dict[Any, list[Match]] = {}  # by parent or span; a match without a place by itself
        for match in matches:
            place = match.place
            groups.setdefault((place.parent, *place.path[:1]) if place else match.rank, []).append(match)
        if passes is not None:
            metadata = parents_metadata(view, matches)
            groups = {key: group for key, group in groups.items() if _passes(group[0], metadata, passes)}
        best = list(groups.values())[:k]
        documents = view.parents([group[0].place.parent for group in best if group[0].place])
        return [_passage(group, documents) for group in best]


def _passes(match: Match, metadata: Mapping[str, dict[str, Any]], passes: Passes) -> bool:
    """Tell whether the passage returned for a match passes a filter."""
    place = match.place
    if place is None:
        return passes(match.document.metadata)
    if place.parent not in metadata:
        return False
    fields = {**metadata[place.parent], PARENT_KEY: place.parent}
    if place.path and place.path[0].heading:
        fields["heading"] = place.path[0].heading
    return passes(fields)


def _passage(matches: list[Match], documents: Mapping[str, Document]) -> Passage:
    """Return the whole parent, or the span of it that holds the matches; without a parent, the match itself."""
    place, score = matches[0].place, max(match.score for match in matches)
    if place is None:
        return Passage(matches, score, matches[0].document)
    document, child_count = documents[place.parent], place.size
    if place.path:
        span = place.path[0]
        document, child_count = span_of(document, span.start, span.end, span.heading), span.leaves
    return Passage(matches, score, document, {"matched": len(matches), "of": child_count})


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
    ) -> list[Passage]:
        """Return the best ``k`` windows around matches as passages; overlapping windows become one."""
        metadata = parents_metadata(view, matches) if passes is not None else {}
        windows: list[_Window] = []
        for match in matches:
            place = match.place
            if place is None:
                new = _Window([match], None, 0, 0)
            elif passes is not None and not passes(_fields_of(match, metadata.get(place.parent, {}))):
                continue
            else:
                new = _Window([match], place.parent, *self._bounds(view, place, passes))
            overlapping = [window for window in windows if window.overlaps(new)]
            if overlapping:
                best, *others = overlapping
                for window in [*others, new]:
                    best.absorb(window)
                windows = [window for window in windows if window not in others]
            elif len(windows) == k:
                break
            else:
                windows.append(new)
        documents = view.parents([window.parent for window in windows if window.parent is not None])
        return [window.passage(view, documents) for window in windows]

    def _bounds(self, view: FamilyView, place: ChildPlace, passes: Passes | None) -> tuple[int, int]:
        """Return the numbers of the first and last sentence of a window; it ends before one that does not pass."""
        number = place.ordinal
        if place.start is None:
            return number, number
        first, last = max(0, number - self.window), min(place.size - 1, number + self.window)
        if passes is None:
            return first, last
        siblings = view.siblings(place.parent, first, last)
        barred = [sibling.ordinal for sibling in siblings if not passes(dict(sibling.metadata))]
        first = max([first, *(other + 1 for other in barred if other < number)])
        last = min([last, *(other - 1 for other in barred if other > number)])
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
