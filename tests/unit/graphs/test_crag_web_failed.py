"""A web search that gives its failure back in place of results has failed, and is not one that found nothing."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.runnables import RunnableLambda

from rag_kit.graphs import build_crag
from rag_kit.models import chat_model


@pytest.mark.parametrize("error", ["quota used up, key sk-abcdefghijklmnop1234", ValueError("quota used up")])
async def test_a_failure_given_back_is_told(error: Any) -> None:
    """The notes say why, without a key; the run is incomplete, for it could not look there."""
    nothing: Any = RunnableLambda(lambda query: [])
    graph = build_crag(
        nothing,
        chat_model("extractive"),
        web_search=RunnableLambda(lambda query: {"error": error}),
        output="full",
    )
    question: Any = {"question": "When does the fan start?"}
    for result in (graph.invoke(question), await graph.ainvoke(question)):
        assert result["status"] == "incomplete"
        assert any("failed" in note and "quota used up" in note for note in result["notes"])
        assert "sk-abc" not in str(result["notes"])
