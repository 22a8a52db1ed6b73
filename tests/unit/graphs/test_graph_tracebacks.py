"""How long a traceback out of a user's part of a graph is."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Any

import pytest
from langchain_core.retrievers import BaseRetriever

import rag_kit.errors
from rag_kit.graphs import build_crag, build_plain_rag
from rag_kit.models import chat_model
from rag_kit.retrieval import EnsembleRetriever

OURS = str(Path(rag_kit.__file__).parent)


class Broken(BaseRetriever):
    """A user's retriever with a fault."""

    def _get_relevant_documents(self, query: str, **_: Any) -> Any:
        raise ZeroDivisionError("in the user's code")


@pytest.mark.parametrize("build", [build_plain_rag, build_crag])
@pytest.mark.parametrize("native", [False, True], ids=["invoke", "ainvoke"])
async def test_a_traceback_shows_few_frames_of_the_kit(build: Any, native: bool) -> None:
    """At most 12 with those of the cause, and the line of the user's retriever that raised."""
    graph = build(EnsembleRetriever(retrievers=[Broken(), Broken()]), chat_model("extractive"))
    question = {"question": "When does the pump start?"}
    with pytest.raises(rag_kit.errors.BranchError) as caught:
        await graph.ainvoke(question) if native else graph.invoke(question)
    frames: list[traceback.FrameSummary] = []
    error: BaseException | None = caught.value
    while error is not None:
        frames += traceback.extract_tb(error.__traceback__)
        error = error.__cause__
    assert sum(frame.filename.startswith(OURS) for frame in frames) <= 12
    assert (frames[-1].filename, frames[-1].name) == (__file__, "_get_relevant_documents")
