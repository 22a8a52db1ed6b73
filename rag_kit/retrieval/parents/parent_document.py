"""ParentDocumentRetriever: small children are searched, their parents are returned."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Self

from langchain_core.documents import Document
from pydantic import field_validator, model_validator

from rag_kit.errors import InvalidInputError
from rag_kit.indexing.document_index.families.model import Family
from rag_kit.indexing.document_index.families.reading import FamilyView
from rag_kit.indexing.parents.hierarchy import PartSizes, split_family
from rag_kit.indexing.splitting.named import check_name, named_splitter
from rag_kit.indexing.splitting.parts import Splitter, check_splitter
from rag_kit.retrieval.parents.base import FamilyRetriever, parents_metadata
from rag_kit.retrieval.parents.grouping import Group, by_parent, by_share
from rag_kit.retrieval.parents.matches import Match, Passage, Passes, Scoring, check_scoring, span_of, total


class ParentDocumentRetriever(FamilyRetriever):
    """Search small pieces of text, return the larger ones they are cut from.

    A small piece is found well; a large one tells enough to answer. Documents and pieces live in one
    ``DocumentIndex`` and are written, replaced and deleted together, in one transaction. Every result's
    provenance lists the children that matched with their scores and offsets.

    Args:
        index: The index that holds documents and children.
        pipeline: How children are searched: ``"hybrid"``, ``"bm25"`` or ``"dense"``.
        retriever: Searches children instead: any LangChain retriever over the same index.
        k: Most parents to return; children are fetched deeper until there are so many, or no more.
        filter: Metadata filter for every call; children and parents must both pass.
        parent_size: Most characters of a parent; several, largest first, for levels; ``None`` for whole
            documents.
        child_size: Most characters of a child.
        child_overlap: Most characters that a child repeats of the one before.
        parent_splitter: A LangChain text splitter, a function from documents to documents, or a name that `split`
            takes (of 1000 characters), which cuts documents into parents instead.
        child_splitter: One that cuts parents into children instead; by name in ``child_size`` characters.
        scoring: A parent's score: ``"max"`` of its children, or ``"sum"`` or ``"mean"`` of its best.
        top: How many children count for a sum or a mean.
        merge: Auto-merging: the share of a parent's children, above 0 to 1, that must be found for it to be
            returned; else the children are. With several levels the largest parent that has the share.
        fetch_k: How many children to fetch first; default: five times ``k``, at least 20. With ``merge``
            it also decides how many children count as found.
        max_fetch_k: How many children to fetch at most.
        id_key: Metadata key that holds a document's id, for writing.

    Raises:
        InvalidInputError: An argument is not allowed.

    Example:
        >>> from rag_kit.documents import get_provenance
        >>> lake = Document("The lake is deep. " * 9 + "Trout live in it.", id="lake")
        >>> hill = Document("The hill is high. Goats live on it.", id="hill")
        >>> with ParentDocumentRetriever.from_documents([lake, hill], child_size=20) as retriever:
        ...     [found] = retriever.invoke("trout")
        ...     _ = retriever.delete(["lake"])
        ...     again = retriever.invoke("trout")
        >>> found.id, len(found.page_content), again
        ('lake', 179, [])
        >>> [child["start"] for child in get_provenance(found)["stages"][-1]["children"]]
        [162]
    """

    parent_size: tuple[int, ...] = ()
    child_size: int = 400
    child_overlap: int = 0
    parent_splitter: Any = None
    child_splitter: Any = None
    scoring: Scoring = "max"
    top: int = 3
    merge: float | None = None

    @field_validator("parent_size", mode="before")
    @classmethod
    def _sizes_are_levels(cls, value: Any) -> Any:
        if value is None:
            return ()
        sizes = tuple(value) if isinstance(value, (list, tuple)) else (value,)
        for size in sizes:
            if isinstance(size, bool) or not isinstance(size, int):
                raise InvalidInputError(
                    f"parent_size={value!r} was given; give characters, or a list of them."
                )
        return sizes

    @field_validator("parent_splitter", "child_splitter")
    @classmethod
    def _splitter_is_one(cls, value: Any) -> Any:
        if value is not None:
            check_name(value) if isinstance(value, str) else check_splitter(value)
        return value

    @field_validator("scoring", mode="before")
    @classmethod
    def _scoring_is_known(cls, value: Any) -> Any:
        check_scoring(value, 1)
        return value

    @model_validator(mode="after")
    def _arguments_fit(self) -> Self:
        check_scoring(self.scoring, self.top)
        if self.merge is not None and not 0 < self.merge <= 1:
            raise InvalidInputError(
                f"merge={self.merge!r} was given; give a share above 0 and up to 1, or None."
            )
        if self.parent_splitter is not None and self.parent_size:
            raise InvalidInputError("Give parent_size or parent_splitter, not both.")
        _ = self._sizes
        return self

    @cached_property
    def _sizes(self) -> PartSizes:
        return PartSizes(self.parent_size, self.child_size, self.child_overlap)

    @cached_property
    def _splitters(self) -> tuple[Splitter | None, Splitter | None]:
        child, embeddings = self.child_splitter, self.index.embeddings
        if isinstance(child, str):
            child = named_splitter(
                child, chunk_size=self.child_size, chunk_overlap=self.child_overlap, embeddings=embeddings
            )
        parent = self.parent_splitter
        if isinstance(parent, str):
            parent = named_splitter(parent, chunk_overlap=0, embeddings=embeddings)
        return parent, child

    def _family(self, document: Document) -> Family:
        parent, child = self._splitters
        return split_family(document, self._sizes, parent_splitter=parent, child_splitter=child)

    def _passages(
        self, view: FamilyView, matches: Sequence[Match], k: int, passes: Passes | None
    ) -> list[Passage]:
        groups = by_parent(matches) if self.merge is None else by_share(matches, self.merge)
        if passes is not None:
            metadata = parents_metadata(view, matches)
            groups = [group for group in groups if group.passes(metadata, passes)]
        floor = min([0.0, *(match.score for match in matches)])
        scored = [(total(group.matches, self.scoring, self.top, floor), group) for group in groups]
        if self.scoring != "max":
            scored.sort(key=lambda pair: (-pair[0], pair[1].matches[0].rank))
        best = scored[:k]
        texts = view.parents(
            [group.parent for _, group in best if group.parent is not None and not group.own]
        )
        return [Passage(g.matches, score, _document(g, texts), g.as_dict()) for score, g in best]


def _document(group: Group, texts: dict[str, Document]) -> Document:
    if group.parent is None or group.own:
        return group.matches[0].document
    parent = texts[group.parent]
    if group.span is None:
        return parent
    return span_of(parent, group.span.start, group.span.end, group.span.heading)
