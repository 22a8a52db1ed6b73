"""Fuse the ranked lists of several searches, with every search in the provenance.

Paper: Cormack et al.: Reciprocal Rank Fusion outperforms Condorcet and individual rank learning methods, SIGIR 2009.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeVar

from rag_kit.concurrency.notes import write_note
from rag_kit.documents.identity import ORIGINAL_ID_KEY, document_keys
from rag_kit.documents.provenance import (
    PROVENANCE_KEY,
    add_note,
    first_record,
    peek_provenance,
    peek_score,
    with_provenance,
)
from rag_kit.errors import InvalidInputError

if TYPE_CHECKING:
    from langchain_core.documents import Document
    from langchain_core.runnables import Runnable

    from rag_kit.retrieval.convex import Standardised

K = TypeVar("K", bound=Hashable)
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
    shares_of: dict[float, list[float]] = {}  # weight -> what each rank adds to a score; made once a weight
    scores: dict[K, float] = {}
    score_of = scores.get
    for ranking, weight in zip(rankings, check_weights(weights, len(rankings)), strict=True):
        if weight == 0:
            continue
        keys = ranking if isinstance(ranking, (list, tuple)) else list(ranking)
        shares = shares_of.get(weight, [])
        if len(shares) < len(keys):
            shares = shares_of[weight] = [weight / (k + rank) for rank in range(1, len(keys) + 1)]
        try:
            is_distinct = len(set(keys)) == len(keys)
        except TypeError:
            raise InvalidInputError(
                f"rankings hold {type(keys[0]).__name__}; give keys, such as ids (rag_kit.documents.document_keys)."
            ) from None
        if is_distinct:  # nearly always, and then a loop over keys and shares is quickest
            for key, share in zip(keys, shares, strict=False):
                scores[key] = score_of(key, 0.0) + share
        else:
            for key, position in first_positions(keys).items():
                scores[key] = score_of(key, 0.0) + shares[position]
    return sort_by_score(scores)


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


def first_positions(keys: Sequence[K]) -> dict[K, int]:
    """Map each key of a list to its first position, from 0, in the order of the list."""
    positions = dict(zip(keys, range(len(keys)), strict=True))  # the quick way, right if no key is repeated
    if len(positions) < len(keys):  # a repeated key has its last position there
        positions = {}
        for position, key in enumerate(keys):
            positions.setdefault(key, position)
    return positions


def sort_by_score(scores: dict[K, float]) -> list[tuple[K, float]]:
    """Sort items by falling score; items whose scores differ by rounding alone keep the order of the mapping."""
    pairs = sorted(scores.items(), key=itemgetter(1), reverse=True)
    previous = math.inf
    for _, score in pairs:  # a loop, which is quicker than `any`: this is most of a fusion's time
        if 0 < previous - score < _TIE:
            break
        previous = score
    else:  # no two scores differ by rounding alone, and `sorted` has kept the order of equal ones
        return pairs
    positions = {key: position for position, key in enumerate(scores)}
    groups: list[list[tuple[K, float]]] = []  # in each, a score ties with the one before it
    for key, score in pairs:
        if not groups or previous - score >= _TIE:
            groups.append([])
        groups[-1].append((key, score))
        previous = score
    return [pair for group in groups for pair in sorted(group, key=lambda pair: positions[pair[0]])]


class RankedIds(Sequence["Document"]):
    """Ids and scores that one search found, best first, read as the documents with these ids.

    A fusion looks at hundreds of ids and scores and returns few documents. So a document is made where it is asked for,
    each time anew: with its provenance, without text and other metadata; ``ids`` and ``scores`` are there as lists.

    Args:
        hits: Ids and scores, best first; each id once.
        stage: What the first stage of the documents' provenance holds beside rank and score.

    Example:
        >>> found = RankedIds([("a", 2.0), ("b", 1.0)], {"stage": "bm25"})
        >>> found.ids, found[1].id, len(found[:1])
        (['a', 'b'], 'b', 1)
    """

    def __init__(self, hits: Iterable[tuple[str, float]], stage: Mapping[str, Any]) -> None:
        hits, self._stage = list(hits), stage
        self.ids, self.scores = [key for key, _ in hits], [score for _, score in hits]

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, index: Any) -> Any:
        from langchain_core.documents import Document

        if isinstance(index, slice):
            return [self[position] for position in range(len(self))[index]]
        key, record = self.ids[index], self.record(index % len(self))
        return Document(id=key, page_content="", metadata={PROVENANCE_KEY: record})

    def record(self, position: int) -> dict[str, Any]:
        """Return the provenance of the document at a position."""
        return first_record(self._stage, position + 1, self.scores[position])


@dataclass(frozen=True)
class Search:
    """A search, before and after it is made."""

    query: str  # the text to search for
    role: str | None  # kind of text ("original", "variant", "passage"...); None for the question as it is
    retriever: Runnable[str, list[Document]] | None = None  # searches in place of the inner retriever
    weight: float = 1.0  # of the list in the fusion
    documents: Sequence[Document] = ()  # those found, best first
    name: str = ""  # of the retriever that was asked
    branch: int = 0  # number of that retriever, from 1; 0 for the search's position among the others
    route: Mapping[str, Any] = field(default_factory=dict)  # provenance stage of the route that led here


@dataclass(frozen=True)
class Fused:
    """A fused ranking: ``(key, score)`` pairs, best first; with z-scores and weights of the lists for ``"convex"``."""

    ranking: Sequence[tuple[str, float | None]]
    positions: Sequence[Mapping[str, int]]  # of the keys among the documents, for each search
    z_scores: Sequence[Standardised] = ()
    weights: Sequence[float] = ()  # their sum is 1
    notes: Sequence[str] = ()


def fuse(
    searches: Sequence[Search],
    keys: Sequence[Sequence[str]],
    fusion: str = "rrf",
    *,
    rrf_k: float = 60,
    depth: int | None = None,
    before: Fused | None = None,
) -> Fused:
    """Fuse the lists of several searches into one ranking; ``keys`` has a list of keys for each search's documents.

    ``"rrf"`` uses ranks alone. ``"convex"`` is the weighted mean of z-scores; a list of keyword search (its provenance
    states the highest score possible) is filled up with zeros to ``depth``, the number of documents asked for.
    ``before`` is what came of the first searches, if these were fused before under the same keys.
    """
    weights = [search.weight for search in searches]
    positions = [*before.positions] if before else []
    positions += map(first_positions, keys[len(positions) :])
    if fusion == "rrf":
        return Fused(reciprocal_rank_fusion(keys, weights=weights, k=rrf_k), positions)
    from rag_kit.retrieval.convex import standardise, weighted_mean

    z_scores = [*before.z_scores] if before else []
    for search, positions_by_key in list(zip(searches, positions, strict=True))[len(z_scores) :]:
        scores = _scores_of(search.documents, positions_by_key.values())
        stages = _record_of(search.documents, 0).get("stages", []) if search.documents else []
        is_keyword_search = bool(stages and stages[-1].get("max_score"))  # all other documents score 0
        standardised = standardise(scores, depth if is_keyword_search else None)
        by_key = dict(zip(positions_by_key, standardised.values, strict=True))
        z_scores.append(standardised._replace(values=by_key))
    means = weighted_mean(z_scores, weights)
    notes = [f"{search.name}: {z.note}" for search, z in zip(searches, z_scores, strict=True) if z.note]
    shares = [weight / sum(weights) for weight in weights]
    return Fused(sort_by_score(means), positions, z_scores, shares, notes)


def _record_of(documents: Sequence[Document], position: int) -> Mapping[str, Any]:
    """Return the provenance of the document at a position; it is not a copy."""
    if isinstance(documents, RankedIds):  # without making the document
        return documents.record(position)
    return peek_provenance(documents[position])


def _scores_of(documents: Sequence[Document], positions: Iterable[int]) -> Sequence[float | None]:
    """Return the scores in the provenance of the documents at the first position of each key."""
    if isinstance(documents, RankedIds):  # each key once, so that these are all positions
        return documents.scores
    scores: list[float | None] = []
    for position in positions:
        record = documents[position].metadata.get(PROVENANCE_KEY)
        score = record.get("score") if type(record) is dict else None  # quicker than `peek_score`
        scores.append(score if type(score) is float else peek_score(documents[position]))
    return scores


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
        depth: The ``depth`` of ``fuse``.
        alone: Provenance stage of a single search, which keeps its order and scores. ``None``: it is fused as well.
        first_role: The best document of each search of this role comes first, in turn.
        extra: Fields for the last stage of each document.
    """
    owner = call.owner
    keys, notes = identify(searches, owner.id_key)
    notes += [note_empty(search) for search in searches if not search.documents]
    for note in notes:
        write_note(note)
    if len(searches) == 1 and alone is not None:
        documents, positions = searches[0].documents, first_positions(keys[0])
        ranking = [(key, peek_score(documents[position])) for key, position in positions.items()]
        return join_documents(searches, Fused(ranking, [positions]), call, alone, notes, extra)
    fused = fuse(searches, keys, owner.fusion, rrf_k=owner.rrf_k, depth=depth)
    if first_role:
        fused = replace(fused, ranking=_put_first(searches, fused, first_role))
    return join_documents(searches, fused, call, f"fusion:{owner.fusion}", notes, extra)


def identify(searches: Sequence[Search], id_key: str | None) -> tuple[list[list[str]], list[str]]:
    """Return the keys of each search's documents, and notes on ids that mean several texts.

    Stores number their documents independently: one id from two retrievers, or twice in one list, may mean two texts.
    Each text (without blanks around it) then gets a key of its own, made of the id and the text's number. The lists of
    several searches of one retriever are not compared, since it may shorten its documents to fit the query.
    """
    keys = document_keys([search.documents for search in searches], id_key)
    texts_of = {} if id_key is not None else _ambiguous_keys(keys, searches)
    if not texts_of:
        return keys, []
    for list_keys, search in zip(keys, searches, strict=True):
        for position, (key, doc) in enumerate(zip(list_keys, search.documents, strict=True)):
            if key in texts_of:
                texts, text = texts_of[key], doc.page_content.strip()
                text_number = texts.index(text) if text in texts else 0  # 0: a shortened copy
                list_keys[position] = f"{key}\0{text_number}"
    example = repr(min(texts_of)[:60])
    ids = f"{len(texts_of)} ids, such as {example}, mean" if len(texts_of) > 1 else f"id {example} means"
    return keys, [f"{ids} different texts in different stores: they are kept apart"]


def _ambiguous_keys(keys: Sequence[Sequence[str]], searches: Sequence[Search]) -> dict[str, list[str]]:
    """Return the keys that mean several texts in one list, or in lists of several retrievers, with these texts."""
    # key -> its texts -> the retriever (by `id`) that found each text first
    finders: dict[str, dict[str, int]] = {}
    ambiguous: set[str] = set()
    for list_keys, search in zip(keys, searches, strict=True):
        texts_here: dict[str, str] = {}  # key -> its first text in this list
        for key, doc in zip(list_keys, search.documents, strict=True):
            if ORIGINAL_ID_KEY in doc.metadata:  # a shortened copy: another text, but the same document
                continue
            text = doc.page_content.strip()
            finder_of = finders.setdefault(key, {})
            finder_of.setdefault(text, id(search.retriever))
            if texts_here.setdefault(key, text) != text or len(set(finder_of.values())) > 1:
                ambiguous.add(key)
    return {key: list(finders[key]) for key in ambiguous}


def _put_first(searches: Sequence[Search], fused: Fused, role: str) -> list[tuple[str, Any]]:
    """Move the best document of each search with a role to the top, in turn; the others keep their order."""
    best_keys: dict[str, None] = {}
    for search, positions in zip(searches, fused.positions, strict=True):
        if search.role == role and positions:
            best_keys[next(iter(positions))] = None  # the first key is the best document's
    scores = dict(fused.ranking)
    others = [pair for pair in fused.ranking if pair[0] not in best_keys]
    return [(key, scores[key]) for key in best_keys] + others


def note_empty(search: Search) -> str:
    """Return the note for a search without results, with its query if that is not the user's own."""
    if search.role is None and not search.route:
        return f"{search.name} found nothing"
    query = " ".join(search.query.split())
    if len(query) > 80:
        query = query[:79] + "…"
    source = f" in {search.route['source']!r}" if search.route else ""
    return f"nothing found for {query!r}{source}"


def join_documents(
    searches: Sequence[Search],
    fused: Fused,
    call: Any,
    stage: str,
    notes: Sequence[str] = (),
    extra: Mapping[str, Any] | None = None,
    *,
    stored: Mapping[str, Document] | None = None,
) -> list[Document]:
    """Make a document for each of the first ``call.k`` keys, with the stages of all copies that the searches found.

    Args:
        searches: The searches with what they found.
        fused: The ranking that was made of them.
        call: The ``Call`` of the retriever.
        stage: Name of the last stage of each document.
        notes: Notes for each document.
        extra: Fields for the last stage.
        stored: Documents by key, where the searches gave ids and scores alone; a key that it lacks is left out.
    """
    results = []
    ranking = fused.ranking[: call.k]
    if stored is not None:
        ranking = [pair for pair in ranking if pair[0] in stored]
    fields = {"stage": stage, "retriever": call.owner.get_name(), "query": call.query, **(extra or {})}
    common_notes = [*call.notes, *notes, *fused.notes]
    lists = list(zip(searches, fused.positions, strict=True))
    for rank, (key, score) in enumerate(ranking, start=1):
        stages: list[Mapping[str, Any]] = []
        inner_notes: list[str] = []
        for number, (search, positions) in enumerate(lists):
            if key not in positions:
                continue
            position = positions[key]
            record = _record_of(search.documents, position)
            details = {}
            if fused.z_scores:
                details = {"weight": fused.weights[number], "normalised": fused.z_scores[number].values[key]}
            stages += _stages(record, search, position + 1, search.branch or number + 1, details)
            inner_notes += record.get("notes", ())
        if stored is None:
            copies = [search.documents[positions[key]] for search, positions in lists if key in positions]
            document = next((copy for copy in copies if copy.id), copies[0])  # with an id, if one has an id
        else:
            document = stored[key]
        from_copies: dict[str, Any] = {"sources": stages, "notes": [*common_notes, *inner_notes]}
        results.append(with_provenance(document, score=score, rank=rank, **fields, **from_copies))
    counts = Counter(doc.page_content for doc in results)
    for number, doc in enumerate(results):
        # the ids may be meant: which field tells documents apart is the user's to say
        if (count := counts[doc.page_content]) > 1:
            note = f"same text under {count} ids; in Python id_key= makes them one"
            write_note(note)
            results[number] = add_note(doc, note)
    return results


def _stages(
    record: Mapping[str, Any], search: Search, rank: int, branch: int, details: Mapping[str, Any]
) -> list[Mapping[str, Any]]:
    """Return the provenance stages of one copy of a document, the last with rank, weight and role of the search.

    ``record`` is the copy's provenance. A foreign retriever writes none; then a stage "retrieve" is made.
    """
    fields = {"retriever": search.name, "query": search.query, "rank": rank, "score": record.get("score")}
    stages = [*(record.get("stages") or [{"stage": "retrieve", **fields}])]
    if search.route:
        stages.append({**fields, **search.route})
    stages[-1] = {**stages[-1], "rank": rank, "weight": search.weight, "branch": branch, **details}
    if search.role is not None:
        stages[-1].update(query=search.query, role=search.role)
    return stages
