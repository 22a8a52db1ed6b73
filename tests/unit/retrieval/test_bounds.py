"""Caps of retrievers that may ask a model are whole numbers, or refused with what they may be."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.language_models import FakeListChatModel

from rag_kit.errors import InvalidInputError
from rag_kit.query_construction import SelfQueryRetriever
from rag_kit.retrieval import BM25Retriever, HyDERetriever, MultiQueryRetriever


@pytest.mark.parametrize("family", [HyDERetriever, MultiQueryRetriever, SelfQueryRetriever])
@pytest.mark.parametrize("name", ["max_calls", "max_tokens"])
@pytest.mark.parametrize("value", [True, False, "5", b"1", 1.5, float("nan"), -1, []])
def test_a_cap_that_is_no_number_is_refused(family: Any, name: str, value: Any) -> None:
    """A flag is no cap of one call, and a text no number, as for the other counts."""
    parts = {"retriever": BM25Retriever.from_texts(["a"]), "llm": FakeListChatModel(responses=["x"])}
    with pytest.raises(InvalidInputError, match=f"{name}=.* whole number"):
        family(**parts, **{name: value})
    assert getattr(family(**parts, **{name: 0}), name) == 0
