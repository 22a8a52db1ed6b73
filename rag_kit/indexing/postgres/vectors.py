"""The vector leg in PostgreSQL: pgvector finds candidates at half precision, the store's vectors give their cosines."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Generator
from contextlib import closing
from itertools import islice
from typing import Any

import psycopg
from psycopg import sql

from rag_kit.documents import Filter
from rag_kit.errors import InvalidInputError
from rag_kit.indexing.document_index.state import NO_GENERATION, IndexReport, IndexState
from rag_kit.indexing.document_index.vectors import Vectors, best_ids, decode_vectors, unit
from rag_kit.indexing.postgres.connection import filter_rows

EXACT_ROWS = 20_000  # vectors of a tenant that a search reads all; above, it asks HNSW (docs/benchmarks.md)
_MAX_DIMENSION = 16_000  # numbers of a vector that halfvec holds
_MAX_INDEXED_DIMENSION = 4_000  # and that HNSW takes
_EF_SEARCH = 200  # candidates that HNSW keeps while it searches
_MIN_CANDIDATES, _CANDIDATES_PER_HIT = 30, 3  # taken of these: at least, and for each hit to return
SCANNED = 5000  # rows that HNSW gives at most, for the filter to choose from; then all are read
_VISITS_PER_ROW = 20  # more than HNSW visits for a row that it gives: if it stops early, it gives worse ones
_MARGIN = 0.0025  # above what half precision changes in the difference of two cosines
_MIN_PAGE, _MAX_PAGE = 100, 5000  # rows that are read together: few at first, for these are often enough
# of the vectors written after a generation: those that `nearest` lacks, or has of another model or generation
_FROM_OUTDATED = (
    "FROM vectors v LEFT JOIN nearest l USING (tenant, n) "
    "WHERE (l.model, l.generation) IS DISTINCT FROM (%s, v.generation) AND v.generation > %s"
)
_MAX_MEMORY = 2**31  # bytes for building HNSW
_BYTES_OF_NODE = 1200  # about, that HNSW takes for a row while it is built, beside its vector


class PostgresVectorLeg:
    """The vector search of an index in PostgreSQL, updated inside each write transaction; see ``Leg``.

    Searches read the table ``nearest``: copies of ``vectors`` at length 1 and half precision, deleted with their rows.
    """

    def apply(self, connection: Any, state: IndexState) -> int:
        """Copy the vectors written since generation ``state.floor`` to the searched table; return the generation."""
        if state.dimension is not None:
            self._copy_vectors(connection.native, state, state.floor)
        return state.generation

    def search(
        self, connection: Any, state: IndexState, query: Vectors, k: int, where: Filter | None
    ) -> list[tuple[str, float]]:
        """Return ids and cosines of the k vectors nearest to a unit vector, the nearest first."""
        if state.dimension is None:
            return []
        native, count = connection.native, max(_MIN_CANDIDATES, _CANDIDATES_PER_HIT * k)
        numbers = _nearest_by_hnsw(native, state, query, count, where)
        numbers = numbers or _nearest_of_all(native, state, query, k, where)
        rows = native.execute(
            "SELECT c.id, v.vector FROM chunks c JOIN vectors v USING (tenant, n) WHERE c.n = ANY (%s)",
            (numbers,),
            binary=True,
        )
        keys, vectors = decode_vectors(rows, state.dimension)
        return best_ids(unit(vectors) @ query, keys, k)

    def verify(self, connection: Any, state: IndexState, report: IndexReport) -> None:
        """Report how many rows of the searched table ``nearest`` are missing, or differ from the store's vectors."""
        if state.dimension is None:
            return
        # vectors of another length are not copied; the check of the store reports them
        query = f"SELECT count(*) - count(l.n), count(l.n) {_FROM_OUTDATED} AND length(v.vector) = %s"
        values = (_model_key(state), NO_GENERATION, 4 * state.dimension)
        missing, different = connection.native.execute(query, values).fetchone()
        for count, problem in ((missing, "missing from"), (different, "not what was written in")):
            if count:
                report.problems.append(f"vectors: {count} rows are {problem} the table that is searched")
        report.checked["vector rows"] = connection.execute("SELECT count(*) FROM nearest").fetchone()[0]

    def rebuild(self, connection: Any, state: IndexState) -> str:
        """Copy every vector that is missing or outdated to the searched table; make its HNSW index if needed."""
        if state.dimension is None:
            return ""
        self._copy_vectors(connection.native, state, NO_GENERATION)  # below all generations: all vectors
        return "replaced what differed in the table of vectors that is searched"

    def _copy_vectors(self, native: psycopg.Connection[Any], state: IndexState, since: int) -> None:
        """Copy the vectors written after a generation to ``nearest``, at length 1; make the HNSW index if needed."""
        size, model = state.dimension or 0, _model_key(state)
        if size > _MAX_DIMENSION:
            raise InvalidInputError(
                f"The vectors have {size} numbers; in PostgreSQL at most {_MAX_DIMENSION} are possible. Take an "
                "embedding model with shorter ones, or an index in a folder."
            )
        if native.execute("SELECT 1 FROM nearest WHERE model = %s LIMIT 1", (model,)).fetchone() is None:
            since = NO_GENERATION  # no row is by this model yet: copy the vectors of all generations
        with native.cursor() as writer, native.cursor("rag_kit_vectors") as reader:
            query = f"SELECT v.n, v.vector, v.generation {_FROM_OUTDATED} ORDER BY v.n"
            reader.execute(query, (model, since), binary=True)
            while page := reader.fetchmany(_MAX_PAGE):
                numbers, rows = decode_vectors([(n, blob) for n, blob, _ in page], size)
                generations = {n: generation for n, _, generation in page}
                units = zip(numbers, unit(rows), strict=True)
                writer.executemany(
                    "INSERT INTO nearest (n, model, unit, generation) VALUES (%s, %s, %s::halfvec, %s) "
                    "ON CONFLICT (tenant, n) DO UPDATE SET model = excluded.model, unit = excluded.unit, "
                    "generation = excluded.generation",
                    [(n, model, _vector_literal(row), generations[n]) for n, row in units],
                )
                if damaged := list(generations.keys() - set(numbers)):  # `decode_vectors` left them out
                    writer.execute("DELETE FROM nearest WHERE n = ANY (%s)", (damaged,))
        _make_hnsw_index(native, state)


def _nearest_by_hnsw(
    native: psycopg.Connection[Any], state: IndexState, query: Vectors, count: int, where: Filter | None
) -> list[int]:
    """Return the numbers of ``count`` near rows by HNSW; none without such an index, or if too few pass the filter."""
    tenant = _tenant_with_hnsw(native, state)
    if tenant is None:
        return []
    # with sorting switched off, the planner must read the rows in the order of the index
    settings = (
        "SET LOCAL enable_sort = off; SET LOCAL hnsw.iterative_scan = relaxed_order; "
        f"SET LOCAL hnsw.scan_mem_multiplier = 64; SET LOCAL hnsw.ef_search = {_EF_SEARCH}; "
        f"SET LOCAL hnsw.max_scan_tuples = {max(1, _VISITS_PER_ROW * SCANNED)}"
    )
    statement = sql.SQL(
        "SELECT n, 0 FROM nearest WHERE tenant = {} AND model = {} "  # the distance itself is not needed
        "ORDER BY (unit::halfvec({size})) <#> {}::halfvec({size}) LIMIT {}"
    ).format(tenant, _model_key(state), _vector_literal(query), SCANNED, size=state.dimension)
    with native.transaction(force_rollback=True):  # rolled back, so that the settings end with the block
        native.execute(settings)
        with closing(_passing_rows(native, statement, where)) as rows:
            numbers = [n for n, _ in islice(rows, count)]
    return numbers if len(numbers) == count else []


def _nearest_of_all(
    native: psycopg.Connection[Any], state: IndexState, query: Vectors, k: int, where: Filter | None
) -> list[int]:
    """Compare all rows; return the numbers of the k nearest, and of others that half precision may rank too low."""
    select = "SELECT n, unit <#> {}::halfvec AS distance FROM nearest WHERE model = {} ORDER BY distance"
    statement = sql.SQL(select).format(_vector_literal(query), _model_key(state))
    numbers: list[int] = []
    limit = math.inf
    with closing(_passing_rows(native, statement, where)) as rows:
        for n, distance in rows:
            if distance > limit:
                break
            numbers.append(n)
            if len(numbers) == k:
                limit = distance + _MARGIN  # nearer ones may belong to the k nearest
    return numbers


def _passing_rows(
    native: psycopg.Connection[Any], statement: sql.Composed, where: Filter | None
) -> Generator[tuple[int, float]]:
    """Run a query for (row number, distance); yield the rows that pass a filter, in order, read in growing pages."""
    page_size = _MIN_PAGE
    with native.cursor("nearest") as cursor:  # with a name the cursor is the server's, and sends page by page
        cursor.execute(statement)
        while rows := cursor.fetchmany(page_size):
            passing = filter_rows(native, [n for n, _ in rows], where)
            yield from ((n, distance) for n, distance in rows if n in passing)
            page_size = min(4 * page_size, _MAX_PAGE)


def _tenant_with_hnsw(native: psycopg.Connection[Any], state: IndexState) -> str | None:
    """Return the name of the tenant if it has an HNSW index of its vectors by the model, else ``None``."""
    query = "SELECT current_setting('rag_kit.tenant') WHERE to_regclass(%s) IS NOT NULL"
    row = native.execute(query, (_index_name(state),)).fetchone()
    return None if row is None else str(row[0])


def _make_hnsw_index(native: psycopg.Connection[Any], state: IndexState) -> None:
    """Make the HNSW index of a tenant with more than ``EXACT_ROWS`` vectors and none yet; other writers wait for it."""
    size = state.dimension or 0
    if size > _MAX_INDEXED_DIMENSION or _tenant_with_hnsw(native, state) is not None:
        return
    if native.execute("SELECT 1 FROM nearest OFFSET %s LIMIT 1", (EXACT_ROWS,)).fetchone() is None:
        return
    # the lock, since two processes that made one at the same time would wait for each other's rows for ever
    query = (
        "SELECT current_setting('rag_kit.tenant'), (SELECT count(*) FROM nearest), "
        "pg_size_bytes(current_setting('maintenance_work_mem')) FROM pg_class "
        "WHERE oid = 'nearest'::regclass AND pg_has_role(relowner, 'USAGE') "
        "AND pg_try_advisory_xact_lock('nearest'::regclass::oid::bigint)"
    )
    row = native.execute(query).fetchone()
    if row is None:
        return  # the role does not own the table, or another process makes an index: a later write tries again
    tenant, rows, memory = row
    needed = rows * (2 * size + _BYTES_OF_NODE)  # half precision has 2 bytes a number
    memory = max(memory, min(needed, _MAX_MEMORY))
    native.execute("SELECT set_config('maintenance_work_mem', %s, true)", (f"{memory // 1024}kB",))
    statement = sql.SQL(
        "CREATE INDEX {} ON nearest USING hnsw ((unit::halfvec({})) halfvec_ip_ops) WHERE tenant = {} AND model = {}"
    ).format(sql.Identifier(_index_name(state)), size, tenant, _model_key(state))
    # one worker: containers have little memory that several can share
    native.execute("SELECT set_config('max_parallel_maintenance_workers', '0', true)")
    native.execute(statement)
    native.execute("ANALYZE nearest")


def _vector_literal(vector: Vectors) -> str:
    """Write a vector as pgvector reads it: ``"[0.6, 0.8]"``."""
    return str(vector.tolist())


def _model_key(state: IndexState) -> str:
    """Return the key that vectors must share to be compared: dimension and name of the model."""
    return f"{state.dimension} {state.embedding}"


def _index_name(state: IndexState) -> str:
    """Return the name of the HNSW index of a tenant and model."""
    digest = hashlib.sha256(f"{state.uid} {_model_key(state)}".encode()).hexdigest()
    return f"nearest_{digest[:16]}"
