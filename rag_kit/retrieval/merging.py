"""Join what several searches found: fused, with every search in the provenance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.documents import Document

from rag_kit.documents import add_note, document_keys, with_provenance
from rag_kit.documents.provenance import peek_provenance, peek_score
from rag_kit.retrieval.fusion import BY_RANK, fusion_function
from rag_kit.retrieval.ranked import FusionSettings, RankedList, first_places


@dataclass(frozen=True)
class Found:
    """What one search found.

    Attributes:
        query: The text that was searched for.
        role: What that text is: ``"original"``, ``"variant"``, ``"passage"``...; ``None`` for the question as it is.
        retriever: Name of the retriever that was asked.
        weight: Its weight in the fusion, above 0.
        documents: Its documents, best first.
        branch: Its number, from 1; 0 for its place among the lists.
    """

    query: str
    role: str | None
    retriever: str
    weight: float
    documents: Sequence[Document]
    branch: int = 0


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
        notes: Notes for the provenance of each document.
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
    keys = document_keys([found.documents for found in searches], how.id_key, hashed=False)
    places = [first_places(of_one) for of_one in keys]
    if len(searches) == 1:
        documents = searches[0].documents
        ranking: list[tuple[str, float | None]]
        ranking = [(key, peek_score(documents[place])) for key, place in places[0].items()]
        stage = f"rewrite:{how.technique}"
    else:
        by_rank = how.fusion in BY_RANK
        lists = [
            RankedList(of_one, () if by_rank else [peek_score(doc) for doc in found.documents], found.weight)
            for found, of_one in zip(searches, keys, strict=True)
        ]
        fused = fusion_function(how.fusion)(lists, FusionSettings(rrf_k=how.rrf_k))
        ranking = [*_represented(searches, places, fused, how)]
        stage = f"fusion:{how.fusion}"
    queries = list(dict.fromkeys(found.query for found in searches))
    empty = [f"nothing found for {_short(found.query)!r}" for found in searches if not found.documents]
    return joined(
        searches,
        places,
        ranking[: how.k],
        stage=stage,
        retriever=how.name,
        question=how.question,
        notes=[*how.notes, *empty],
        extra={"technique": how.technique, "queries": queries, **how.extra},
    )


def joined(
    searches: Sequence[Found],
    places: Sequence[Mapping[str, int]],
    ranking: Iterable[tuple[str, float | None]],
    *,
    stage: str,
    retriever: str,
    question: str,
    notes: Sequence[str],
    extra: Mapping[str, Any],
    share: Callable[[int, str], Mapping[str, Any]] | None = None,
) -> list[Document]:
    """Make one document of the copies that several searches found, for each key of a ranking.

    Args:
        searches: What each search found.
        places: For each search, where the document of a key stands in it, from 0.
        ranking: Keys and scores, best first.
        stage: Name of the stage that joined them.
        retriever: Name of the retriever that joins.
        question: What it was asked.
        notes: Notes for each document; before the notes that its copies bring along.
        extra: More for the last stage.
        share: More for the stage of a list (by number, from 0) and a key, such as the normalised score.

    Returns:
        Copies, one a key.
    """
    results = []
    for rank, (key, score) in enumerate(ranking, start=1):
        first: Document | None = None
        stages: list[Mapping[str, Any]] = []
        inner: list[str] = []
        for number, (found, where) in enumerate(zip(searches, places, strict=True)):
            place = where.get(key)
            if place is None:
                continue
            doc = found.documents[place]
            # A copy with an id is the better one to hand on.
            if first is None or (doc.id and not first.id):
                first = doc
            before = peek_provenance(doc)
            more = share(number, key) if share is not None else {}
            stages += _stages(before, found, place + 1, found.branch or number + 1, more)
            inner += before.get("notes", ())
        if first is not None:
            results.append(
                with_provenance(
                    first,
                    score=score,
                    rank=rank,
                    stage=stage,
                    retriever=retriever,
                    query=question,
                    sources=stages,
                    notes=[*notes, *inner],
                    **extra,
                )
            )
    if len(results) > 1 and len(texts := Counter(doc.page_content for doc in results)) < len(results):
        # the ids may be meant: which field tells documents apart is the user's to say
        return [
            add_note(doc, f"same text under {count} ids; in Python id_key= makes them one")
            if (count := texts[doc.page_content]) > 1
            else doc
            for doc in results
        ]
    return results


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


def _stages(
    before: Mapping[str, Any], found: Found, rank: int, branch: int, share: Mapping[str, Any]
) -> list[Mapping[str, Any]]:
    """A copy's own stages; the last one is what is fused, so it gets rank, weight and the query sent."""
    own: Sequence[Mapping[str, Any]] = before.get("stages") or [
        {"stage": "retrieve", "retriever": found.retriever, "query": found.query, "rank": rank, "score": None}
    ]
    last: dict[str, Any] = {**own[-1], "rank": rank, "weight": found.weight, "branch": branch, **share}
    if found.role is not None:
        last.update(query=found.query, role=found.role)
    return [*own[:-1], last]


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 80 else line[:79] + "…"
