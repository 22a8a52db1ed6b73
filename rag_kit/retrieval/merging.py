"""Join what several searches for one question found: fused, with every query in the provenance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.documents import Document

from rag_kit.documents import add_note, document_keys, get_provenance, with_provenance
from rag_kit.retrieval.fusion import FusionSettings, RankedList, first_places, fusion_function


@dataclass(frozen=True)
class Found:
    """What one search found.

    Attributes:
        query: The text that was searched for.
        role: What that text is: ``"original"``, ``"variant"``, ``"passage"``...
        retriever: Name of the retriever that was asked.
        weight: Its weight in the fusion, above 0.
        documents: Its documents, best first.
    """

    query: str
    role: str
    retriever: str
    weight: float
    documents: Sequence[Document]


@dataclass(frozen=True)
class Merging:
    """How to join the results of several searches.

    Attributes:
        question: What the user asked.
        name: Name of the retriever that joins.
        technique: What made the queries, e.g. ``"multi_query"``.
        k: Most documents.
        fusion: A name from ``FUSIONS``.
        rrf_k: See ``FusionSettings``.
        id_key: Metadata key that identifies a document.
        represent: Roles whose searches must each be seen in the result: their best documents come first, in turn.
        notes: What each document is told in its provenance.
        extra: More for the last stage of each document.
    """

    question: str
    name: str
    technique: str
    k: int
    fusion: str = "rrf"
    rrf_k: float = 60
    id_key: str | None = None
    represent: frozenset[str] = frozenset()
    notes: Sequence[str] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)


def merge(searches: Sequence[Found], how: Merging) -> list[Document]:
    """Join the results of searches.

    One search alone keeps its order and its scores; several are fused.

    Args:
        searches: What each search found.
        how: The settings.

    Returns:
        Copies, best first, at most ``how.k``. The last stage of each holds the question, and under ``queries``
        every text that was searched for; the stages before it say which query found it where.

    Raises:
        InvalidInputError: If ``how.id_key`` is given and a document lacks it.

    Example:
        >>> a, b = Document("a", id="a"), Document("b", id="b")
        >>> found = [Found("q", "original", "r", 1.0, [a, b]), Found("p", "variant", "r", 1.0, [b])]
        >>> [doc.id for doc in merge(found, Merging("q", "joined", "multi_query", k=2))]
        ['b', 'a']
    """
    keys = document_keys([list(found.documents) for found in searches], how.id_key)
    places = [first_places(of_one) for of_one in keys]
    if len(searches) == 1:
        documents = searches[0].documents
        ranking: list[tuple[str, float | None]]
        ranking = [(key, _score(documents[place])) for key, place in places[0].items()]
        stage = f"rewrite:{how.technique}"
    else:
        lists = [
            RankedList(of_one, [_score(doc) for doc in found.documents], found.weight)
            for found, of_one in zip(searches, keys, strict=True)
        ]
        fused = fusion_function(how.fusion)(lists, FusionSettings(rrf_k=how.rrf_k))
        ranking = [*_represented(searches, places, fused, how)]
        stage = f"fusion:{how.fusion}"
    queries = list(dict.fromkeys(found.query for found in searches))
    empty = [f"nothing found for {_short(found.query)!r}" for found in searches if not found.documents]
    merged = []
    for rank, (key, score) in enumerate(ranking[: how.k], start=1):
        copies = [
            (number, found, found.documents[where[key]], where[key] + 1)
            for number, (found, where) in enumerate(zip(searches, places, strict=True), start=1)
            if key in where
        ]
        merged.append(
            with_provenance(
                next((doc for _, _, doc, _ in copies if doc.id), copies[0][2]),
                score=score,
                rank=rank,
                stage=stage,
                retriever=how.name,
                query=how.question,
                sources=[stage for copy in copies for stage in _stages(*copy)],
                **{"technique": how.technique, "queries": queries, **how.extra},
            )
        )
        inner = [note for _, _, doc, _ in copies for note in get_provenance(doc).get("notes", [])]
        for note in (*how.notes, *inner, *empty):
            merged[-1] = add_note(merged[-1], note)
    return merged


def _represented(
    searches: Sequence[Found],
    places: Sequence[Mapping[str, int]],
    ranking: list[tuple[str, float]],
    how: Merging,
) -> list[tuple[str, float]]:
    """The best document of each search that must be seen, in turn, then the rest in the order of the fusion."""
    first: list[str] = []
    for found, where in zip(searches, places, strict=True):
        # A search whose best document is there already is represented by it.
        if found.role in how.represent and where and (key := next(iter(where))) not in first:
            first.append(key)
    scores = dict(ranking)
    taken = set(first)
    return [(key, scores[key]) for key in first] + [pair for pair in ranking if pair[0] not in taken]


def _stages(number: int, found: Found, doc: Document, rank: int) -> list[dict[str, Any]]:
    """The document's own stages; the last one is what is fused, so it gets rank, weight and the query sent."""
    stages: list[dict[str, Any]] = get_provenance(doc).get("stages", []) or [
        {"stage": "retrieve", "retriever": found.retriever, "query": found.query, "rank": rank, "score": None}
    ]
    stages[-1] = {
        **stages[-1],
        "query": found.query,
        "rank": rank,
        "weight": found.weight,
        "branch": number,
        "role": found.role,
    }
    return stages


def _score(doc: Document) -> float | None:
    score = get_provenance(doc).get("score")
    return float(score) if isinstance(score, (int, float)) and not isinstance(score, bool) else None


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 80 else line[:79] + "…"
