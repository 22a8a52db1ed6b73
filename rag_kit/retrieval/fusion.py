"""Fuse the ranked lists of several searches, with every search in the provenance.

Paper: Cormack et al.: Reciprocal Rank Fusion outperforms Condorcet and individual rank learning methods, SIGIR 2009.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeVar

from rag_kit.concurrency.notes import write_note
from rag_kit.documents import add_note, document_keys, with_provenance
from rag_kit.documents.identity import ORIGINAL_ID_KEY
from rag_kit.documents.provenance import PROVENANCE_KEY, peek_provenance, peek_score
from rag_kit.errors import InvalidInputError

if TYPE_CHECKING:
    from langchain_core.documents import Document
    from langchain_core.runnables import Runnable

    from rag_kit.retrieval.convex import Standardised

K = TypeVar("K", bound=Hashable)
FUSIONS = ("rrf", "convex")
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
            for key, position in first_positions(keys).items():
                scores[key] = score_of(key, 0.0) + shares[position]
    return ordered(scores)


def check_weights(weights: Sequence[float] | None, count: int) -> list[float]:
    """Return the weights of a fusion as floats: one a list, >= 0, at least one above 0; ``None``: 1 each."""
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
    """Refuse an unknown fusion, and a ``k`` of reciprocal rank fusion that is no positive number."""
    if name not in FUSIONS:
        raise InvalidInputError(f"fusion={name!r} was given; allowed: {', '.join(map(repr, FUSIONS))}.")
    if rrf_k < 0:
        raise InvalidInputError(f"rrf_k={rrf_k!r} was given; it must be >= 0 (60 is usual).")


def first_positions(keys: Sequence[K]) -> dict[K, int]:
    """Map each key of a list to its first position, from 0, in that order."""
    positions = dict(zip(keys, range(len(keys)), strict=True))
    if len(positions) == len(keys):
        return positions
    positions.clear()
    for position, key in enumerate(keys):
        positions.setdefault(key, position)
    return positions


def ordered(scores: dict[K, float]) -> list[tuple[K, float]]:
    """Sort items by falling score; scores that differ by rounding only keep the order of the mapping."""
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


@dataclass(frozen=True)
class Search:
    """A text to search for, and the documents found, best first.

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
class Fused:
    """A fused ranking: ``(key, score)`` pairs, best first; with z-scores and shares of the lists for ``"convex"``."""

    ranking: list[tuple[str, float]]
    tables: Sequence[Standardised] = ()
    shares: Sequence[float] = ()
    notes: Sequence[str] = ()

    def details(self, number: int, key: str) -> dict[str, float]:
        """Return the weight of list ``number``, and the normalised score that a key has there."""
        if not self.tables:
            return {}
        return {"weight": self.shares[number], "normalised": self.tables[number].values[key]}


def fuse(
    searches: Sequence[Search],
    keys: Sequence[Sequence[str]],
    fusion: str = "rrf",
    *,
    rrf_k: float = 60,
    depth: int | None = None,
    tables: Sequence[Standardised] = (),
) -> Fused:
    """Fuse the lists of several searches, whose documents have these keys.

    ``"rrf"`` looks at ranks alone. ``"convex"`` is the weighted mean of z-scores; a list of a retriever that states the
    highest score possible (keyword search) is filled up with zeros to ``depth``, the number of documents asked for.
    ``tables`` are the z-scores of the first lists, where they were fused before.
    """
    if fusion == "rrf":
        weights = [search.weight for search in searches]
        return Fused(reciprocal_rank_fusion(keys, weights=weights, k=rrf_k))
    from rag_kit.retrieval.convex import standardise, weighted_mean

    tables = [*tables]
    for search, list_keys in list(zip(searches, keys, strict=True))[len(tables) :]:
        first = first_positions(list_keys)
        scores = [_score_of(search.documents[position]) for position in first.values()]
        made = standardise(scores, depth if _states_maximum(search.documents) else None)
        tables.append(made._replace(values=dict(zip(first, made.values, strict=True))))
    pairs = [*zip(searches, tables, strict=True)]
    total = sum(search.weight for search in searches)
    return Fused(
        ordered(weighted_mean([(table.values, table.absent, search.weight) for search, table in pairs])),
        tables,
        [search.weight / total for search in searches],
        [f"{search.name}: {table.note}" for search, table in pairs if table.note],
    )


def _score_of(doc: Document) -> float | None:
    """Return a document's score as ``peek_score`` does, faster: a fusion reads hundreds a query."""
    record = doc.metadata.get(PROVENANCE_KEY)
    score = record.get("score") if type(record) is dict else None
    return score if type(score) is float else peek_score(doc)


def _states_maximum(documents: Sequence[Document]) -> bool:
    """Tell whether a retriever states the highest possible score, and so gives 0 to what it does not find."""
    stages = peek_provenance(documents[0]).get("stages", []) if documents else []
    return bool(stages and stages[-1].get("max_score"))


def merge(
    searches: Sequence[Search],
    call: Any,
    *,
    depth: int | None = None,
    alone: str | None = None,
    first_role: str = "",
    extra: Mapping[str, Any] | None = None,
) -> list[Document]:
    """Join the results of several searches into one list of documents, with all stages in the provenance.

    Args:
        searches: The searches with what they found.
        call: The ``Call`` of the retriever, whose ``fusion``, ``rrf_k`` and ``id_key`` hold. Documents of different
            retrievers that share an id and not the text are different documents.
        depth: That of ``fuse``.
        alone: Stage of a search that is the only one: it keeps its order and scores. ``None``: it is fused as well.
        first_role: The best document of each search of this role comes first, in turn.
        extra: Fields for the last stage of each document.
    """
    owner = call.owner
    keys, notes = identify(searches, owner.id_key)
    notes += [nothing_found(search) for search in searches if not search.documents]
    for note in notes:
        write_note(note)
    positions = [first_positions(list_keys) for list_keys in keys]
    if len(searches) == 1 and alone is not None:
        documents = searches[0].documents
        ranking = [(key, peek_score(documents[position])) for key, position in positions[0].items()]
        return join_documents(searches, positions, ranking[: call.k], call, alone, notes, extra)
    fused = fuse(searches, keys, owner.fusion, rrf_k=owner.rrf_k, depth=depth)
    best = _put_first(searches, positions, fused.ranking, first_role)[: call.k]
    stage = f"fusion:{owner.fusion}"
    return join_documents(searches, positions, best, call, stage, [*notes, *fused.notes], extra, fused=fused)


def identify(searches: Sequence[Search], id_key: str | None) -> tuple[list[list[str]], list[str]]:
    """Return the keys of each search's documents, and notes on ids that stand for several texts.

    Stores number their documents apart from each other: one id of two retrievers, or twice in one list, may mean two
    texts. Several searches of one retriever are not told apart, since it may cut its documents by the query.
    """
    keys = document_keys([search.documents for search in searches], id_key)
    if id_key is not None:
        return keys, []
    texts: dict[str, dict[str, int]] = {}  # key -> text -> the retriever that has it
    split = set()
    for list_keys, search in zip(keys, searches, strict=True):
        of_list: dict[str, str] = {}
        for key, doc in zip(list_keys, search.documents, strict=True):
            if ORIGINAL_ID_KEY in doc.metadata:  # a shortened text is that of its id
                continue
            text, origins = doc.page_content, texts.setdefault(key, {})
            origins.setdefault(text, id(search.retriever))
            if of_list.setdefault(key, text) != text or len({*origins.values()}) > 1:
                split.add(key)
    if not split:
        return keys, []
    numbers = {key: {text: number for number, text in enumerate(texts[key])} for key in split}
    renamed = [
        [
            f"{key}\0{numbers[key].get(doc.page_content, 0)}" if key in split else key
            for key, doc in zip(list_keys, search.documents, strict=True)
        ]
        for list_keys, search in zip(keys, searches, strict=True)
    ]
    example = min(split)[:60]
    count = f"{len(split)} ids, such as {example!r}, mean" if len(split) > 1 else f"id {example!r} means"
    return renamed, [f"{count} different texts in different stores: they are kept apart"]


def _put_first(
    searches: Sequence[Search],
    positions: Sequence[Mapping[str, int]],
    ranking: list[tuple[str, float]],
    role: str,
) -> list[tuple[str, float]]:
    """Move the best document of each search with a role to the top, in turn; the rest keeps its order."""
    keys_of_role = [
        list(keys) for search, keys in zip(searches, positions, strict=True) if role and search.role == role
    ]
    best_keys = dict.fromkeys(keys[0] for keys in keys_of_role if keys)
    scores = dict(ranking)
    return [(key, scores[key]) for key in best_keys] + [pair for pair in ranking if pair[0] not in best_keys]


def nothing_found(search: Search) -> str:
    """Make a note for a search without results."""
    if search.role is None and not search.route:
        return f"{search.name} found nothing"
    query = " ".join(search.query.split())
    where = f" in {search.route['source']!r}" if search.route else ""
    return f"nothing found for {query if len(query) <= 80 else query[:79] + '…'!r}{where}"


def join_documents(
    searches: Sequence[Search],
    positions: Sequence[Mapping[str, int]],
    ranking: Iterable[tuple[str, float | None]],
    call: Any,
    stage: str,
    notes: Sequence[str] = (),
    more: Mapping[str, Any] | None = None,
    *,
    fused: Fused | None = None,
    stored: Mapping[str, Document] | None = None,
) -> list[Document]:
    """Make one document for each key of a ranking, with the stages of all copies that several searches found.

    ``positions`` map keys to documents in each search; ``stage``, ``notes`` and ``more`` describe the last
    stage; ``stored`` has text and metadata of the keys where the searches gave scores alone (others are left out).
    """
    results = []
    fields = {"stage": stage, "retriever": call.owner.get_name(), "query": call.query, **(more or {})}
    common_notes = [*call.notes, *notes]
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
            extra = {} if fused is None else fused.details(number, key)
            stages += _stages(record, search, position + 1, search.branch or number + 1, extra)
            inner += record.get("notes", ())
        document = first if stored is None else stored.get(key)
        if document is not None:
            fields |= {"sources": stages, "notes": [*common_notes, *inner]}
            results.append(with_provenance(document, score=score, rank=rank, **fields))
    times = Counter(doc.page_content for doc in results)
    # the ids may be meant: which field tells documents apart is the user's to say
    note = "same text under {} ids; in Python id_key= makes them one"
    return [add_note(doc, note.format(n)) if (n := times[doc.page_content]) > 1 else doc for doc in results]


def _stages(
    record: Mapping[str, Any], search: Search, rank: int, branch: int, extra_fields: Mapping[str, Any]
) -> list[Mapping[str, Any]]:
    """Return a copy's stages; the last one, which is fused, gets rank, weight and the query sent."""
    plain = {"retriever": search.name, "query": search.query, "rank": rank, "score": record.get("score")}
    stages = [*(record.get("stages") or [{"stage": "retrieve", **plain}])]
    if search.route:
        stages.append({**plain, **search.route})
    last = {**stages[-1], "rank": rank, "weight": search.weight, "branch": branch, **extra_fields}
    if search.role is not None:
        last.update(query=search.query, role=search.role)
    return [*stages[:-1], last]
