"""``matches(filter)`` and embedded Chroma's ``to_chroma(filter)`` must choose the same rows."""

from __future__ import annotations

from typing import Any

import chromadb
import pytest
from chromadb.config import Settings
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rag_kit.documents import compile_filter
from rag_kit.documents.filter_translations import to_chroma
from rag_kit.errors import FilterError

ROWS: list[dict[str, Any]] = [
    {"a": 1, "b": "x"},
    {"a": 1.0, "b": "y"},
    {"a": True},
    {"a": False, "b": 2},
    {"a": "1", "b": True},
    {"a": 2, "c": ["x", "y"]},
    {"a": 1.5, "c": [1, 2]},
    {"b": "x", "c": [1.0, 2.5]},
    {"b": 0, "c": [True, False]},
    {"a": -3, "b": -0.5},
    {"a": "", "b": "中文"},
    {"c": "x"},
]

scalars = st.sampled_from([0, 1, 2, -3, 1.0, 1.5, 2.5, -0.5, True, False, "", "1", "x", "y", "中文"])
numbers = st.sampled_from([0, 1, 2, -3, 1.0, 1.5, 2.5, -0.5, -3.5])
conditions = st.one_of(
    scalars,
    st.fixed_dictionaries({"$eq": scalars}),
    st.fixed_dictionaries({"$ne": scalars}),
    st.fixed_dictionaries({"$in": st.lists(scalars, max_size=3)}),
    st.fixed_dictionaries({"$nin": st.lists(scalars, max_size=3)}),
    st.fixed_dictionaries({"$contains": scalars}),
    st.fixed_dictionaries({"$gte": numbers, "$lt": numbers}),
    st.fixed_dictionaries({"$gt": numbers}),
    st.fixed_dictionaries({"$lte": numbers}),
)
fields = st.dictionaries(st.sampled_from(["a", "b", "c", "missing"]), conditions, min_size=1, max_size=3)
filters = st.recursive(
    fields,
    lambda inner: st.one_of(
        st.fixed_dictionaries({"$and": st.lists(inner, min_size=1, max_size=3)}),
        st.fixed_dictionaries({"$or": st.lists(inner, min_size=1, max_size=3)}),
        st.fixed_dictionaries({"$not": inner}),
    ),
    max_leaves=5,
)


@pytest.fixture(scope="module")
def table() -> Any:
    client = chromadb.EphemeralClient(Settings(anonymized_telemetry=False))
    collection = client.create_collection("filters_property", embedding_function=None)
    collection.add(
        ids=[str(number) for number in range(len(ROWS))],
        embeddings=[[1.0, float(number)] for number in range(len(ROWS))],
        metadatas=ROWS,
    )
    yield collection
    client.delete_collection("filters_property")


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(where=filters)
def test_matches_equals_chroma(table: Any, where: dict[str, Any]) -> None:
    """Over random filters, the rows that pass here are the rows that Chroma returns."""
    passes = compile_filter(where)
    try:
        theirs = to_chroma(where)
    except FilterError:
        return
    found = {int(row) for row in table.get(where=theirs, include=[])["ids"]}
    assert found == {number for number, row in enumerate(ROWS) if passes(row)}
