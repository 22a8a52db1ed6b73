"""The keyword leg in PostgreSQL: BM25 by the kit's own analysis, written in the transaction of the chunks."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

from rag_kit.indexing.document_index.report import IndexReport
from rag_kit.indexing.document_index.store import State
from rag_kit.indexing.postgres import keyword_scores
from rag_kit.indexing.postgres.keyword_scores import BYTES, Changes, Counts, count_of, lines_of
from rag_kit.indexing.searched import searched_text
from rag_kit.text import default_analyzer

if TYPE_CHECKING:
    from psycopg import Connection

_PAGE = 5000  # chunks that are analysed and written together


class PostgresKeywordLeg:
    """BM25 over the chunks of one tenant. All methods work in the open transaction of the connection."""

    def __init__(self) -> None:
        self.analyzer = default_analyzer()

    def apply(self, connection: Any, state: State) -> int:
        """Follow the chunks to the state's generation; see ``Leg``."""
        native: Connection[Any] = connection.native
        total = keyword_scores.counts(native)
        query = "SELECT n FROM gone WHERE generation > %s"
        gone = native.execute(query, (total.generation,)).fetchall()
        if gone:
            total = written(native, total, {n: None for (n,) in gone})
        for rows in _pages(native, total.generation):
            total = written(native, total, {n: self._terms(*row) for n, *row in rows})
        save_counts(native, total._replace(generation=state.generation))
        return state.generation

    def _terms(self, text: str, metadata: str) -> Counter[str]:
        return Counter(self.analyzer(searched_text(text, json.loads(metadata))))

    def rebuild(self, connection: Any, state: State) -> str:
        """Forget the tenant's postings, and make them of the chunks."""
        for table in ("keyword_postings", "keyword_documents", "keyword_counts"):
            connection.native.execute(f"DELETE FROM {table}")
        self.apply(connection, state)
        return "rebuilt the keyword index"

    def verify(self, connection: Any, state: State, report: IndexReport) -> None:
        """Compare ids, numbers and sums of all documents."""
        native: Connection[Any] = connection.native
        total = keyword_scores.counts(native)
        for what, query in _COMPARED.items():
            if lost := native.execute(query).fetchall():
                report.problems.append(f"keyword: {len(lost)} rows {what}, for example {lost[0][0]}")
        [sums] = native.execute(_SUMS).fetchall()
        if sums != (total.documents, total.tokens, 0) or max(total.generation, 0) != state.generation:
            report.problems.append("keyword: documents, terms or changes are not as many as were counted")
        report.checked["keyword rows"] = total.documents


_COMPARED = {
    "are missing": "SELECT id FROM chunks c WHERE NOT EXISTS "
    "(SELECT 1 FROM keyword_documents d WHERE d.n = c.n)",
    "should be gone": "SELECT n FROM keyword_documents d WHERE n IS NOT NULL AND NOT EXISTS "
    "(SELECT 1 FROM chunks c WHERE c.n = d.n)",
}
# the last is 0 where each term of each document has a posting
_SUMS = f"""
SELECT count(n), coalesce(sum(length), 0)::bigint,
       coalesce(sum(array_length(string_to_array(terms, E'\\n'), 1)), 0)
       - (SELECT coalesce(sum(octet_length(packed)), 0) / {BYTES} FROM keyword_postings)
FROM keyword_documents
"""


def written(native: Connection[Any], total: Counts, wanted: Mapping[int, Counter[str] | None]) -> Counts:
    """Replace documents, by the numbers of their chunks, by the counts of their terms; ``None`` removes one."""
    changes, old = Changes(), indexed(native, list(wanted))
    lines = {n: None if terms is None else lines_of(terms) for n, terms in wanted.items()}
    changed = [n for n, line in lines.items() if line != (old[n][1] if n in old else None)]
    free = _free_slots(native, total.slots, sum(n not in old for n in changed))
    rows: list[tuple[int, int | None, int, str]] = []
    documents, tokens, slots, _ = total
    for n in changed:
        slot, before = old[n] if n in old else (next(free), None)
        if before is not None:
            changes.take(slot, counted := count_of(before))
            documents, tokens = documents - 1, tokens - counted.total()
        terms, line = wanted[n], lines[n]
        if terms is not None:
            changes.put(slot, terms)
            documents, tokens, slots = documents + 1, tokens + terms.total(), max(slots, slot + 1)
        rows.append((slot, None if terms is None else n, terms.total() if terms else 0, line or ""))
    changes.write(native)
    if rows:
        native.execute(
            "INSERT INTO keyword_documents (slot, n, length, terms) "
            "SELECT * FROM unnest(%b::int[], %b::bigint[], %b::int[], %b::text[]) "
            "ON CONFLICT (tenant, slot) DO UPDATE "
            "SET n = excluded.n, length = excluded.length, terms = excluded.terms",
            [list(column) for column in zip(*rows, strict=True)],
        )
    return total._replace(documents=documents, tokens=tokens, slots=slots)


def save_counts(native: Connection[Any], total: Counts) -> None:
    """Write what a tenant's documents are in all."""
    native.execute(
        "INSERT INTO keyword_counts (documents, tokens, slots, generation) VALUES (%s, %s, %s, %s) "
        "ON CONFLICT (tenant) DO UPDATE SET documents = excluded.documents, tokens = excluded.tokens, "
        "slots = excluded.slots, generation = excluded.generation",
        total,
    )


def indexed(native: Connection[Any], numbers: Sequence[int]) -> dict[int, tuple[int, str]]:
    """Slots and lines of terms of documents, by the numbers of their chunks."""
    query = "SELECT n, slot, terms FROM keyword_documents WHERE n = ANY(%b::bigint[])"
    return {n: (slot, lines) for n, slot, lines in native.execute(query, (list(numbers),))}


def _pages(native: Connection[Any], since: int) -> Iterator[list[tuple[int, str, str]]]:
    """Numbers, texts and metadata of the chunks that were written after a generation."""
    with closing(native.cursor("keyword")) as cursor:
        cursor.execute("SELECT n, text, metadata FROM chunks WHERE generation > %s", (since,))
        while rows := cursor.fetchmany(_PAGE):
            yield sorted(rows)


def _free_slots(native: Connection[Any], slots: int, count: int) -> Iterator[int]:
    """Slots for new documents: free ones, then new ones."""
    query = "SELECT slot FROM keyword_documents WHERE n IS NULL ORDER BY slot LIMIT %s"
    free = [slot for (slot,) in native.execute(query, (count,))] if count else []
    yield from free
    yield from range(slots, slots + count - len(free))
