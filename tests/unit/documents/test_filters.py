"""Filters: what each operator means, what is refused, and what Chroma is asked; see also tests/contract."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from rag_kit.documents import combine_filters, compile_filter, matches, validate_filter
from rag_kit.documents.filter_translations import to_chroma
from rag_kit.documents.filters import FilterMasks
from rag_kit.errors import FilterError


@pytest.mark.parametrize(
    ("where", "metadata", "expected"),
    [
        (None, {}, True),
        ({}, {"a": 1}, True),
        ({"a": 1}, {"a": 1}, True),
        ({"a": 1}, {"a": 1.0}, True),
        ({"a": 1}, {"a": True}, False),
        ({"a": True}, {"a": 1}, False),
        ({"a": True}, {"a": True}, True),
        ({"a": 1}, {}, False),
        ({"a": 1, "b": 2}, {"a": 1, "b": 3}, False),
        ({"a": {"$ne": 1}}, {}, True),
        ({"a": {"$nin": [1]}}, {}, True),
        ({"a": {"$in": []}}, {"a": 1}, False),
        ({"a": {"$nin": []}}, {}, True),
        ({"a": {"$in": [1, "x"]}}, {"a": "x"}, True),
        ({"a": {"$gt": 1}}, {"a": "2"}, False),
        ({"a": {"$gt": "2019"}}, {"a": "2020-01-01"}, True),
        ({"a": {"$gte": 1, "$lt": 3}}, {"a": 2}, True),
        ({"a": {"$gte": 1, "$lt": 3}}, {"a": 3}, False),
        ({"a": {"$gt": 0}}, {"a": True}, False),
        ({"a": {"$gt": 0}}, {"a": float("nan")}, False),
        ({"a": {"$contains": "x"}}, {"a": ["x", "y"]}, True),
        ({"a": {"$contains": "x"}}, {"a": "xyz"}, False),
        ({"a": {"$contains": 1}}, {"a": [True]}, False),
        ({"a": {"$exists": True}}, {"a": 0}, True),
        ({"a": {"$exists": False}}, {"a": None}, True),
        ({"$not": {"a": 1}}, {"a": 2}, True),
        ({"$not": {"a": {"$gt": 1}}}, {}, True),
        ({"$or": [{"a": 1}, {"b": 1}]}, {"b": 1}, True),
        ({"$and": [{"a": 1}, {"b": 1}]}, {"b": 1}, False),
        ({"a": np.int64(1)}, {"a": 1}, True),
        ({"a": 1}, {"a": np.float64(1)}, True),
        ({"a": {"$in": [np.str_("x")]}}, {"a": "x"}, True),
        ({"a": np.float64(1)}, {"a": True}, False),
        ({"a": "x"}, {"a": {"nested": 1}}, False),
    ],
)
def test_matches(where: Any, metadata: dict[str, Any], expected: bool) -> None:
    """Every operator means what the module's text says, for odd types too."""
    assert matches(where, metadata) is expected


@pytest.mark.parametrize(
    ("where", "says"),
    [
        ("year = 3", "must be a mapping"),
        ({"a": {"$near": 1}}, r"\$near.*\$eq"),
        ({"$nor": [{"a": 1}]}, r"\$nor.*\$and"),
        ({"a": {}}, "empty"),
        ({"a": None}, r"\$exists"),
        ({"a": [1]}, r"\$in"),
        ({"a": {"$in": "abc"}}, "list"),
        ({"a": {"$gt": True}}, "boolean"),
        ({"a": {"$exists": 1}}, "true or false"),
        ({"a": float("nan")}, "finite.*not float nan"),
        ({"$and": []}, "non-empty"),
        ({"$or": {"a": 1}}, "list"),
        ({"": 1}, "non-empty"),
        ({3: 1}, "strings"),
        ({"a": {"b": 1}}, "Unknown operator"),
        ({"a": {"$in": list(range(2000))}}, "1000"),
    ],
)
def test_wrong_filters_are_refused(where: Any, says: str) -> None:
    """A malformed filter is refused by a message that says what is wrong; nothing is silently ignored."""
    with pytest.raises(FilterError, match=says):
        validate_filter(where)
    with pytest.raises(FilterError, match=says):
        matches(where, {})


def test_depth_is_bounded() -> None:
    """A filter nested beyond 16 levels is refused before Python's own limit."""
    deep: dict[str, Any] = {"a": 1}
    for _ in range(5000):
        deep = {"$not": deep}
    with pytest.raises(FilterError, match="16"):
        compile_filter(deep)


def test_combine_is_and() -> None:
    """A per-call filter can only narrow; the same key in both does not overwrite."""
    both = combine_filters({"tenant": "a"}, {"tenant": "b"})
    assert not matches(both, {"tenant": "a"}) and not matches(both, {"tenant": "b"})
    assert combine_filters(None, {}) is None
    assert combine_filters({"a": 1}, None) == {"a": 1}
    with pytest.raises(FilterError):
        combine_filters({"a": 1}, {"b": None})


@pytest.mark.parametrize(
    "where",
    [
        {"a": {"$exists": True}},
        {"a": {"$gt": "2020"}},
        {"$not": {"a": {"$gt": 1}}},
        {"#document": "x"},
        {"a": 2**70},
    ],
)
def test_what_chroma_lacks_is_refused(where: dict[str, Any]) -> None:
    """A filter that Chroma cannot express is refused, not sent."""
    validate_filter(where)
    with pytest.raises(FilterError):
        to_chroma(where)


def test_to_chroma_forms() -> None:
    """Several keys are wrapped, decided parts are folded away."""
    assert to_chroma(None) is None
    assert to_chroma({"a": {"$nin": []}}) is None
    assert to_chroma({"a": 1, "b": {"$nin": []}}) == {"a": {"$eq": 1}}
    assert to_chroma({"$and": [{"a": 1}]}) == {"a": {"$eq": 1}}
    assert to_chroma({"a": {"$in": [1, "x"]}}) == {"$or": [{"a": {"$eq": 1}}, {"a": {"$eq": "x"}}]}
    assert to_chroma({"a": {"$gte": 1.5}}) == {"$and": [{"a": {"$gte": 1.5}}, {"a": {"$ne": 1}}]}
    assert to_chroma({"a": {"$lt": 1.5}}) == {"$or": [{"a": {"$lt": 1.5}}, {"a": {"$eq": 1}}]}
    assert to_chroma({"a": {"$nin": ["x", "y"]}}) == {"a": {"$nin": ["x", "y"]}}
    both = {"$or": [{"a": {"$contains": 1.0}}, {"a": {"$contains": 1}}]}
    assert to_chroma({"a": {"$contains": 1}}) == both
    impossible = to_chroma({"a": {"$in": []}})
    assert impossible is not None and "$and" in impossible


def test_masks_equal_matches() -> None:
    """A mask says of each row what ``matches`` says, also of a remembered filter, and after more than are kept."""
    rows: list[dict[str, Any]] = [{"a": 1}, {"a": True}, {"a": "1"}, {"a": [1]}, {"a": None}, {}]
    masks = FilterMasks(rows)
    filters = [{"a": value} for value in (1, 1.0, True, "1")] + [{"a": {"$gt": n}} for n in range(-9, 9)]
    for where in (None, {}, *filters, *reversed(filters)):
        expected = [matches(where, row) for row in rows]
        assert (
            masks.mask(where).tolist() == expected == pickle.loads(pickle.dumps(masks)).mask(where).tolist()
        )
    assert FilterMasks([]).mask({"a": 1}).tolist() == []
    with pytest.raises(FilterError, match=r"Unknown operator '\$near'"):
        masks.mask({"a": {"$near": 1}})
