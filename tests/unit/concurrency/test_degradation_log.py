"""A degraded search is told in the log once for each cause."""

from __future__ import annotations

import logging

import pytest
from langchain_core.language_models import FakeListChatModel
from langchain_core.runnables import RunnableLambda

from rag_kit.concurrency.branches import log_degraded
from rag_kit.documents import get_provenance
from rag_kit.retrieval import BM25Retriever, EnsembleRetriever, MultiQueryRetriever

log = logging.getLogger("rag_kit.test_telling")


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


def test_a_cause_is_told_once_whatever_numbers_it_holds(caplog: pytest.LogCaptureFixture) -> None:
    """Another retriever, or another note, is another cause; later ones are debug lines."""
    with caplog.at_level(logging.DEBUG):
        for seconds in range(200):
            log_degraded(log, "A", f"degraded: dense did not answer in time: {seconds}.5 s")
        log_degraded(log, "B", "degraded: dense did not answer in time: 1 s")
        log_degraded(log, "A", "degraded: dense failed: ValueError")
    assert len(warnings(caplog)) == 3 and len(caplog.records) == 202


def test_what_is_kept_in_mind_is_bounded(caplog: pytest.LogCaptureFixture) -> None:
    """Thousands of causes do not grow the memory; one that was long ago is told again."""
    for number in range(3_000):
        log_degraded(log, "A", "degraded: " + "x" * (number % 600) + "y" * (number // 600))
    caplog.clear()
    log_degraded(log, "A", "degraded: ")
    assert len(warnings(caplog)) == 1


async def test_two_hundred_questions_make_one_line_and_each_document_says_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A model that fails, a branch that fails: one warning for each, a note on every document."""

    def fails(_: object) -> str:
        raise ConnectionError("refused")

    plain = BM25Retriever.from_texts(["Tea is hot.", "Ice is cold."], k=1)
    rewriting = MultiQueryRetriever(
        retriever=plain, llm=FakeListChatModel(responses=["x"]) | RunnableLambda(fails)
    )
    ensemble = EnsembleRetriever(retrievers=[plain, RunnableLambda(fails)])
    for retriever in (rewriting, ensemble):
        caplog.clear()
        for number in range(20):
            for found in (
                retriever.invoke(f"How hot is tea number {number}?"),
                await retriever.ainvoke(f"How hot is the tea of {number}?"),
            ):
                assert any(note.startswith("degraded") for note in get_provenance(found[0])["notes"])
        told = [text for text in warnings(caplog) if "degraded" in text]
        assert 1 <= len(told) <= 2 and "this warning comes once" in told[0], told
