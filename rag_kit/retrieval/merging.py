"""Join what several searches found: fused, with every search in the provenance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.documents import Document

from rag_kit.documents import add_note, document_keys, with_provenance
from rag_kit.documents.provenance import peek_provenance, peek_score
from rag_kit.errors import InvalidInputError
from rag_kit.retrieval.fusion import (
    FusedList,
    FusionSettings,
    RankedList,
    first_places,
    reciprocal_rank_fusion,
)

FUSIONS = ("rrf", "convex", "auto")


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
        route: The stage that led to this search, where there was one: its ``stage``, ``source``...
    """

    query: str
    role: str | None
    retriever: str
    weight: float
    documents: Sequence[Document]
    branch: int = 0
    route: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Merging:
    """How to join the results of several searches.

    Attributes:
        question: What the user asked.
        name: Name of the retriever that joins.
        k: Most documents.
        single: Name of the stage where there is one search, which keeps its order and its scores.
        fusion: One of ``FUSIONS``.
        rrf_k: See ``FusionSettings``.
        id_key: Metadata key that identifies a document.
        represent: The role of searches whose best documents come first, in turn.
        notes: Notes for the provenance of each document.
        extra: More for the last stage of each document.
    """

    question: str
    name: str
    k: int
    single: str = "merge"
    fusion: str = "rrf"
    rrf_k: float = 60
    id_key: str | None = None
    represent: str = ""
    notes: Sequence[str] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)


def check_fusion(name: str, rrf_k: float) -> None:
    """See that there is such a fusion, and that the ``k`` of reciprocal rank fusion makes sense."""
    if name not in FUSIONS:
        raise InvalidInputError(f"fusion={name!r} was given; allowed: {', '.join(map(repr, FUSIONS))}.")
    if rrf_k < 0:
        raise InvalidInputError(f"rrf_k={rrf_k!r} was given; it must be >= 0 (60 is usual).")


def fuse(name: str, lists: Sequence[RankedList], settings: FusionSettings) -> FusedList:
    """Fuse ranked lists by one of ``FUSIONS``.

    Example:
        >>> [key for key, _ in fuse("rrf", [RankedList(["a", "b"], [], 1), RankedList(["b"], [], 1)], FusionSettings())]
        ['b', 'a']
    """
    if name == "rrf":
        weights = [ranked.weight for ranked in lists]
        return FusedList(
            reciprocal_rank_fusion([ranked.keys for ranked in lists], weights=weights, k=settings.rrf_k)
        )
    if name == "convex":
        from rag_kit.retrieval.convex import fuse_convex

        return fuse_convex(lists, settings)
    from rag_kit.retrieval.auto_fusion import fuse_auto

    return fuse_auto(lists, settings)


def merge(
    searches: Sequence[Found], how: Merging, keys: Sequence[Sequence[str]] | None = None
) -> list[Document]:
    """Join the results of searches; one alone keeps its order and its scores, several are fused.

    Args:
        searches: What each search found.
        how: The settings.
        keys: The identity of each document, where it is not the usual one.

    Raises:
        InvalidInputError: If ``how.id_key`` is given and a document lacks it.

    Example:
        >>> a, b = Document("a", id="a"), Document("b", id="b")
        >>> found = [Found("q", "original", "r", 1.0, [a, b]), Found("p", "variant", "r", 1.0, [b])]
        >>> [doc.id for doc in merge(found, Merging("q", "joined", k=2))]
        ['b', 'a']
    """
    if keys is None:
        keys = document_keys([found.documents for found in searches], how.id_key, hashed=False)
    places = [first_places(of_one) for of_one in keys]
    ranking: list[tuple[str, float | None]]
    if len(searches) == 1:
        documents = searches[0].documents
        ranking = [(key, peek_score(documents[place])) for key, place in places[0].items()]
        stage = how.single
    else:
        lists = [
            RankedList(
                of_one, [] if how.fusion == "rrf" else list(map(peek_score, found.documents)), found.weight
            )
            for found, of_one in zip(searches, keys, strict=True)
        ]
        fused = fuse(how.fusion, lists, FusionSettings(rrf_k=how.rrf_k))
        ranking = [*_represented(searches, places, fused, how.represent)]
        stage = f"fusion:{how.fusion}"
    empty = [_nothing(found) for found in searches if not found.documents]
    return joined(searches, places, ranking[: how.k], how, stage, notes=[*how.notes, *empty])


def joined(
    searches: Sequence[Found],
    places: Sequence[Mapping[str, int]],
    ranking: Iterable[tuple[str, float | None]],
    how: Merging,
    stage: str,
    *,
    notes: Sequence[str],
    share: Callable[[int, str], Mapping[str, Any]] | None = None,
) -> list[Document]:
    """One document for each key of a ranking, with the stages of all copies that several searches found.

    Args:
        searches: What each search found.
        places: For each search, where the document of a key stands in it, from 0.
        ranking: Keys and scores, best first.
        how: The settings.
        stage: Name of the stage that joined them.
        notes: Notes for each document; before the notes that its copies bring along.
        share: More for the stage of a list (by number, from 0) and a key, such as the normalised score.
    """
    results = []
    for rank, (key, score) in enumerate(ranking, start=1):
        first: Document | None = None
        stages: list[Mapping[str, Any]] = []
        inner: list[str] = []
        for number, (found, where) in enumerate(zip(searches, places, strict=True)):
            if (place := where.get(key)) is None:
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
            provenance: dict[str, Any] = {
                "retriever": how.name,
                "query": how.question,
                "sources": stages,
                **how.extra,
            }
            everything = [*notes, *inner]
            results.append(
                with_provenance(first, score=score, rank=rank, stage=stage, notes=everything, **provenance)
            )
    times = Counter(doc.page_content for doc in results)
    if len(times) == len(results):
        return results
    # the ids may be meant: which field tells documents apart is the user's to say
    return [
        add_note(doc, f"same text under {count} ids; in Python id_key= makes them one")
        if (count := times[doc.page_content]) > 1
        else doc
        for doc in results
    ]


def _represented(
    searches: Sequence[Found],
    places: Sequence[Mapping[str, int]],
    ranking: list[tuple[str, float]],
    role: str,
) -> list[tuple[str, float]]:
    """The best document of each search of a role, in turn, then the rest in the order of the fusion."""
    best = [next(iter(at)) for found, at in zip(searches, places, strict=True) if found.role == role and at]
    first = dict.fromkeys(best)
    if not first:
        return ranking
    scores = dict(ranking)
    return [(key, scores[key]) for key in first] + [pair for pair in ranking if pair[0] not in first]


def _stages(
    before: Mapping[str, Any], found: Found, rank: int, branch: int, share: Mapping[str, Any]
) -> list[Mapping[str, Any]]:
    """A copy's own stages; the last one is what is fused, so it gets rank, weight and the query sent."""
    plain = {"retriever": found.retriever, "query": found.query, "rank": rank, "score": before.get("score")}
    own = [*(before.get("stages") or [{"stage": "retrieve", **plain}])]
    if found.route:
        own.append({**plain, **found.route})
    last: dict[str, Any] = {**own[-1], "rank": rank, "weight": found.weight, "branch": branch, **share}
    if found.role is not None:
        last.update(query=found.query, role=found.role)
    return [*own[:-1], last]


def _nothing(found: Found) -> str:
    query = " ".join(found.query.split())
    where = f" in {found.route['source']!r}" if found.route else ""
    return f"nothing found for {query if len(query) <= 80 else query[:79] + '…'!r}{where}"
