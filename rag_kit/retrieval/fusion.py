"""Fuse ranked lists, with every search in the provenance.

Paper: Cormack et al.: Reciprocal Rank Fusion outperforms Condorcet and individual rank learning methods, SIGIR 2009.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeVar

from rag_kit.documents import add_note, with_provenance
from rag_kit.documents.provenance import peek_provenance
from rag_kit.errors import InvalidInputError

if TYPE_CHECKING:
    from langchain_core.documents import Document
    from langchain_core.runnables import Runnable

K = TypeVar("K", bound=Hashable)
FUSIONS = ("rrf", "convex", "auto")
# Sums of the same shares in another order differ by rounding; closer scores than this are a tie.
_TIE = 1e-12


def reciprocal_rank_fusion(
    rankings: Sequence[Iterable[K]], *, weights: Sequence[float] | None = None, k: float = 60
) -> list[tuple[K, float]]:
    """Fuse rankings: an item's score is the sum of ``weight / (k + rank)`` over the lists that hold it.

    Ranks count from 1. An item that a list holds several times counts there once, with its first rank. Lists
    of weight 0 are left out. Ties keep the order in which the items are first seen, list after list.

    Args:
        rankings: Lists of hashable keys, best first.
        weights: One weight a list, >= 0; ``None`` for 1 each.
        k: How slowly a list's influence falls with the rank, >= 0.

    Returns:
        ``(key, score)`` pairs, best first.

    Raises:
        InvalidInputError: A weight or ``k`` is negative, no weight is positive, or their number is not the rankings'.

    Example:
        >>> [key for key, _ in reciprocal_rank_fusion([["a", "b"], ["b", "c"]])]
        ['b', 'a', 'c']
        >>> reciprocal_rank_fusion([["a"], ["a"]], weights=[3, 1], k=0)
        [('a', 4.0)]
    """
    if isinstance(rankings, (str, bytes)) or any(isinstance(r, (str, bytes)) for r in rankings):
        raise InvalidInputError("rankings must be a list of lists of keys; a string was given for a list.")
    if isinstance(k, bool) or not isinstance(k, (int, float)) or not (math.isfinite(k) and k >= 0):
        raise InvalidInputError(f"k={k!r} was given; it must be a number >= 0 (60 is usual).")
    if not rankings:
        return []
    used = check_weights(weights, len(rankings))
    tables: dict[float, list[float]] = {}
    scores: dict[K, float] = {}
    score_of = scores.get
    for ranking, weight in zip(rankings, used, strict=True):
        if weight == 0:
            continue
        keys = ranking if isinstance(ranking, (list, tuple)) else list(ranking)
        shares = tables.get(weight, [])
        if len(shares) < len(keys):
            shares = tables[weight] = [weight / (k + rank) for rank in range(1, len(keys) + 1)]
        try:
            distinct = len(set(keys))
        except TypeError:
            raise InvalidInputError(
                f"rankings hold {type(keys[0]).__name__}; give keys, such as ids (rag_kit.documents.document_keys)."
            ) from None
        if distinct == len(keys):
            for key, share in zip(keys, shares, strict=False):
                scores[key] = score_of(key, 0.0) + share
        else:
            for key, position in first_places(keys).items():
                scores[key] = score_of(key, 0.0) + shares[position]
    return ordered(scores)


def check_weights(weights: Sequence[float] | None, count: int) -> list[float]:
    """The weights of a fusion as floats: one a list, >= 0, at least one above 0; ``None`` for 1 each."""
    if weights is None:
        return [1.0] * count
    if isinstance(weights, (str, bytes)) or not hasattr(weights, "__len__") or len(weights) != count:
        raise InvalidInputError(f"weights={weights!r} was given for {count} lists; give one number each.")
    for weight in weights:
        is_number = isinstance(weight, (int, float)) and not isinstance(weight, bool)
        if not is_number or not math.isfinite(weight) or weight < 0:
            raise InvalidInputError(
                f"The weight {weight!r} was given; weights must be numbers >= 0 (0 leaves a list out)."
            )
    if count and not any(weight > 0 for weight in weights):
        raise InvalidInputError("All weights are 0; at least one must be above 0.")
    return [float(weight) for weight in weights]


def check_fusion(name: str, rrf_k: float) -> None:
    """See that there is such a fusion, and that the ``k`` of reciprocal rank fusion makes sense."""
    if name not in FUSIONS:
        raise InvalidInputError(f"fusion={name!r} was given; allowed: {', '.join(map(repr, FUSIONS))}.")
    if rrf_k < 0:
        raise InvalidInputError(f"rrf_k={rrf_k!r} was given; it must be >= 0 (60 is usual).")


def first_places(keys: Sequence[K]) -> dict[K, int]:
    """Where each key first stands in a list, from 0, in that order."""
    positions = dict(zip(keys, range(len(keys)), strict=True))
    if len(positions) == len(keys):
        return positions
    positions.clear()
    for position, key in enumerate(keys):
        positions.setdefault(key, position)
    return positions


def ordered(scores: dict[K, float]) -> list[tuple[K, float]]:
    """Items by falling score; those whose scores differ by rounding only, in the order of the mapping."""
    pairs = sorted(scores.items(), key=itemgetter(1), reverse=True)
    previous = math.inf
    for _, score in pairs:
        if 0 < previous - score < _TIE:
            break
        previous = score
    else:
        return pairs
    positions = {key: position for position, key in enumerate(scores)}
    groups: list[list[tuple[K, float]]] = []
    previous = math.inf
    for pair in pairs:
        if not groups or previous - pair[1] >= _TIE:
            groups.append([])
        groups[-1].append(pair)
        previous = pair[1]
    return [pair for group in groups for pair in sorted(group, key=lambda item: positions[item[0]])]


class FusedList(list[tuple[str, float]]):
    """``(key, score)`` pairs, best first, and how they came about.

    ``normalised`` holds each list's normalised scores (nothing where the fusion looks at ranks), ``weights`` the lists'
    weights where they are not the branches' own, ``extra`` and ``notes`` what goes into the provenance of all.
    """

    normalised: Sequence[Mapping[str, float]] = ()
    weights: Sequence[float] = ()
    extra: Mapping[str, object] | None = None
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Search:
    """A text to search for, and what that found, best first.

    ``role`` is what the text is (``"original"``, ``"variant"``, ``"passage"``...), ``None`` for the question as it is;
    ``retriever`` is asked instead of the inner one; ``name`` is that of the retriever that was asked, ``branch`` its
    number, from 1, or 0 for its place among the lists; ``route`` is the stage that led to this search, if any.
    """

    query: str
    role: str | None
    retriever: Runnable[str, list[Document]] | None = None
    weight: float = 1.0
    documents: Sequence[Document] = ()
    name: str = ""
    branch: int = 0
    route: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Merged:
    """What all documents that several searches found have in common in the provenance.

    ``notes`` stand before the notes that a document's copies bring along; ``extra`` goes into its last stage.
    """

    question: str
    name: str
    notes: Sequence[str] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)


def join_documents(
    searches: Sequence[Search],
    positions: Sequence[Mapping[str, int]],
    ranking: Iterable[tuple[str, float | None]],
    common: Merged,
    stage: str,
    more: Callable[[int, str], Mapping[str, Any]] | None = None,
) -> list[Document]:
    """One document for each key of a ranking, with the stages of all copies that several searches found.

    ``positions`` holds, for each search, where the document of a key stands in it; ``more`` gives further fields for
    the stage of a list (by number, from 0) and a key, such as the normalised score.
    """
    results = []
    for rank, (key, score) in enumerate(ranking, start=1):
        first: Document | None = None
        stages: list[Mapping[str, Any]] = []
        inner: list[str] = []
        for number, (search, where) in enumerate(zip(searches, positions, strict=True)):
            if (position := where.get(key)) is None:
                continue
            doc = search.documents[position]
            # A copy with an id is the better one to hand on.
            if first is None or (doc.id and not first.id):
                first = doc
            record = peek_provenance(doc)
            extra_fields = more(number, key) if more is not None else {}
            stages += _stages(record, search, position + 1, search.branch or number + 1, extra_fields)
            inner += record.get("notes", ())
        if first is not None:
            fields: dict[str, Any] = {"retriever": common.name, "query": common.question, "sources": stages}
            fields |= {"notes": [*common.notes, *inner], **common.extra}
            results.append(with_provenance(first, score=score, rank=rank, stage=stage, **fields))
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


def _stages(
    record: Mapping[str, Any], search: Search, rank: int, branch: int, extra_fields: Mapping[str, Any]
) -> list[Mapping[str, Any]]:
    """A copy's own stages; the last one is what is fused, so it gets rank, weight and the query sent."""
    plain = {"retriever": search.name, "query": search.query, "rank": rank, "score": record.get("score")}
    stages = [*(record.get("stages") or [{"stage": "retrieve", **plain}])]
    if search.route:
        stages.append({**plain, **search.route})
    last = {**stages[-1], "rank": rank, "weight": search.weight, "branch": branch, **extra_fields}
    if search.role is not None:
        last.update(query=search.query, role=search.role)
    return [*stages[:-1], last]
