"""BM25 over packed postings in PostgreSQL: the scores of all documents, and the best of them that pass a filter.

A row of ``keyword_postings`` holds the postings of one term in the documents of one block. A posting is one number of
64 bits: place of the document in the block, count of the term, length of the document. So a search reads nothing but
the rows of its terms, and the number of postings is the frequency of the term.
"""

from __future__ import annotations

import struct
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rag_kit.documents import Filter
from rag_kit.indexing.bm25.parameters import DEFAULT_B, DEFAULT_K1
from rag_kit.indexing.bm25.scoring import inverse_frequencies
from rag_kit.indexing.bm25.view import Query
from rag_kit.indexing.document_index.vectors import TIE
from rag_kit.indexing.postgres.filters import where_sql

if TYPE_CHECKING:
    from psycopg import Connection

Scores = NDArray[np.float32]

BLOCK = 8192  # documents whose postings of a term stand in one row; a change writes such rows again
BYTES = 8  # of a posting
_COUNT_BITS, _LENGTH_BITS = 24, 26  # with 13 of a place below 2**63: numpy's int64 holds all
_PLACE = _COUNT_BITS + _LENGTH_BITS
_MOST_COUNT, _MOST_LENGTH = (1 << _COUNT_BITS) - 1, (1 << _LENGTH_BITS) - 1

Key = tuple[str, int]  # a term and a block
_TIES = 20  # further hits to look at, so that equal scores are ordered by id
_FILTERED = 8  # times as many where a filter may leave some out


class Postings(NamedTuple):
    """The postings of one term, each of shape (postings,).

    Attributes:
        slots: Numbers of the documents.
        counts: How often the term occurs in each.
        lengths: How many terms each has in all.
    """

    slots: NDArray[np.int64]
    counts: NDArray[np.int64]
    lengths: NDArray[np.int64]


class Changes:
    """Postings to take out and to put in, gathered by row.

    Example:
        >>> changes = Changes()
        >>> changes.put(8193, Counter(["car", "car"]))
        >>> [(key, unpacked([(key[1], pack(found))]).slots.tolist()) for key, found in changes.added.items()]
        [(('car', 1), [8193])]
    """

    def __init__(self) -> None:
        self.added: dict[Key, list[int]] = defaultdict(list)
        self.dropped: dict[Key, list[int]] = defaultdict(list)

    def put(self, slot: int, terms: Counter[str]) -> None:
        """Add the postings of a document."""
        block, place = divmod(slot, BLOCK)
        rest = place << _PLACE | min(terms.total(), _MOST_LENGTH)
        for term, count in terms.items():
            self.added[term, block].append(rest | min(count, _MOST_COUNT) << _LENGTH_BITS)

    def take(self, slot: int, terms: Iterable[str]) -> None:
        """Remove the postings of a document."""
        block, place = divmod(slot, BLOCK)
        for term in terms:
            self.dropped[term, block].append(place)

    def write(self, native: Connection[Any]) -> None:
        """Write them in the open transaction: what is removed first, then what is added."""
        added = {key: pack(values) for key, values in self.added.items()}
        query = (
            "DELETE FROM keyword_postings p USING unnest(%b::text[], %b::int[]) AS k (term, block) "
            "WHERE p.term = k.term AND p.block = k.block RETURNING p.term, p.block, p.packed"
        )
        keys = [list(column) for column in zip(*self.dropped, strict=True)]
        for term, block, packed in native.execute(query, keys, binary=True) if keys else ():
            values = np.frombuffer(packed, "<u8")
            gone = np.isin(values >> _PLACE, self.dropped[term, block])
            added[term, block] = values[~gone].tobytes() + added.get((term, block), b"")
        rows = [(*key, packed) for key, packed in added.items() if packed]
        query = (
            "INSERT INTO keyword_postings AS p (term, block, packed) "
            "SELECT * FROM unnest(%b::text[], %b::int[], %b::bytea[]) "
            "ON CONFLICT (tenant, term, block) DO UPDATE SET packed = p.packed || excluded.packed"
        )
        if rows:
            native.execute(query, [list(column) for column in zip(*rows, strict=True)])


def pack(values: Sequence[int]) -> bytes:
    """Postings as bytes."""
    return struct.pack(f"<{len(values)}Q", *values)


def unpacked(rows: Sequence[tuple[int, bytes]]) -> Postings:
    """The postings of one term, of its blocks and their bytes."""
    values = np.frombuffer(b"".join(packed for _, packed in rows), "<u8").astype(np.int64)
    sizes = [len(packed) // BYTES for _, packed in rows]
    slots = (values >> _PLACE) + np.repeat(np.array([block for block, _ in rows], np.int64) * BLOCK, sizes)
    return Postings(slots, values >> _LENGTH_BITS & _MOST_COUNT, values & _MOST_LENGTH)


def postings(native: Connection[Any], terms: Iterable[str]) -> Iterator[tuple[str, Postings]]:
    """The postings of those terms that occur in the tenant's documents."""
    query = "SELECT term, block, packed FROM keyword_postings WHERE term = ANY(%b::text[])"
    found: dict[str, list[tuple[int, bytes]]] = defaultdict(list)
    for term, block, packed in native.execute(query, (list(terms),), binary=True):
        found[term].append((block, packed))
    return ((term, unpacked(rows)) for term, rows in found.items())


def frequencies(native: Connection[Any], terms: Iterable[str]) -> dict[str, int]:
    """In how many of the tenant's documents each term occurs; those in none are left out."""
    query = (
        f"SELECT term, sum(octet_length(packed)) / {BYTES} FROM keyword_postings "
        "WHERE term = ANY(%b::text[]) GROUP BY term"
    )
    return {term: int(count) for term, count in native.execute(query, (list(terms),))}


class Counts(NamedTuple):
    """Totals over the documents of a tenant, which BM25 needs.

    Each document has a slot: its place in the array of scores. A slot that a removed document leaves is used again.

    Attributes:
        documents: How many there are.
        tokens: How many terms they have together, repeats counted.
        slots: How many slots there are, free ones too.
        generation: The generation of the store that the postings are up to date with; -1 before the first.
    """

    documents: int = 0
    tokens: int = 0
    slots: int = 0
    generation: int = -1


def counts(native: Connection[Any]) -> Counts:
    """The tenant's counts."""
    found = native.execute("SELECT documents, tokens, slots, generation FROM keyword_counts").fetchone()
    return Counts(*found) if found else Counts()


def scores(native: Connection[Any], terms: Query) -> Scores:
    """The score of each slot, 0 in a free one; to the last bit what a ``BM25Index`` of the documents gives."""
    total = counts(native)
    table = np.zeros(total.slots, np.float32)
    found = {term: (its.slots, _weights(its, total)) for term, its in postings(native, dict.fromkeys(terms))}
    for term, weight in _weighted(terms).items():
        if term in found:
            slots, part = found[term]
            table[slots] += part * np.float32(weight)
    return table


def maximum(native: Connection[Any], terms: Query) -> float:
    """The score that a document nears as each of the terms fills it; unknown terms count as rarest."""
    total, found = counts(native), frequencies(native, dict.fromkeys(terms))
    if not total.documents:
        return 0.0
    idf = {term: _idf(found.get(term, 0), total) for term in terms}
    return float(sum(weight * idf[term] for term, weight in _weighted(terms).items()))


def _weighted(terms: Query) -> Mapping[str, float]:
    return terms if isinstance(terms, Mapping) else Counter(terms)


def _idf(frequency: int, total: Counts) -> float:
    [idf] = inverse_frequencies(np.array([frequency]), total.documents, "lucene")
    return float(idf)


def _weights(found: Postings, total: Counts) -> Scores:
    """What each posting of a term adds to the score of its document."""
    mean = total.tokens / total.documents if total.tokens else 1.0
    saturation = DEFAULT_K1 * (1 - DEFAULT_B + DEFAULT_B * found.lengths / mean)
    count = found.counts.astype(np.float64)
    weights: Scores = (count / (saturation + count) * _idf(len(found.slots), total)).astype(np.float32)
    return weights


def best(
    native: Connection[Any], table: Scores, k: int, where: Filter | None
) -> list[tuple[str, int, float]]:
    """Ids, slots and scores of the k best documents above zero that pass a filter, ties by id.

    The best-scored documents are filtered first, and four times as many where too few of them pass. So the cost
    grows with what the filter rejects, not with the number of hits.
    """
    hits = np.flatnonzero(table > 0)
    fetch = (k + _TIES) * (_FILTERED if where else 1)
    tested, found = hits[:0], list[tuple[str, int]]()
    while True:
        top, lowest = hits, 0.0
        if fetch < len(hits):
            top = hits[np.argpartition(table[hits], len(hits) - fetch)[-fetch:]]
            lowest = float(table[top].min())
        found += passing(native, np.setdiff1d(top, tested).tolist(), where)
        tested = np.union1d(tested, top)
        # scores are compared in steps of TIE: what differs by less is a tie, and goes by id
        steps = np.rint(table[[slot for _, slot in found]].astype(np.float64) / TIE).tolist()
        ranked = sorted((-step, key, slot) for step, (key, slot) in zip(steps, found, strict=True))[:k]
        # done if nothing is left, or what is left scores too low even for a tie with the k-th
        if len(top) == len(hits) or (len(ranked) == k and lowest < -ranked[-1][0] * TIE - 2 * TIE):
            return [(key, slot, float(table[slot])) for _, key, slot in ranked]
        fetch *= 4


def passing(native: Connection[Any], slots: Sequence[int], where: Filter | None) -> list[tuple[str, int]]:
    """Ids and slots of those documents that pass a filter, in any order."""
    condition, values = where_sql(where)
    query = "SELECT c.id, d.slot FROM keyword_documents d JOIN chunks c ON c.n = d.n WHERE d.slot = ANY(%b::int[])"
    return native.execute(f"{query} AND {condition}", (list(slots), *values)).fetchall()


def counted_terms(native: Connection[Any], slots: Sequence[int]) -> dict[int, Counter[str]]:
    """How often each term occurs in some documents."""
    query = "SELECT slot, terms FROM keyword_documents WHERE slot = ANY(%b::int[])"
    return {slot: count_of(terms) for slot, terms in native.execute(query, (list(slots),))}


def lines_of(terms: Mapping[str, int]) -> str:
    """Terms and their counts as they stand in ``keyword_documents``.

    Example:
        >>> lines_of({"dog": 1, "cat": 2})
        'cat 2\\ndog 1'
    """
    return "\n".join(f"{term} {count}" for term, count in sorted(terms.items()))


def count_of(lines: str) -> Counter[str]:
    """What ``lines_of`` has written."""
    pairs = (line.rpartition(" ") for line in lines.split("\n") if line)
    return Counter({term: int(count) for term, _, count in pairs})
