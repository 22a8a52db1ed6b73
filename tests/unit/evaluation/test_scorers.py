"""Metrics by name: what is meant by a misspelled one, and what is refused."""

from __future__ import annotations

import pytest

from rag_kit.errors import InvalidInputError
from rag_kit.evaluation.scorers import get_metric


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [
        ("faithfullness", "'faithfulness'"), ("NDCG@5", "'ndcg@k'"), ("recal@5", "'recall@k'"), ("ndgc", "'ndcg'"),
        ("context-recall", "'context_recall'"), ("recall@0", "'recall@k'"),
    ],
)  # fmt: skip
def test_a_misspelled_metric_is_recognised(wrong: str, meant: str) -> None:
    """The name that was meant comes before the long list of all."""
    with pytest.raises(InvalidInputError, match=f"did you mean {meant}"):
        get_metric(wrong)


def test_a_name_that_is_near_none_is_not_guessed() -> None:
    """No suggestion is better than a wrong one."""
    with pytest.raises(InvalidInputError) as caught:
        get_metric("cost in euros")
    assert "did you mean" not in str(caught.value)
