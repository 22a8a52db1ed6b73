"""The legs over terms in PostgreSQL: BM25 by the kit's own analysis, written in the transaction of the chunks."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from psycopg import Connection

from rag_kit.errors import IndexFormatError
from rag_kit.indexing.document_index.state import IndexReport, IndexState, upsert_statement
from rag_kit.indexing.postgres import keyword_search as packing
from rag_kit.indexing.postgres.keyword_search import Counts, TermTables, check_version
from rag_kit.indexing.searched import searched_text
from rag_kit.text.analysis import TERMS_VERSION

_PAGE = 5000  # chunks that are analysed and written together
_DIFFERENCES = {
    "are missing": "SELECT id FROM chunks LEFT JOIN {leg}_documents d USING (tenant, n) WHERE d.n IS NULL",
    "should be gone": "SELECT n FROM {leg}_documents LEFT JOIN chunks c USING (tenant, n) WHERE c.n IS NULL",
}
# the last is 0 where each term of each document has a posting
_SUMS = f"""
SELECT count(n), coalesce(sum(length), 0)::bigint,
       coalesce(sum(array_length(string_to_array(terms, E'\\n'), 1)), 0)
       - (SELECT coalesce(sum(octet_length(packed)), 0) / {packing.BYTES} FROM {{leg}}_postings)
FROM {{leg}}_documents
"""


class PostgresKeywordLeg:
    """BM25 over the chunks of one tenant by the terms of an analyzer; names of its tables begin with ``label``."""

    def __init__(self, label: str, analyzer: Callable[[str], list[str]]) -> None:
        self.label, self.analyzer = label, analyzer

    def apply(self, connection: Any, state: IndexState) -> int:
        """Index the chunks written or removed since the leg was last updated; return its generation now."""
        native, tables = connection.native, TermTables(connection, self.label)
        check_version(state)
        totals = tables.counts()
        query = "SELECT n FROM removed WHERE generation > %s"
        removed = native.execute(query, (totals.generation,)).fetchall()
        if removed:
            totals = write_terms(tables, totals, {n: None for (n,) in removed})  # None removes a document
        for rows in _chunks_since(native, totals.generation):
            texts = {n: searched_text(text, json.loads(metadata)) for n, text, metadata in rows}
            terms = {n: Counter(self.analyzer(text)) for n, text in texts.items()}
            totals = write_terms(tables, totals, terms)
        native.execute(
            f"INSERT INTO {self.label}_counts (documents, tokens, generation) VALUES (%s, %s, %s) "
            "ON CONFLICT (tenant) DO UPDATE SET documents = excluded.documents, tokens = excluded.tokens, "
            "generation = excluded.generation",
            totals._replace(generation=state.generation),  # a tuple, in the order of the columns
        )
        return state.generation

    def rebuild(self, connection: Any, state: IndexState) -> str:
        """Delete the tenant's postings, and make them of the chunks again."""
        self.clear(connection)
        connection.execute(upsert_statement("meta", "key", "value"), ("terms", str(TERMS_VERSION)))
        self.apply(connection, state.model_copy(update={"terms": TERMS_VERSION}))
        return f"rebuilt the {self.label} index"

    def clear(self, connection: Any) -> None:
        """Remove all that the leg has of the tenant."""
        for table in ("postings", "documents", "counts"):
            connection.native.execute(f"DELETE FROM {self.label}_{table}")

    def verify(self, connection: Any, state: IndexState, report: IndexReport) -> None:
        """Report where the term tables differ from the chunks: rows missing or left over, totals that do not fit."""
        native: Connection[Any] = connection.native
        try:
            check_version(state)
        except IndexFormatError as error:
            report.problems.append(f"{self.label}: {error}")
        totals = TermTables(connection, self.label).counts()
        for problem, query in _DIFFERENCES.items():
            if keys := [key for (key,) in native.execute(query.format(leg=self.label))]:
                report.problems.append(f"{self.label}: {len(keys)} rows {problem}, for example {keys[0]}")
        sums = native.execute(_SUMS.format(leg=self.label)).fetchone()
        # the generation is -1 as long as nothing was indexed, which fits a store of generation 0
        if sums != (totals.documents, totals.tokens, 0) or max(totals.generation, 0) != state.generation:
            problem = "documents, terms or changes are not as many as were counted"
            report.problems.append(f"{self.label}: {problem}")
        report.checked[f"{self.label} rows"] = totals.documents


def write_terms(tables: TermTables, totals: Counts, documents: Mapping[int, Counter[str] | None]) -> Counts:
    """Write term counts of documents by row number, ``None`` to remove one; return the new totals of the tenant."""
    terms_before = tables.terms(documents)
    changed = {n: terms for n, terms in documents.items() if terms != terms_before.get(n)}
    removed = {n: terms_before[n] for n in changed if n in terms_before}
    added = {n: terms for n, terms in changed.items() if terms is not None}
    _write_postings(tables, removed, added)
    tables.native.execute(f"DELETE FROM {tables.leg}_documents WHERE n = ANY(%b::bigint[])", (list(removed),))
    texts = []
    for terms in added.values():
        texts.append("\n".join(f"{term} {count}" for term, count in sorted(terms.items())))
    lengths = [terms.total() for terms in added.values()]
    tables.native.execute(
        f"INSERT INTO {tables.leg}_documents (n, length, terms) "
        "SELECT * FROM unnest(%b::bigint[], %b::int[], %b::text[])",
        (list(added), lengths, texts),
    )
    tokens = totals.tokens + sum(lengths) - sum(terms.total() for terms in removed.values())
    return totals._replace(documents=totals.documents + len(added) - len(removed), tokens=tokens)


def _write_postings(
    tables: TermTables, removed: Mapping[int, Iterable[str]], added: Mapping[int, Counter[str]]
) -> None:
    """Delete the postings of removed documents, and write those of added ones, packed as `keyword_search` says."""
    packed = _take_rows(tables, removed)
    new_postings: dict[tuple[str, int], list[int]] = defaultdict(list)  # by term and block
    for n, counts in added.items():
        block, position = divmod(n, packing.BLOCK)
        document_bits = position << packing.POSITION_SHIFT | min(counts.total(), packing.MAX_LENGTH)
        for term, count in counts.items():
            count_bits = min(count, packing.MAX_COUNT) << packing.LENGTH_BITS
            new_postings[term, block].append(document_bits | count_bits)
    for (term, block), postings in new_postings.items():
        packed[term, block] += np.array(postings, "<u8").tobytes()
    rows = [(term, block, row) for (term, block), row in packed.items() if row]
    if rows:
        tables.native.execute(
            f"INSERT INTO {tables.leg}_postings AS p (term, block, packed) "
            "SELECT * FROM unnest(%b::text[], %b::bigint[], %b::bytea[]) "
            "ON CONFLICT (tenant, term, block) DO UPDATE SET packed = p.packed || excluded.packed",
            [list(column) for column in zip(*rows, strict=True)],
        )


def _take_rows(tables: TermTables, removed: Mapping[int, Iterable[str]]) -> dict[tuple[str, int], bytes]:
    """Delete the table rows with postings of removed documents; return their other postings by term and block."""
    packed: dict[tuple[str, int], bytes] = defaultdict(bytes)
    positions: dict[tuple[str, int], list[int]] = defaultdict(list)  # of removed documents, by term and block
    for n, terms in removed.items():
        block, position = divmod(n, packing.BLOCK)
        for term in terms:
            positions[term, block].append(position)
    if positions:
        query = (
            f"DELETE FROM {tables.leg}_postings p USING unnest(%b::text[], %b::bigint[]) AS k (term, block) "
            "WHERE p.term = k.term AND p.block = k.block RETURNING p.term, p.block, p.packed"
        )
        terms_and_blocks = [list(column) for column in zip(*positions, strict=True)]
        for term, block, row in tables.native.execute(query, terms_and_blocks, binary=True):
            postings = np.frombuffer(row, "<u8")
            is_kept = ~np.isin(postings >> packing.POSITION_SHIFT, positions[term, block])
            packed[term, block] = postings[is_kept].tobytes()
    return packed


def _chunks_since(native: Connection[Any], generation: int) -> Iterator[list[tuple[int, str, str]]]:
    """Yield (row number, text, metadata) of the chunks written after a generation, in sorted lists of ``_PAGE``."""
    with native.cursor("keyword") as cursor:
        cursor.execute("SELECT n, text, metadata FROM chunks WHERE generation > %s", (generation,))
        while rows := cursor.fetchmany(_PAGE):
            yield sorted(rows)
