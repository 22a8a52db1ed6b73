"""The scores of Self-RAG against values computed by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage

from rag_kit.graphs.self_rag.logprobs import AnswerToken, label_probabilities, read_tokens
from rag_kit.graphs.self_rag.ranking import (
    CRITIQUES,
    WORTH,
    critique_score,
)

probability = st.floats(0, 1)


@given(st.dictionaries(st.sampled_from([label for name in CRITIQUES for label in WORTH[name]]), probability))
def test_scores_stay_in_their_bounds(known: dict[str, float]) -> None:
    """Whatever a model's probabilities are, also missing ones."""
    assert 0 <= critique_score("relevance", known) <= 1 + 1e-9
    assert 0 <= critique_score("support", known) <= 1 + 1e-9
    assert -1 - 1e-9 <= critique_score("usefulness", known) <= 1 + 1e-9


def tokens(*parts: tuple[str, dict[str, float]] | str) -> list[AnswerToken]:
    """Tokens with the probabilities of their alternatives."""
    made = []
    for part in parts:
        text, known = (part, {part: 1.0}) if isinstance(part, str) else part
        top = tuple((each, math.log(p)) for each, p in known.items())
        made.append(AnswerToken(text, math.log(known.get(text, 1.0)), top))
    return made


def test_label_probabilities_are_read_at_the_label() -> None:
    """Alternatives in other spellings of one label add up; what begins no label counts for none."""
    answer = tokens(
        '{"',
        "relevance",
        '":"',
        ("relevant", {"relevant": 0.5, "Relevant": 0.1, "irre": 0.2, " irrelevant": 0.1, "the": 0.1}),
        '","',
        "support",
        '": "',
        ("par", {"par": 0.6, "full": 0.3, "no": 0.05, "none": 0.01}),
        "tial",
        '", "usefulness": ',
        ("4", {"4": 0.7, "5": 0.2, "10": 0.1}),
        "}",
    )
    relevance = label_probabilities(answer, "relevance", "relevant", WORTH["relevance"])
    support = label_probabilities(answer, "support", "partial", WORTH["support"])
    usefulness = label_probabilities(answer, "usefulness", "4", WORTH["usefulness"])
    assert relevance == pytest.approx({"relevant": 0.6, "irrelevant": 0.3})
    assert support == pytest.approx({"full": 0.3, "partial": 0.6, "none": 0.06})
    assert usefulness == pytest.approx({"1": 0, "2": 0, "3": 0, "4": 0.7, "5": 0.2})


@pytest.mark.parametrize("label", ["full", "none"])
def test_tokens_that_show_another_label_say_nothing(label: str) -> None:
    """An answer that was mended afterwards is not scored by the tokens of what stood there before."""
    answer = tokens('{"support": "', ("partial", {"partial": 0.9, "full": 0.1}), '"}')
    assert label_probabilities(answer, "support", label, WORTH["support"]) is None
    assert label_probabilities([], "support", label, WORTH["support"]) is None


@pytest.mark.parametrize(
    "metadata",
    [
        None,
        {},
        {"logprobs": None},
        {"logprobs": []},
        {"logprobs": {"content": None}},
        {"logprobs": {"content": [{"token": "a"}]}},
        {"logprobs": {"content": [{"token": "a", "logprob": 0.7}]}},
        {"logprobs": {"content": [{"token": "a", "logprob": float("nan")}]}},
        {"logprobs": {"content": [{"token": "a", "logprob": True}]}},
        {"logprobs": {"content": ["a"]}},
    ],
)
def test_malformed_log_probabilities_are_none(metadata: Any) -> None:
    """A server that says nonsense is one without log-probabilities."""
    assert read_tokens(AIMessage("", response_metadata=metadata or {})) == [] == read_tokens(None)
