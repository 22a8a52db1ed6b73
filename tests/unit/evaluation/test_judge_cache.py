"""A judge's cache that was tampered with: it costs requests, and never gives what a live reply could not."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
from langchain_core.language_models import FakeListChatModel
from support.judging import PROMPTS

from rag_kit.errors import ModelOutputError
from rag_kit.evaluation import Judge

VALUES = {"question": "Who?", "answer": "She came."}
LIVE = {"statements": ["live"]}


@pytest.fixture(autouse=True)
def _prompts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Prompt files of the tests' own, beside the packaged ones."""
    monkeypatch.setenv("RAG_KIT_PROMPTS", str(PROMPTS))


def judge_of(path: Path) -> Judge:
    """A judge that answers and embeds, with that cache."""
    model = FakeListChatModel(responses=['{"statements": ["live"]}'])
    return Judge(model, DeterministicFakeEmbedding(size=4), cache=path)


async def spoilt(path: Path, change: str, *values: Any) -> Judge:
    """A cache with a reply and two vectors, changed by SQL; a new judge over it."""
    judge = judge_of(path)
    await judge.ask("judge_statements", VALUES)
    await judge.embed(["x", "y"])
    assert judge._cache.file is not None
    connection = sqlite3.connect(path)
    with connection:
        connection.execute(change, values)
    connection.close()
    return judge_of(path)


ANSWERS = [
    "null", '"text"', "NaN", '{"statements": [NaN]}', "[1e200, 0, 0, 0]", "[" + "1" * 5000 + "]", "[5e-324, 0, 0, 0]",
    "[" * 100_000, b"\xff\xfe",
]  # fmt: skip


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda each: f"{each!r:.30}")
async def test_what_no_model_could_have_said_is_asked_again(answer: Any, tmp_path: Path) -> None:
    """Other types, numbers without measure: as if they were not there, for replies and vectors."""
    judge = await spoilt(tmp_path / "cache", "UPDATE answers SET answer = ?", answer)
    assert await judge.ask("judge_statements", VALUES) == LIVE
    expected = DeterministicFakeEmbedding(size=4).embed_documents(["x", "y"])
    assert await judge.embed(["x", "y"]) == expected
    assert (judge.usage["calls"], judge.usage["embedded"]) == (1, 2)


async def test_text_that_is_no_utf8_spoils_its_own_entry_alone(tmp_path: Path) -> None:
    """The other entries of the cache are still found."""
    change = "UPDATE answers SET answer = CAST(x'22ff22' AS TEXT) WHERE answer LIKE '%live%'"
    judge = await spoilt(tmp_path / "cache", change)
    assert await judge.ask("judge_statements", VALUES) == LIVE
    await judge.embed(["x", "y"])
    assert (judge.usage["calls"], judge.usage["embedded"]) == (1, 0)


@pytest.mark.parametrize("changed", ["first", "both"])
async def test_vectors_of_another_length_are_not_mixed(changed: str, tmp_path: Path) -> None:
    """Kept vectors that differ in length from one another, or from those that come, are made again."""
    path = tmp_path / "cache"
    limit = "AND key = (SELECT min(key) FROM answers WHERE answer LIKE '[%')" if changed == "first" else ""
    judge = await spoilt(path, f"UPDATE answers SET answer = '[1, 2]' WHERE answer LIKE '[%' {limit}")
    texts = ["x", "y"] if changed == "first" else ["x", "y", "z"]
    assert await judge.embed(texts) == DeterministicFakeEmbedding(size=4).embed_documents(texts)


@pytest.mark.parametrize("given", [[[10**400, 1]], [None], [["a"]], [[1.0], [1.0, 2.0]], [[float("inf")]], 5])
async def test_what_an_embedding_model_gives_is_checked(given: Any) -> None:
    """No vectors, or several lengths: an error of the model, whatever Python would make of it."""

    class Odd(Embeddings):
        def embed_query(self, text: str) -> list[float]:
            return [1.0]

        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return given  # type: ignore[no-any-return]

    texts = ["x", "y"] if isinstance(given, list) and len(given) == 2 else ["x"]
    with pytest.raises(ModelOutputError):
        await Judge(FakeListChatModel(responses=["x"]), Odd()).embed(texts)
