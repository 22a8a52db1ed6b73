"""Query vectors that are kept for a block."""

from __future__ import annotations

import pytest
from langchain_core.embeddings import Embeddings

from rag_kit.concurrency import fan_out
from rag_kit.concurrency.steps import arun
from rag_kit.errors import BranchTimeoutError, RagKitError
from rag_kit.models.clients import (
    embed_documents,
    embed_logic,
    embed_query,
    give_up_vectors,
    keep_query_vectors,
    prepare_vectors,
    prepared_vector,
    share_vectors,
)


class Counting(Embeddings):
    """One number a text, and which texts were asked for."""

    def __init__(self, factor: float = 1.0) -> None:
        self.factor, self.asked = factor, list[str]()

    def embed_query(self, text: str) -> list[float]:
        """The length of the text."""
        self.asked.append(text)
        if not text:
            raise ValueError("empty")
        return [len(text) * self.factor]

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """As queries."""
        return [self.embed_query(text) for text in texts]


async def test_a_query_is_embedded_once_a_model_in_a_block() -> None:
    """Sync, async and on threads; another model and another block embed anew; documents are no queries."""
    one, two = Counting(), Counting(2.0)
    with keep_query_vectors() as kept:
        first = embed_query(one, "湖")
        assert await arun(embed_logic(one, "query", "湖")) == first == [1.0] and embed_query(two, "湖") == [
            2.0
        ]
        assert fan_out([lambda: embed_query(one, "湖")] * 3).values == [first] * 3
        first.append(9.0)  # what one caller does to its vector is not seen by the next
        assert embed_query(one, "湖") == [1.0] and kept.saved_seconds > 0
        embed_documents(one, ["湖"])
    assert (one.asked, two.asked) == (["湖", "湖"], ["湖"])
    embed_query(one, "湖")
    assert len(one.asked) == 3


def test_a_failure_is_not_kept() -> None:
    """The next call asks again."""
    model = Counting()
    with keep_query_vectors():
        for _ in range(2):
            with pytest.raises(RagKitError):
                embed_query(model, "")
    assert model.asked == ["", ""]


class Late(Counting):
    """Takes too long for a request of several queries."""

    def embed_queries(self, texts: list[str]) -> list[list[float]]:
        """No vectors."""
        raise BranchTimeoutError("embedding took too long")


async def test_searches_meet_the_first_time_out_of_a_vector_that_is_late() -> None:
    """A later one, of another branch that asked for the same, does not take its place."""
    model = Late()
    with share_vectors():
        with pytest.raises(BranchTimeoutError):
            await arun(prepare_vectors(model, ["湖", "海"]))
        give_up_vectors(["湖"], BranchTimeoutError("after 2 s"))
        give_up_vectors(["湖", "海"], BranchTimeoutError("after 9 s"))
        with pytest.raises(BranchTimeoutError, match="after 2 s"):
            prepared_vector(model, "湖")
        with pytest.raises(BranchTimeoutError, match="after 9 s"):
            prepared_vector(model, "海")
        assert prepared_vector(model, "山") is None
