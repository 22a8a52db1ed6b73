"""BM25 over packed postings in PostgreSQL: the scores of all documents, and the best of them that pass a filter.

A row of the table of postings holds the postings of one term in the documents of one block, which is a range of row
numbers. A posting is one number of 64 bits: position of the document in the block, count of the term, length of the
document. So a search reads nothing but the rows of its terms, and the number of postings is the frequency of the term.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from langchain_core.documents import Document
from numpy.typing import NDArray
from psycopg import Connection

from rag_kit.documents import Filter
from rag_kit.errors import IndexFormatError
from rag_kit.indexing.bm25.parameters import DEFAULT_B, DEFAULT_K1
from rag_kit.indexing.bm25.postings import Postings, inverse_frequencies
from rag_kit.indexing.bm25.spelling import MAX_TEXTS, correct_spelling
from rag_kit.indexing.bm25.term_graph import MAX_DF, TermGraph
from rag_kit.indexing.bm25.view import Terms, check_k
from rag_kit.indexing.document_index.rows import read_documents
from rag_kit.indexing.document_index.state import NO_GENERATION, IndexState
from rag_kit.indexing.document_index.vectors import TIE, Numbers
from rag_kit.indexing.document_index.views import TIES, KeywordView, Scored
from rag_kit.indexing.postgres.connection import PostgresConnection, filter_rows
from rag_kit.indexing.searched import passage_filter
from rag_kit.text.analysis import TERMS_VERSION

Scores = NDArray[np.float32]
BLOCK = 8192  # row numbers of a block; a change writes all postings of a term in it again
BYTES = 8  # of a posting
COUNT_BITS, LENGTH_BITS = 24, 26  # with the 13 of a position below 2**63: numpy's int64 holds all
POSITION_SHIFT = COUNT_BITS + LENGTH_BITS
MAX_COUNT, MAX_LENGTH = (1 << COUNT_BITS) - 1, (1 << LENGTH_BITS) - 1

_FILTERED_FACTOR = 8  # so many times as many hits are looked at where a filter may leave some out


class TermPostings(NamedTuple):
    """The postings of one term, each of shape (postings,)."""

    numbers: Numbers  # row numbers of the documents
    counts: Numbers  # how often the term occurs in each
    lengths: Numbers  # how many terms each has in all


class Counts(NamedTuple):
    """Totals over the documents of a tenant, which BM25 needs."""

    documents: int = 0
    tokens: int = 0  # terms of all, repeats counted
    generation: int = NO_GENERATION  # of the store, that the postings are up to date with


def check_version(state: IndexState) -> None:
    """Raise IndexFormatError where the postings hold the terms of an older rag_kit."""
    if state.terms != TERMS_VERSION:
        raise IndexFormatError(
            "The keyword index in the database is of another rag_kit, which made other terms of a text: it has version "
            f"{state.terms}, and this rag_kit reads {TERMS_VERSION}. Make it again of the stored texts: rag-kit repair "
            "--index URL."
        )


class TermTables:
    """The tables of a leg over terms, keyword or trigram, as the tenant of an open transaction sees them."""

    def __init__(self, connection: PostgresConnection, leg: str) -> None:
        self.native, self.leg = connection.native, leg
        self._read: dict[str, TermPostings] = connection.postings.setdefault(leg, {})

    def counts(self) -> Counts:
        """Return the tenant's totals."""
        query = f"SELECT documents, tokens, generation FROM {self.leg}_counts"
        row = self.native.execute(query).fetchone()
        return Counts(*row) if row else Counts()

    def postings(self, terms: Iterable[str]) -> dict[str, TermPostings]:
        """Return the postings of the terms that occur in the tenant's documents, each read once in a transaction."""
        wanted = list(terms)
        if unread := [term for term in wanted if term not in self._read]:
            query = f"SELECT term, block, packed FROM {self.leg}_postings WHERE term = ANY(%b::text[])"
            rows: dict[str, list[tuple[int, bytes]]] = defaultdict(list)
            for term, block, packed in self.native.execute(query, (unread,), binary=True):
                rows[term].append((block, packed))
            self._read.update((term, unpack(rows[term])) for term in unread)
        return {term: self._read[term] for term in wanted if len(self._read[term].counts)}

    def frequencies(self, terms: Iterable[str]) -> dict[str, int]:
        """Return the number of the tenant's documents with each term, without terms that are in none."""
        query = (
            f"SELECT term, sum(octet_length(packed)) / {BYTES} FROM {self.leg}_postings "
            "WHERE term = ANY(%b::text[]) GROUP BY term"
        )
        return {term: int(count) for term, count in self.native.execute(query, (list(terms),))}

    def terms(self, numbers: Iterable[int]) -> dict[int, Counter[str]]:
        """Return the counts of terms of documents by their row numbers."""
        query = f"SELECT n, terms FROM {self.leg}_documents WHERE n = ANY(%b::bigint[])"
        counts: dict[int, Counter[str]] = {}
        for n, text in self.native.execute(query, (list(numbers),)):
            lines = [line.rpartition(" ") for line in text.split("\n") if line]  # a line is "pump 3"
            counts[n] = Counter({term: int(count) for term, _, count in lines})
        return counts


def unpack(rows: Sequence[tuple[int, bytes]]) -> TermPostings:
    """Unpack the postings of one term from its rows: pairs of a block's number and the packed postings in it."""
    postings = np.frombuffer(b"".join(packed for _, packed in rows), "<u8").astype(np.int64)
    sizes = [len(packed) // BYTES for _, packed in rows]  # postings in each row
    block_starts = np.repeat(np.array([block for block, _ in rows], np.int64) * BLOCK, sizes)
    # the bits of a posting, from the high ones: position in its block, count of the term, length of the document
    numbers, counts = block_starts + (postings >> POSITION_SHIFT), postings >> LENGTH_BITS & MAX_COUNT
    return TermPostings(numbers, counts, postings & MAX_LENGTH)


def score_all(tables: TermTables, weights: Terms) -> tuple[Numbers, Scores]:
    """Return row numbers and scores of all documents that score above zero, the same scores as ``BM25Index`` gives."""
    totals, postings = tables.counts(), tables.postings(weights)
    numbers = np.concatenate([np.zeros(0, np.int64), *(each.numbers for each in postings.values())])
    # only blocks with postings have scores: if these are 2 and 5, position p of block 5 has its at scores[BLOCK + p]
    used_blocks = np.flatnonzero(np.bincount(numbers // BLOCK))  # rising
    scores = np.zeros(len(used_blocks) * BLOCK, np.float32)
    for term, term_postings in postings.items():
        block, position = np.divmod(term_postings.numbers, BLOCK)
        added = _weights(term_postings, totals) * np.float32(weights[term])
        scores[np.searchsorted(used_blocks, block) * BLOCK + position] += added
    hits = np.flatnonzero(scores > 0)
    rank_of_block, position = np.divmod(hits, BLOCK)
    return used_blocks[rank_of_block] * BLOCK + position, scores[hits]


def _idf(frequency: int, totals: Counts) -> float:
    [idf] = inverse_frequencies(np.array([frequency]), totals.documents, "lucene")
    return float(idf)


def _weights(postings: TermPostings, totals: Counts) -> Scores:
    """Return what each posting of a term adds to its document's score."""
    mean = totals.tokens / totals.documents if totals.tokens else 1.0
    saturation = DEFAULT_K1 * (1 - DEFAULT_B + DEFAULT_B * postings.lengths / mean)
    counts = postings.counts.astype(np.float64)
    weights: Scores = (counts / (saturation + counts) * _idf(len(counts), totals)).astype(np.float32)
    return weights


def best_hits(
    native: Connection[Any], numbers: Numbers, scores: Scores, k: int, where: Filter | None
) -> list[tuple[str, float]]:
    """Return ids and scores of the k best documents that pass a filter, ties by id.

    The filter is tried on the best-scored documents first, and on four times as many if too few of those pass. So the
    cost grows with the number of documents that the filter rejects, not with the number of hits.
    """
    fetch = (k + TIES) * (_FILTERED_FACTOR if where else 1)
    is_tested, hits = np.zeros(len(scores), bool), list[tuple[str, float]]()
    while True:
        fetch_all = fetch >= len(scores)
        # positions of the best scores, in no order
        best = np.arange(len(scores)) if fetch_all else np.argpartition(scores, -fetch)[-fetch:]
        untested = best[~is_tested[best]]
        is_tested[untested] = True
        score_of = dict(zip(numbers[untested].tolist(), scores[untested].tolist(), strict=True))
        hits += [(key, score_of[n]) for n, key in filter_rows(native, list(score_of), where).items()]
        # scores are compared in steps of TIE: what differs by less is a tie, and goes by id
        hits.sort(key=lambda hit: (-round(hit[1] / TIE), hit[0]))
        # done if nothing is left, or what is left scores too low even for a tie with the k-th
        if fetch_all or (len(hits) >= k and scores[best].min() < hits[k - 1][1] - 3 * TIE):
            return hits[:k]
        fetch *= 4


class PostgresKeywordView(KeywordView):
    """A ``KeywordView`` of the tables of a tenant; each method reads the newest committed state."""

    def __init__(self, store: Any, leg: str, analyzer: Callable[[str], list[str]]) -> None:
        self._store, self._leg = store, leg
        self.analyzer, self.query_terms = analyzer, getattr(analyzer, "query_terms", analyzer)

    def __contains__(self, key: object) -> bool:
        with self._store.reading() as connection:
            return isinstance(key, str) and bool(read_documents(connection, [key]))

    def _search(self, query: str, k: int, filter: Filter | None, *, ids_only: bool) -> tuple[Scored, float]:
        """Search as in a folder; spelling, scores and their bound share a snapshot, and read each term once."""
        with self._store.reading():
            return super()._search(query, k, filter, ids_only=ids_only)

    def _passages(self, filter: Filter | None) -> Filter | None:
        """Restrict a filter to passages; raise an error if the postings are outdated, or the leg was removed."""
        state = self._store.state()
        check_version(state)
        self._store.check_leg(self._leg, state)
        return passage_filter(filter, state.derived)

    def _spell(self, query: str, weights: Mapping[str, float], where: Filter | None) -> Mapping[str, float]:
        """Return the weights with misspelt terms (in no document) replaced by terms of documents that pass a filter."""
        with self._store.reading() as connection:
            tables = TermTables(connection, self._leg)

            def find_known(terms: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
                """Yield the terms that passing documents have, most frequent first, each with texts of these."""
                frequencies = tables.frequencies(terms)
                for term in sorted(frequencies, key=lambda term: (-frequencies[term], term)):
                    numbers = tables.postings([term])[term].numbers.tolist()
                    passing = filter_rows(tables.native, numbers, where)
                    if keys := [passing[number] for number in sorted(passing)[:MAX_TEXTS]]:
                        found = read_documents(connection, keys)
                        yield term, [found[key].page_content for key in keys]

            return correct_spelling(
                query, weights, self.analyzer, tables.postings(weights).__contains__, find_known
            )

    def _best(self, terms: Terms, k: int, where: Filter | None, ids_only: bool) -> Scored:
        """Return the k best documents for terms, ties by id; with ``ids_only`` their ids."""
        with self._store.reading() as connection:
            numbers, scores = score_all(TermTables(connection, self._leg), terms)
            hits = best_hits(connection.native, numbers, scores, k, where)
            if ids_only:
                return hits
            documents = read_documents(connection, [key for key, _ in hits])
        return [(documents[key], score) for key, score in hits]

    def spread(
        self, seeds: Mapping[str, float], k: int, filter: Filter | None
    ) -> list[tuple[Document, float, list[str]]]:
        """Find documents that share rare terms with the seeds, by a random walk as in ``BM25Index.spread``.

        Only what two rounds of the walk reach is read: documents that share a term with a seed, or with one of these.
        """
        k = check_k(k)
        with self._store.reading() as connection:
            where = self._passages(filter)
            native, tables = connection.native, TermTables(connection, self._leg)
            query = "SELECT n FROM chunks WHERE id = ANY(%b::text[])"
            id_of = filter_rows(native, [n for (n,) in native.execute(query, (list(seeds),))], where)
            seed_numbers = np.array(list(id_of), np.int64)
            for _ in range(2):  # rounds of the walk, which goes on from the documents that pass
                numbers_of_term = _documents_of_terms(tables, list(id_of))
                reached = np.unique(np.concatenate([seed_numbers, *numbers_of_term.values()]))
                id_of = filter_rows(native, reached.tolist(), where)
            size = tables.counts().documents  # the rarity of a term is by all documents, not only those read
            graph = TermGraph(_postings_of(numbers_of_term, reached), size, list(numbers_of_term))
            # the graph numbers documents by their position in ``reached``; here by id, without those that do not pass
            position_of = {id_of[n]: position for position, n in enumerate(reached.tolist()) if n in id_of}
            allowed = np.zeros(size, bool)
            allowed[list(position_of.values())] = True
            seed_weights = {position_of[key]: seeds[key] for key in seeds if key in position_of}
            visits = graph.visits(seed_weights, k, allowed)
            ids = [id_of[int(reached[visit.document])] for visit in visits]
            documents = read_documents(connection, ids)
        return [(documents[key], visit.mass, visit.terms) for key, visit in zip(ids, visits, strict=True)]

    def _maximum(self, terms: Terms) -> float:
        """Return a number that no score for weighted terms exceeds; unknown terms count as rarest."""
        with self._store.reading() as connection:
            tables = TermTables(connection, self._leg)
            totals, postings = tables.counts(), tables.postings(terms)
        frequencies = {term: len(term_postings.counts) for term, term_postings in postings.items()}
        return sum(weight * _idf(frequencies.get(term, 0), totals) for term, weight in terms.items())


def _postings_of(numbers_of_term: Mapping[str, Numbers], numbers: Numbers) -> Postings:
    """Make postings from row numbers by term; in them, a document is the position of its row number in ``numbers``."""
    joined = np.concatenate([numbers[:0], *numbers_of_term.values()])  # the first for no terms at all
    pointers = np.cumsum([0, *map(len, numbers_of_term.values())])  # where each term's postings begin
    documents = np.searchsorted(numbers, joined).astype(np.int32)  # 40 and 70 of [40, 55, 70] are 0 and 2
    return Postings(pointers, documents, np.ones(len(joined), np.uint16))


def _documents_of_terms(tables: TermTables, numbers: Sequence[int]) -> dict[str, Numbers]:
    """Return the row numbers of the documents with each term of some documents that 2 to `MAX_DF` documents have."""
    terms = set().union(*tables.terms(numbers).values())
    frequencies = tables.frequencies(terms)
    shared = sorted(term for term, count in frequencies.items() if 1 < count <= MAX_DF)
    postings = tables.postings(shared)
    return {term: postings[term].numbers for term in shared}
