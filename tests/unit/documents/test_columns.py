"""Filter masks over columns mean what ``matches`` means, row by row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.filters import filters

from rag_kit.documents import matches
from rag_kit.documents.columns import MetadataColumns
from rag_kit.errors import FilterError

KEYS = ["a", "b"]
SCALARS = st.one_of(
    st.integers(-3, 3),
    st.sampled_from([2**53, 2**53 + 1, float(2**53), 10**30, -(10**30)]),
    st.sampled_from([-1.5, 0.0, 1.0, 1.5, 2.0]),
    st.booleans(),
    st.sampled_from(["", "1", "x", "y", "年"]),
)
CELLS = st.one_of(
    SCALARS,
    st.none(),
    st.sampled_from([float("nan"), float("inf"), float("-inf")]),
    st.lists(SCALARS, max_size=3),
    st.sampled_from([np.int64(1), np.float32(1.5), np.bool_(True), {"deep": 1}]),
)
ROWS = st.lists(st.dictionaries(st.sampled_from(KEYS), CELLS, max_size=2), max_size=8)


@given(rows=ROWS, where=filters(KEYS, SCALARS))
def test_masks_equal_matches(rows: list[dict[str, Any]], where: dict[str, Any]) -> None:
    """For any rows and any filter a mask says of each row what ``matches`` says."""
    columns = MetadataColumns(rows)
    expected = [matches(where, row) for row in rows]
    assert columns.mask(where).tolist() == expected
    assert columns.mask(where).tolist() == expected  # again, from columns that are made


def test_many_distinct_values() -> None:
    """A column with more distinct values than 16 bits hold is right at both ends."""
    rows = [{"n": n} for n in range(40_000)]
    columns = MetadataColumns(rows)
    assert np.flatnonzero(columns.mask({"n": {"$gte": 39_998}})).tolist() == [39_998, 39_999]
    assert np.flatnonzero(columns.mask({"n": {"$in": [0, 33_000]}})).tolist() == [0, 33_000]


def test_nothing_asked_and_wrong_filters() -> None:
    """No filter lets every row pass; a wrong one is refused as everywhere."""
    columns = MetadataColumns([{}, {"a": 1}])
    assert columns.mask(None).tolist() == columns.mask({}).tolist() == [True, True]
    assert MetadataColumns([]).mask({"a": 1}).tolist() == []
    with pytest.raises(FilterError, match=r"Unknown operator '\$near'"):
        columns.mask({"a": {"$near": 1}})
