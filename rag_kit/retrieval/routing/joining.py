"""Join what the chosen sources found, each document with the route that led to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.documents import Document

from rag_kit.documents import add_note, document_keys, get_provenance, peek_score, with_provenance
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
    notes = [*route.notes, *how.notes]
    if len(found) == 1:
        (one,), (where,) = found, places
        kept = list(where.items())[: how.k]
        return [
            _with_notes(_routed(one, one.documents[place], rank, route, how), notes)
            for rank, (_, place) in enumerate(kept, start=1)
        ]
    notes += [f"source {one.choice.name!r} found nothing" for one in found if not one.documents]
    ranks = [{key: rank for rank, key in enumerate(where, start=1)} for where in places]
    lists = [
        RankedList(
            list(where), [peek_score(one.documents[at]) for at in where.values()], 1.0, one.choice.name
        )
        for one, where in zip(found, places, strict=True)
    ]
    fused = fusion_function(how.fusion)(lists, FusionSettings(rrf_k=how.rrf_k))
    merged = []
    # Provenance is made for what is returned alone: it is most of the work.
    for rank, (key, score) in enumerate(fused[: how.k], start=1):
        copies = [
            (one, one.documents[where[key]], of_one[key])
            for one, where, of_one in zip(found, places, ranks, strict=True)
            if key in where
        ]
        merged.append(_fused(copies, rank, score, route, how, notes))
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


def _routed(one: FromSource, doc: Document, rank: int, route: Route, how: Joining) -> Document:
    """A document of the one source that was asked."""
    return with_provenance(
        doc,
        score=peek_score(doc),
        rank=rank,
        stage=f"route:{route.how}",
        retriever=how.name,
        query=route.question,
        sources=_stages_before(get_provenance(doc), one, rank, route),
        **_details(one, route),
    )


def _fused(
    copies: Sequence[tuple[FromSource, Document, int]],
    rank: int,
    score: float,
    route: Route,
    how: Joining,
    notes: Sequence[str],
) -> Document:
    """One document of the copies that several sources found."""
    first = next((doc for _, doc, _ in copies if doc.id), copies[0][1])
    stages, told = [], []
    for one, doc, place in copies:
        known = get_provenance(doc)
        stages += _stages_before(known, one, place, route)
        stages.append(
            {
                "stage": f"route:{route.how}",
                "retriever": how.name,
                "query": route.question,
                "rank": place,
                "score": peek_score(doc),
                "weight": None,
                **_details(one, route),
            }
        )
        told += known.get("notes", [])
    merged = with_provenance(
        first,
        score=score,
        rank=rank,
        stage=f"fusion:{how.fusion}",
        retriever=how.name,
        query=route.question,
        sources=stages,
        routed_to=list(route.names),
    )
    return _with_notes(merged, [*told, *notes])


def _stages_before(
    known: Mapping[str, Any], one: FromSource, rank: int, route: Route
) -> list[dict[str, Any]]:
    plain = {
        "stage": "retrieve",
        "retriever": one.retriever,
        "query": route.question,
        "rank": rank,
        "score": None,
    }
    stages: list[dict[str, Any]] = known.get("stages") or [plain]
    return stages


def _details(one: FromSource, route: Route) -> dict[str, Any]:
    choice = one.choice
    return {
        "source": choice.name,
        "source_score": choice.score,
        "reason": choice.reason,
        "outcome": route.outcome,
    }


def _with_notes(doc: Document, notes: Sequence[str]) -> Document:
    for note in dict.fromkeys(notes):
        doc = add_note(doc, note)
    return doc
