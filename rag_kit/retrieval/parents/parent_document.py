"""Search small parts of documents, return the parents that they are cut from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Self

from langchain_core.documents import Document
from pydantic import StrictInt, field_validator, model_validator

from rag_kit.errors import InvalidInputError
from rag_kit.indexing.document_index.rows import PARENT_KEY, Family, FamilyView
from rag_kit.indexing.splitting.api import Splitter, check_splitter
from rag_kit.indexing.splitting.hierarchy import check_family_sizes, split_family
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

    parent_size: StrictInt | None = None
    child_size: int = 400
    child_overlap: int = 0
    parent_splitter: Any = None
    child_splitter: Any = None

    @field_validator("parent_splitter", "child_splitter")
    @classmethod
    def _check_splitter(cls, value: Any) -> Any:
        if value is not None:
            check_name(value) if isinstance(value, str) else check_splitter(value)
        return value

    @model_validator(mode="after")
    def _check_sizes(self) -> Self:
        if self.parent_splitter is not None and self.parent_size is not None:
            raise InvalidInputError("Give parent_size or parent_splitter, not both.")
        check_family_sizes(self.parent_size, self.child_size, self.child_overlap)
        return self

    @cached_property
    def _cuts(self) -> tuple[Splitter | int, Splitter | int | None]:
        """Return the splitters, or sizes in characters, by which documents are cut into children and into parents."""
        parent, child, embeddings = self.parent_splitter, self.child_splitter, self.index.embeddings
        if isinstance(parent, str):
            parent = named_splitter(parent, chunk_overlap=0, embeddings=embeddings)
        if isinstance(child, str):
            child = named_splitter(
                child, chunk_size=self.child_size, chunk_overlap=self.child_overlap, embeddings=embeddings
            )
        return child or self.child_size, parent or self.parent_size

    def _families(self, documents: Sequence[Document]) -> list[Family]:
        return [split_family(document, *self._cuts, overlap=self.child_overlap) for document in documents]

    def _passages(
        self, view: FamilyView, matches: Sequence[Match], k: int, passes: Passes | None
    ) -> list[Passage]:
        """Return a passage for each of the best ``k`` parents, in the order of each one's best match."""
        groups: dict[Any, list[Match]] = {}  # matches that lead to the same passage
        for match in matches:
            place = match.place
            # a passage is a parent or a span of it; a match that has no parent is a passage by itself
            key = (place.parent, place.span) if place else match.rank
            groups.setdefault(key, []).append(match)
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
    if place.span and place.span.heading:
        fields["heading"] = place.span.heading
    return passes(fields)


def _passage(matches: list[Match], documents: Mapping[str, Document]) -> Passage:
    """Return the whole parent, or the span of it that holds the matches; without a parent, the match itself."""
    place, score = matches[0].place, max(match.score for match in matches)
    if place is None:
        return Passage(matches, score, matches[0].document)
    document, child_count = documents[place.parent], place.size
    if span := place.span:
        document, child_count = span_of(document, span.start, span.end, span.heading), span.leaves
    return Passage(matches, score, document, {"matched": len(matches), "of": child_count})
