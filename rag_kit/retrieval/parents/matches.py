"""Children that were found, where they belong, and the passages that are returned for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from langchain_core.documents import Document

from rag_kit.documents import add_note, get_provenance, with_provenance
from rag_kit.documents.provenance import peek_score
from rag_kit.errors import InvalidInputError
from rag_kit.indexing.document_index.families.model import PARENT_KEY, Place
from rag_kit.indexing.document_index.families.reading import FamilyView
from rag_kit.indexing.document_index.families.rows import offset_in_source

Scoring = Literal["max", "sum", "mean"]
Passes = Callable[[dict[str, Any]], bool]


@dataclass(frozen=True)
class Match:
    """A child that was found.

    Attributes:
        document: As its retriever gave it.
        rank: Its rank, from 1.
        score: Its score; 1 / rank where the retriever gives none.
        place: Where it belongs; ``None`` for a document that is no part of another.
    """

    document: Document
    rank: int
    score: float
    place: Place | None

    def as_dict(self) -> dict[str, Any]:
        """What provenance says of it."""
        start, end = (self.place.start, self.place.end) if self.place else (None, None)
        return {
            "id": self.document.id,
            "rank": self.rank,
            "score": self.score,
            "start": start,
            "end": end,
        }


@dataclass
class Passage:
    """What is returned for some matches.

    Attributes:
        matches: They, best first.
        score: What they make together.
        document: The text, with its metadata.
        extra: More for the provenance.
    """

    matches: list[Match]
    score: float
    document: Document
    extra: dict[str, Any] = field(default_factory=dict)


def place_matches(view: FamilyView, found: Sequence[Document]) -> list[Match]:
    """Say where each document found belongs.

    A child that was removed since it was found is left out; a document that is no child stands for itself.
    """
    ids = [doc.id for doc in found if doc.id]
    places = view.places(ids)
    alone = [key for key in ids if key not in places]
    there = view.rows(alone) if alone else set()
    matches = []
    seen: set[str] = set()
    for rank, doc in enumerate(found, start=1):
        place = places.get(doc.id) if doc.id else None
        if place is None and PARENT_KEY in doc.metadata and doc.id not in there:
            continue
        if doc.id:
            if doc.id in seen:
                continue
            seen.add(doc.id)
        given = peek_score(doc)
        score = 1 / rank if given is None else given
        matches.append(Match(doc, rank, float(score), place))
    return matches


def total(matches: Sequence[Match], scoring: Scoring, top: int, floor: float) -> float:
    """One score of several.

    Args:
        matches: At least one.
        scoring: ``"max"``; ``"sum"`` or ``"mean"`` of the best.
        top: How many count for the sum or the mean.
        floor: What a match has to be above to add to a sum: z-scores and cosines may be below 0, and a
            further match must not make less of a parent.

    Example:
        >>> found = [Match(Document(""), rank, score, None) for rank, score in enumerate([3.0, 1.0], 1)]
        >>> [total(found, scoring, 3, 0.0) for scoring in ("max", "sum", "mean")]
        [3.0, 4.0, 2.0]
    """
    scores = sorted((match.score for match in matches), reverse=True)[:top]
    if scoring == "max":
        return scores[0]
    if scoring == "sum":
        return sum(score - floor for score in scores)
    return sum(scores) / len(scores)


def check_scoring(scoring: str, top: int) -> None:
    """Refuse an unknown way to score.

    Raises:
        InvalidInputError: So it is.
    """
    if scoring not in ("max", "sum", "mean"):
        raise InvalidInputError(f"scoring={scoring!r} is unknown; allowed: max, sum, mean.")
    if isinstance(top, bool) or top < 1:
        raise InvalidInputError(f"top={top!r} was given; it must be a whole number >= 1.")


def span_of(parent: Document, start: int, end: int, heading: str | None = None) -> Document:
    """A verbatim span of a document, with the document's metadata and its offsets.

    Example:
        >>> span = span_of(Document("The lake is deep.", id="lake"), 4, 8)
        >>> span.id, span.page_content, span.metadata
        ('lake#4-8', 'lake', {'start': 4, 'end': 8, 'parent_id': 'lake'})
    """
    shift = offset_in_source(parent.metadata, len(parent.page_content))
    metadata = {**parent.metadata, "start": start + shift, "end": end + shift, PARENT_KEY: parent.id}
    if heading:
        metadata["heading"] = heading
    return Document(
        id=f"{parent.id}#{start}-{end}", page_content=parent.page_content[start:end], metadata=metadata
    )


def documents_of(
    passages: Sequence[Passage], *, stage: str, name: str, query: str, notes: Sequence[str]
) -> list[Document]:
    """The passages as results: copies with every matched child in the provenance."""
    results = []
    for rank, passage in enumerate(passages, start=1):
        best = passage.matches[0].document
        result = with_provenance(
            passage.document,
            score=passage.score,
            rank=rank,
            stage=stage,
            retriever=name,
            query=query,
            sources=get_provenance(best).get("stages", []),
            children=[match.as_dict() for match in passage.matches],
            **passage.extra,
        )
        inner = [n for match in passage.matches for n in get_provenance(match.document).get("notes", [])]
        for note in dict.fromkeys((*inner, *notes)):
            result = add_note(result, note)
        results.append(result)
    return results
