"""Join what the chosen sources found, each document with the route that led to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.documents import Document

from rag_kit.documents import add_note, document_keys, get_provenance, with_provenance
from rag_kit.documents.provenance import peek_score
from rag_kit.retrieval.fusion import fusion_function
from rag_kit.retrieval.merging import Found, joined
from rag_kit.retrieval.ranked import FusionSettings, RankedList, first_places
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
        (documents,) = _routed(found, places, list(places[0])[: how.k], route, how)
        return [_with_notes(documents[place], notes) for place in list(places[0].values())[: how.k]]
    notes += [f"source {one.choice.name!r} found nothing" for one in found if not one.documents]
    lists = [
        RankedList(of_one, [peek_score(doc) for doc in one.documents], 1.0, one.choice.name)
        for one, of_one in zip(found, keys, strict=True)
    ]
    ranking = fusion_function(how.fusion)(lists, FusionSettings(rrf_k=how.rrf_k))[: how.k]
    routed = _routed(found, places, [key for key, _ in ranking], route, how)
    return joined(
        [Found(route.question, None, how.name, 1.0, documents) for documents in routed],
        places,
        ranking,
        stage=f"fusion:{how.fusion}",
        retriever=how.name,
        question=route.question,
        notes=notes,
        extra={"routed_to": list(route.names)},
    )


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


def _routed(
    found: Sequence[FromSource],
    places: Sequence[Mapping[str, int]],
    keys: Sequence[str],
    route: Route,
    how: Joining,
) -> list[list[Document]]:
    """The documents of each source; those that will be returned have the route in their provenance.

    Provenance is made for these alone, since it is most of the work.
    """
    wanted = set(keys)
    results = []
    for one, where in zip(found, places, strict=True):
        documents = list(one.documents)
        for rank, (key, place) in enumerate(where.items(), start=1):
            if key not in wanted:
                continue
            doc = documents[place]
            found_by = {"stage": "retrieve", "retriever": one.retriever, "query": route.question}
            documents[place] = with_provenance(
                doc,
                score=peek_score(doc),
                rank=rank,
                stage=f"route:{route.how}",
                retriever=how.name,
                query=route.question,
                sources=get_provenance(doc).get("stages") or [{**found_by, "rank": rank, "score": None}],
                **_details(one, route),
            )
        results.append(documents)
    return results


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
