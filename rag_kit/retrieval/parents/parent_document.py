"""ParentDocumentRetriever: small children are searched, their parents are returned."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

from langchain_core.documents import Document
from pydantic import Field, StrictInt, field_validator, model_validator

from rag_kit.errors import InvalidInputError
from rag_kit.indexing.document_index.rows import PARENT_KEY, Ancestor, Family, FamilyView
from rag_kit.indexing.splitting.api import Splitter, check_splitter
from rag_kit.indexing.splitting.hierarchy import check_levels, split_family
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
        parent_size: Most characters of a parent; several, largest first, for levels; ``None`` for whole documents.
        child_size: Most characters of a child.
        child_overlap: Most characters that a child repeats of the one before.
        parent_splitter: A LangChain text splitter, a function from documents to documents, or a name that `split`
            takes (of 1000 characters), which cuts documents into parents instead.
        child_splitter: One that cuts parents into children instead; by name in ``child_size`` characters.
        merge: Auto-merging: the share of a parent's children, above 0 to 1, that must be found for it to be
            returned; else the children are. With several levels the largest parent that has the share.
        fetch_k: Children to fetch first, for ``merge`` also those that count; default: five times ``k``, at least 20.
        max_fetch_k: How many children to fetch at most; where that cuts the result short, a note says so.
        id_key: Metadata key that holds a document's id, for writing.

    Example:
        >>> lake = Document("The lake is deep. " * 9 + "Trout live in it.", id="lake")
        >>> with ParentDocumentRetriever.from_documents([lake], child_size=20) as retriever:
        ...     [found] = retriever.invoke("trout")
        >>> found.id, len(found.page_content)
        ('lake', 179)
    """

    parent_size: tuple[StrictInt, ...] = ()
    child_size: int = 400
    child_overlap: int = 0
    parent_splitter: Any = None
    child_splitter: Any = None
    merge: float | None = Field(default=None, gt=0, le=1)

    @field_validator("parent_size", mode="before")
    @classmethod
    def _sizes_are_levels(cls, value: Any) -> Any:
        if value is None:
            return ()
        return tuple(value) if isinstance(value, (list, tuple)) else (value,)

    @field_validator("parent_splitter", "child_splitter")
    @classmethod
    def _splitter_is_one(cls, value: Any) -> Any:
        if value is not None:
            check_name(value) if isinstance(value, str) else check_splitter(value)
        return value

    @model_validator(mode="after")
    def _arguments_fit(self) -> Self:
        if self.parent_splitter is not None and self.parent_size:
            raise InvalidInputError("Give parent_size or parent_splitter, not both.")
        check_levels([*self.parent_size, self.child_size], self.child_overlap)
        return self

    @cached_property
    def _cuts(self) -> list[Splitter | int]:
        """How documents are cut, level by level; the splitters given by name are made."""
        parent, child, embeddings = self.parent_splitter, self.child_splitter, self.index.embeddings
        if isinstance(parent, str):
            parent = named_splitter(parent, chunk_overlap=0, embeddings=embeddings)
        if isinstance(child, str):
            child = named_splitter(
                child, chunk_size=self.child_size, chunk_overlap=self.child_overlap, embeddings=embeddings
            )
        return [*([parent] if parent else self.parent_size), child or self.child_size]

    def _family(self, document: Document) -> Family:
        return split_family(document, self._cuts, self.child_overlap)

    def _passages(
        self, view: FamilyView, matches: Sequence[Match], k: int, passes: Passes | None
    ) -> list[Passage]:
        """The best ``k`` groups of matches, as passages."""
        groups = _grouped(matches, self.merge)
        if passes is not None:
            metadata = parents_metadata(view, matches)
            groups = [group for group in groups if group.passes(metadata, passes)]
        best = groups[:k]
        parents = [group.parent for group in best if group.parent is not None and not group.is_child]
        texts = view.parents(parents)
        return [group.passage(texts) for group in best]


@dataclass
class _Group:
    """Matches that one result stands for: a document, a span of it with so many children, or the child itself."""

    matches: list[Match]
    parent: str | None
    span: Ancestor | None
    leaves: int
    is_child: bool = False

    def passes(self, metadata: Mapping[str, dict[str, Any]], passes: Passes) -> bool:
        """Whether what is returned passes a filter; a child has passed it already."""
        if self.parent is None or self.is_child:
            return passes(self.matches[0].document.metadata)
        if self.parent not in metadata:
            return False
        fields = {**metadata[self.parent], PARENT_KEY: self.parent}
        if self.span is not None and self.span.heading:
            fields["heading"] = self.span.heading
        return passes(fields)

    def passage(self, texts: Mapping[str, Document]) -> Passage:
        """What is returned: the child itself, the whole parent, or the span of it that the matches are in."""
        document = self.matches[0].document
        if self.parent is not None and not self.is_child:
            document, span = texts[self.parent], self.span
            if span is not None:
                document = span_of(document, span.start, span.end, span.heading)
        score = max(match.score for match in self.matches)
        extra = {} if self.parent is None else {"matched": len(self.matches), "of": self.leaves}
        return Passage(self.matches, score, document, extra)


def _grouped(matches: Sequence[Match], min_score: float | None) -> list[_Group]:
    """Matches put together, in the order of the best of each group, by the largest span that holds them.

    With ``min_score``, by the largest of whose children at least that share was found, else each child alone.
    """
    spans = [_spans(match) for match in matches]
    counts = Counter(key for around in spans for key, _, _ in around)
    groups: dict[Any, _Group] = {}
    for number, (match, around) in enumerate(zip(matches, spans, strict=True)):
        parent = match.place.parent if match.place else None
        enough = (step for step in around if min_score is None or counts[step[0]] >= min_score * step[2])
        key, span, leaves = next(enough, (number, None, 0))
        if key in groups:
            groups[key].matches.append(match)
        else:
            groups[key] = _Group([match], parent, span, leaves or 1, is_child=not leaves)
    return list(groups.values())


def _spans(match: Match) -> list[tuple[Any, Ancestor | None, int]]:
    """What holds a match, largest first: key, span, number of children."""
    place = match.place
    if place is None:
        return []
    if not place.path:
        return [((place.parent, None), None, place.size)]
    return [((place.parent, span), span, span.leaves) for span in place.path]
