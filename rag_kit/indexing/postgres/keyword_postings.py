"""Postings of a keyword index in PostgreSQL: packed, changed and read a term and a block of documents at a time.

A row of ``keyword_postings`` holds the postings of one term in the documents of one block. A posting is one number of
64 bits: place of the document in the block, count of the term, length of the document. So a search reads nothing but
the rows of its terms, and the number of postings is the frequency of the term.
"""

from __future__ import annotations

import struct
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from psycopg import Connection

BLOCK = 8192  # documents whose postings of a term stand in one row; a change writes such rows again
BYTES = 8  # of a posting
_COUNT_BITS, _LENGTH_BITS = 24, 26  # with 13 of a place below 2**63: numpy's int64 holds all
_PLACE = _COUNT_BITS + _LENGTH_BITS
_MOST_COUNT, _MOST_LENGTH = (1 << _COUNT_BITS) - 1, (1 << _LENGTH_BITS) - 1

Key = tuple[str, int]  # a term and a block


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
