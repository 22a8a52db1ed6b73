"""Join what the chosen sources found, each document with the route that led to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.documents import Document

from rag_kit.documents import add_note, document_keys, get_provenance, with_provenance
from rag_kit.retrieval.fusion import FusionSettings, RankedList, first_places, fusion_function
from rag_kit.retrieval.routing.route import Choice, Route


@dataclass(frozen=True)
class FromSource:
    """What one source found.

    Attributes:
        choice: Why it was asked.
        retriever: Name of its retriever.
        documents: Its documents, best first.
    """

    choice: Choice
    retriever: str
    documents: Sequence[Document]


@dataclass(frozen=True)
class Joining:
    """How to join: see ``RoutingRetriever``."""

    name: str
    k: int
    fusion: str
    rrf_k: float
    id_key: str | None
    notes: Sequence[str]


def join(found: Sequence[FromSource], route: Route, how: Joining) -> list[Document]:
    """Join the results of the sources.

    The results of one source keep their order and scores; those of several are fused.

    Args:
        found: What each source found.
        route: The route taken.
        how: The settings.

    Returns:
        Copies with provenance, best first, at most ``how.k``.

    Raises:
        InvalidInputError: If ``how.id_key`` is given and a document lacks it.
    """
    keys = _keys(found, how.id_key)
    places = [first_places(of_one) for of_one in keys]
    routed = [
        {key: _routed(one, one.documents[place], rank, route, how) for rank, (key, place) in _ranked(where)}
        for one, where in zip(found, places, strict=True)
    ]
    merged: list[Document] = []
    if len(found) == 1:
        merged = list(routed[0].values())[: how.k]
    elif found:
        lists = [
            RankedList(list(of_one), [_score(doc) for doc in of_one.values()], 1.0, one.choice.name)
            for one, of_one in zip(found, routed, strict=True)
        ]
        fused = fusion_function(how.fusion)(lists, FusionSettings(rrf_k=how.rrf_k))
        for rank, (key, score) in enumerate(fused[: how.k], start=1):
            copies = [of_one[key] for of_one in routed if key in of_one]
            merged.append(_fused(copies, rank, score, route, how))
    notes = [*route.notes, *how.notes]
    if len(found) > 1:
        notes += [f"source {one.choice.name!r} found nothing" for one in found if not one.documents]
    for note in notes:
        merged = [add_note(doc, note) for doc in merged]
    return merged


def _keys(found: Sequence[FromSource], id_key: str | None) -> list[list[str]]:
    """The documents' keys. Sources number their documents apart from each other: one id may mean two texts."""
    keys = document_keys([list(one.documents) for one in found], id_key)
    if id_key is not None or len(found) == 1:
        return keys
    texts: dict[str, set[str]] = {}
    for one, of_one in zip(found, keys, strict=True):
        for key, doc in zip(of_one, one.documents, strict=True):
            texts.setdefault(key, set()).add(doc.page_content)
    return [
        [f"{key}\0{one.choice.name}" if len(texts[key]) > 1 else key for key in of_one]
        for one, of_one in zip(found, keys, strict=True)
    ]


def _ranked(where: Mapping[str, int]) -> Any:
    return enumerate(where.items(), start=1)


def _routed(one: FromSource, doc: Document, rank: int, route: Route, how: Joining) -> Document:
    score = _score(doc)
    stages = get_provenance(doc).get("stages", []) or [
        {
            "stage": "retrieve",
            "retriever": one.retriever,
            "query": route.question,
            "rank": rank,
            "score": None,
        }
    ]
    return with_provenance(
        doc,
        score=score,
        rank=rank,
        stage=f"route:{route.how}",
        retriever=how.name,
        query=route.question,
        sources=stages,
        source=one.choice.name,
        source_score=one.choice.score,
        reason=one.choice.reason,
        outcome=route.outcome,
    )


def _fused(copies: Sequence[Document], rank: int, score: float, route: Route, how: Joining) -> Document:
    first = next((doc for doc in copies if doc.id), copies[0])
    provenance = [get_provenance(doc) for doc in copies]
    merged = with_provenance(
        first,
        score=score,
        rank=rank,
        stage=f"fusion:{how.fusion}",
        retriever=how.name,
        query=route.question,
        sources=[stage for known in provenance for stage in known["stages"]],
        routed_to=list(route.names),
    )
    for known in provenance:
        for note in known["notes"]:
            merged = add_note(merged, note)
    return merged


def _score(doc: Document) -> float | None:
    score = get_provenance(doc).get("score")
    return float(score) if isinstance(score, (int, float)) and not isinstance(score, bool) else None
