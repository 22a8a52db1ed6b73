"""The retriever around the rerankers: chains, cuts, budgets, failures, filters, provenance."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.cross_encoders import BaseCrossEncoder
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda
from support.rewriters import Scripted, Words, both, both_raise, corpus, ids, notes

from rag_kit.documents import get_provenance, with_provenance
from rag_kit.errors import BranchError, BudgetExceededError, InvalidInputError, ModelOutputError
from rag_kit.indexing import DocumentIndex
from rag_kit.models.wheels.files import is_installed
from rag_kit.retrieval import (
    BM25Retriever,
    PointwiseReranker,
    RerankRetriever,
    index_retriever,
)
from rag_kit.retrieval.rerank.base import Ranking, Reranker
from rag_kit.retrieval.rerank.model import ListwiseReranker
from rag_kit.retrieval.rerank.retriever import ScoreGap

QUESTION = "Which fan is loud?"
DOCS = corpus(a="fan is loud which", b="fan is loud", c="fan loud", d="fan", e="loud")
LENGTHS = {"a": 0.1, "b": 0.9, "c": 0.5, "d": 0.7, "e": 0.3}


def scores(query: str, documents: list[Document]) -> list[float]:
    """A reranker by table."""
    return [LENGTHS[str(doc.id)] for doc in documents]


def made(reranker: Any = scores, words: Any = None, **settings: Any) -> RerankRetriever:
    return RerankRetriever(retriever=words or Words(docs=DOCS), reranker=reranker, **settings)


def failing(query: str, documents: list[Document]) -> list[float]:
    raise ConnectionError("the reranker is down, api_key=sk-canary12345")


async def test_differs_from_its_inner_retriever() -> None:
    """The order is the reranker's, not the inner retriever's."""
    retriever = made()
    assert ids(retriever.retriever.invoke(QUESTION))[:4] == ["a", "b", "c", "d"]
    assert ids(await both(retriever, QUESTION)) == ["b", "d", "c", "e"]


async def test_candidates() -> None:
    """fetch_k candidates are asked for, five times k by default, at least 20 and never fewer than k; k come back."""
    words = Words(docs=DOCS)
    for settings, call, asked in (
        ({"k": 5}, {}, 25),
        ({"k": 5}, {"k": 1}, 20),
        ({"k": 2, "fetch_k": 4}, {}, 4),
        ({"k": 2, "fetch_k": 4}, {"k": 9}, 9),
        ({"k": 90}, {}, 100),
    ):
        words.asked.clear()
        found = await both(made(words=words, **settings), QUESTION, **call)
        assert {request.k for _, request in words.asked} == {asked}
        assert len(found) == min(call.get("k", settings["k"]), len(DOCS))


async def test_provenance() -> None:
    """Each stage holds score and rank before and after, as plain JSON."""
    found = await both(made(), QUESTION)
    record = get_provenance(found[0])
    assert record["rank"] == 1 and record["score"] == 0.9
    last = record["stages"][-1]
    assert last["stage"] == "rerank:scores" and last["rank"] == 1 and last["rank_before"] == 2
    assert last["score"] == 0.9 and last["score_before"] is None and last["query"] == QUESTION
    bm25 = RerankRetriever(retriever=BM25Retriever.from_texts(["a fan"]), reranker=lambda q, d: [1])
    stages = get_provenance(bm25.invoke("fan")[0])["stages"]
    assert [stage["stage"] for stage in stages] == ["bm25", "rerank:function"]
    assert stages[1]["score_before"] == stages[0]["score"]
    json.dumps([doc.metadata for doc in found], allow_nan=False)


async def test_results_are_copies() -> None:
    """The inner retriever's documents cannot be changed by the reranker or the caller."""

    def spoils(query: str, documents: list[Document]) -> list[float]:
        for doc in documents:
            doc.metadata.clear()
        return [1.0] * len(documents)

    found = await both(made(spoils), QUESTION)
    found[0].metadata["name"] = "changed"
    assert [doc.metadata for doc in DOCS] == [{"name": name} for name in "abcde"]


async def test_chain() -> None:
    """Several rerankers work in turn; depth leaves the rest behind in its order, without a score."""

    def reverse(query: str, documents: list[Document]) -> list[float]:
        return [float(place) for place in range(len(documents))]

    from rag_kit.retrieval.rerank.scorers import FunctionReranker

    chain = made([scores, FunctionReranker(reverse, depth=2)], k=5)
    found = await both(chain, QUESTION)
    assert ids(found) == ["d", "b", "c", "e", "a"]
    assert [get_provenance(doc)["score"] for doc in found] == [1.0, 0.0, None, None, None]
    stages = [stage["stage"] for stage in get_provenance(found[0])["stages"]]
    assert stages == ["rerank:scores", "rerank:reverse"]
    assert get_provenance(found[2])["stages"][-1]["judged"] is False
    assert ids(await both(chain, QUESTION, k=1)) == ["d"]
    cut = made([scores, FunctionReranker(reverse, depth=2)], k=5, score_threshold=-1)
    assert ids(await both(cut, QUESTION)) == ["d", "b"]


async def test_threshold() -> None:
    """Lower scores are left out and that is told; a score equal to the threshold stays."""
    found = await both(made(score_threshold=0.5), QUESTION)
    assert ids(found) == ["b", "d", "c"]
    assert "2 of 5 passages below score_threshold=0.5 left out" in notes(found)
    assert await both(made(score_threshold=2.0), QUESTION) == []


async def test_score_gap() -> None:
    """The result ends before the largest drop of the scores; k stays the most."""
    table = {"a": 0.93, "b": 0.9, "c": 0.41, "d": 0.4, "e": 0.38}

    def judged(query: str, documents: list[Document]) -> list[float]:
        return [table[str(doc.id)] for doc in documents]

    found = await both(made(judged, score_gap=True), QUESTION)
    assert ids(found) == ["a", "b"] and any("drop of the score from 0.9 to 0.41" in n for n in notes(found))
    assert ids(await both(made(judged, score_gap=ScoreGap(min_k=3)), QUESTION, k=5)) == ["a", "b", "c", "d"]
    assert ids(await both(made(judged, score_gap=True), QUESTION, k=1)) == ["a"]
    assert ids(await both(made(judged), QUESTION, k=5)) == ["a", "b", "c", "d", "e"]


@pytest.mark.parametrize(
    ("gap", "given_scores", "k", "kept"),
    [
        (ScoreGap(), [0.9, 0.88, 0.3, 0.28], 4, 2),
        (ScoreGap(), [0.9, 0.1], 4, 1),
        (ScoreGap(), [0.5, 0.5, 0.5], 4, 3),
        (ScoreGap(), [], 4, 0),
        (ScoreGap(), [3.0], 4, 1),
        (ScoreGap(), [5, 5, 5, 5, 1], 4, 4),
        (ScoreGap(), [4.0, 3.0, 2.0, 1.0], 4, 3),
        (ScoreGap(min_k=2), [9.0, 1.0, 0.9, 0.1], 4, 3),
        (ScoreGap(max_k=2), [9.0, 8.0, 7.5, 0.1], 4, 1),
        (ScoreGap(min_k=5), [4.0, 1.0, 0.5], 2, 2),
        (ScoreGap(), [-1.0, -1.2, -9.0], 4, 2),
    ],
)
def test_gap_rule(gap: ScoreGap, given_scores: list[float], k: int, kept: int) -> None:
    """The largest drop between min_k and max_k; the later of equal ones; all where nothing drops."""
    assert gap.cut(given_scores, k) == kept


@given(st.lists(st.floats(-100, 100), max_size=12), st.integers(1, 12), st.integers(1, 12))
def test_gap_bounds(values: list[float], k: int, least: int) -> None:
    """Whatever the scores, at least min_k (as far as there are so many) and at most k stay."""
    kept = ScoreGap(min_k=least).cut(sorted(values, reverse=True), k)
    assert min(least, k, len(values)) <= kept <= min(k, len(values))


async def test_token_budget() -> None:
    """Passages that do not fit are left out with a note; smaller ones after them still come."""

    def words_in(text: str) -> int:
        return len(text.split())

    found = await both(made(token_budget=4, count_tokens=words_in), QUESTION, k=5)
    assert ids(found) == ["b", "d"] and "3 passages left out that did not fit into token_budget=4" in notes(
        found
    )
    assert ids(await both(made(token_budget=1, count_tokens=words_in), QUESTION)) == ["d"]
    assert ids(await both(made(token_budget=3), QUESTION)) == ["b"]  # 11 characters, by estimate


async def test_lost_in_the_middle() -> None:
    """The best stand first and last, the weakest in the middle; the ranks stay."""
    found = await both(made(lost_in_the_middle=True), QUESTION, k=5)
    assert ids(found) == ["b", "c", "a", "e", "d"]
    assert [get_provenance(doc)["rank"] for doc in found] == [1, 3, 5, 4, 2]


async def test_a_failing_reranker_keeps_the_order() -> None:
    """By default the inner order comes back with a note, without keys; threshold and gap are not applied."""
    retriever = made(failing, score_threshold=0.5, score_gap=True)
    found = await both(retriever, QUESTION)
    assert ids(found) == ["a", "b", "c", "d"]
    told = " ".join(notes(found))
    assert "degraded: rerank:failing failed: ConnectionError" in told and "the order stays" in told
    assert "not applied" in told and "canary" not in told
    after = await both(made([failing, scores], score_threshold=0.5), QUESTION)
    assert ids(after) == ["b", "d", "c"] and "degraded: rerank:failing" in " ".join(notes(after))


async def test_raise_policy() -> None:
    """on_error="raise" raises; a failing inner retriever raises always, since nothing is left."""
    for call in (made(failing, on_error="raise"), made(words=Words(docs=DOCS, fail_on="fan"))):
        await both_raise(BranchError, "down", call, QUESTION)


@pytest.mark.parametrize(
    "bad",
    [lambda q, d: [1.0], lambda q, d: None, lambda q, d: ["x"] * len(d), lambda q, d: [float("nan")] * 5],
)
async def test_useless_scores(bad: Any) -> None:
    """A wrong number of scores, or none that is a number, is a failure: nobody guesses whose score is whose."""
    found = await both(made(bad), QUESTION)
    assert ids(found) == ["a", "b", "c", "d"] and "degraded" in notes(found)[0]
    with pytest.raises(ModelOutputError):
        made(bad, on_error="raise").invoke(QUESTION)


async def test_missing_scores() -> None:
    """A passage without a usable score stays in its place, above any threshold, and the notes say so."""

    def some(query: str, documents: list[Document]) -> list[Any]:
        return [float("nan") if doc.id == "b" else LENGTHS[str(doc.id)] for doc in documents]

    found = await both(made(some, score_threshold=0.5), QUESTION)
    assert ids(found) == ["d", "b", "c"]
    assert "degraded: 1 of 5 passages got no score and stay in their place" in notes(found)


async def test_a_reranker_that_loses_documents() -> None:
    """A ranking that loses or repeats a document is a failure."""

    class Loses(Reranker):
        name = "loses"

        async def rank(self, query: str, documents: Any, call: Any) -> Any:
            return Ranking([0, 0, 1, 2, 3], [1.0] * 5)

    found = await both(made(Loses()), QUESTION)
    assert ids(found) == ["a", "b", "c", "d"] and "exactly once" in notes(found)[0]


async def test_repeated_documents() -> None:
    """A document that the inner retriever gives twice is judged once."""
    found = await both(made(words=RunnableLambda(lambda query: [*DOCS, DOCS[1]])), QUESTION, k=9)
    assert ids(found) == ["b", "d", "c", "e", "a"] and "1 repeated passage" in notes(found)[0]


async def test_budgets() -> None:
    """Caps on calls, and a deadline, end the reranking and are told; the documents still come."""
    reply = '{"relevant": true, "score": 1, "reason": "r"}'
    model = Scripted(script=reply)
    found = await both(made(PointwiseReranker(model), max_calls=0), QUESTION)
    assert ids(found) == ["a", "b", "c", "d"] and model.prompts == []
    assert any("budget of calls" in note for note in notes(found))
    found = await both(made(PointwiseReranker(model), max_calls=2), QUESTION)
    assert any("3 of 5 passages got no grade" in note for note in notes(found))
    assert [get_provenance(doc)["score"] for doc in found] == [1.0, 1.0, None, None]
    with pytest.raises(BudgetExceededError):
        made(PointwiseReranker(model), max_calls=0, on_error="raise").invoke(QUESTION)
    slow = made(PointwiseReranker(Scripted(script=reply, delay=3)), deadline=0.4)
    for call in (lambda: slow.invoke(QUESTION), lambda: asyncio.run(slow.ainvoke(QUESTION))):
        begun = time.monotonic()
        found = await asyncio.to_thread(call)
        assert time.monotonic() - begun < 1.8 and ids(found) == ["a", "b", "c", "d"]
        assert any(note.startswith("degraded") for note in notes(found))


def test_wrong_arguments() -> None:
    """Wrong retrievers, rerankers and values are refused at construction, by name."""
    model = Scripted(script="")
    for settings, says in (
        ({"words": "bm25"}, "retriever is str"),
        ({"reranker": "cohere"}, "reranker is 'cohere'"),
        ({"reranker": []}, "empty list"),
        ({"reranker": model}, r"PointwiseReranker\(model\)"),
        ({"token_budget": 0}, "token_budget=0"),
        ({"score_gap": 3}, "score_gap"),
        ({"score_threshold": float("nan")}, "score_threshold"),
        ({"reranker": ListwiseReranker(model), "score_threshold": 0.5}, "without scores"),
        ({"reranker": ListwiseReranker(model), "score_gap": True}, "without scores"),
        ({"reranker": ListwiseReranker(model), "blend": 0.5}, "gives no scores"),
        *(({"blend": share}, "blend") for share in (0.0, -0.5, 1.5, float("nan"), "half")),
    ):
        with pytest.raises(InvalidInputError, match=says):
            made(**settings)
    for wrong in ({"min_k": 0}, {"min_k": 3, "max_k": 2}):
        with pytest.raises(InvalidInputError):
            ScoreGap(**wrong)
    with pytest.raises(InvalidInputError, match="allowed: filter, k, shown"):
        made().invoke(QUESTION, None, top_n=3)


def first_scores(**values: float | None) -> RunnableLambda[str, list[Document]]:
    """A retriever of these documents with these scores, best first."""
    found = [
        with_provenance(
            Document(name, id=name), score=score, rank=rank, stage="dense", retriever="x", query="q"
        )
        for rank, (name, score) in enumerate(values.items(), start=1)
    ]
    return RunnableLambda(lambda query: found)


def by_table(**table: float | None) -> Any:
    return lambda query, documents: [table[str(doc.id)] for doc in documents]


async def test_blended_scores_are_the_mean_of_both_in_standard_deviations() -> None:
    """By hand: z-scores of 3, 2, 1 are 1.2247, 0, -1.2247; the reranker's of 10, 40, 40 are -1.4142, .7071, .7071."""
    words, table = first_scores(a=3.0, b=2.0, c=1.0), by_table(a=10.0, b=40.0, c=40.0)
    found = await both(made(table, words, blend=0.5), QUESTION)
    assert ids(found) == ["b", "a", "c"]
    last = [get_provenance(doc)["stages"][-1] for doc in found]
    assert [round(stage["score"], 4) for stage in last] == [0.3536, -0.0947, -0.2588]
    assert [stage["reranker_score"] for stage in last] == [40.0, 10.0, 40.0]
    assert ids(await both(made(table, words, blend=1.0), QUESTION)) == ["b", "c", "a"]
    assert ids(await both(made(table, words, blend=0.2), QUESTION)) == ["a", "b", "c"]


async def test_blending_looks_at_the_first_twenty_and_keeps_what_was_not_judged() -> None:
    """The 21st stays the 21st however good it is; a passage without a score keeps its place, with a note."""
    many = {f"d{n}": float(100 - n) for n in range(25)}
    reversing = by_table(**{name: -value for name, value in many.items()})
    found = await both(made(reversing, first_scores(**many), blend=1.0, k=25), QUESTION)
    assert ids(found) == [f"d{n}" for n in [*range(19, -1, -1), *range(20, 25)]]
    found = await both(
        made(by_table(a=1.0, b=None, c=2.0), first_scores(a=3.0, b=2.0, c=1.0), blend=1.0), QUESTION
    )
    assert ids(found) == ["c", "b", "a"] and any("no score" in note for note in notes(found))


async def test_blending_without_first_scores_uses_the_ranks_and_says_so() -> None:
    """A retriever that gives no scores counts by its ranks."""
    found = await both(
        made(by_table(a=1.0, b=1.0, c=1.0), first_scores(a=None, b=None, c=None), blend=0.5), QUESTION
    )
    assert ids(found) == ["a", "b", "c"] and any("ranks" in note for note in notes(found))


async def test_a_very_long_question_is_not_reranked() -> None:
    """Over max_query_tokens the first order stays, in either language, and a note says so."""
    retriever = made(by_table(a=1.0, b=2.0), first_scores(a=3.0, b=2.0), max_query_tokens=20)
    assert ids(await both(retriever, "Which fan?")) == ["b", "a"]
    for question in ("Which fan is loud? " * 20, "哪个风扇的声音最大？" * 20):
        found = await both(retriever, question)
        assert ids(found) == ["a", "b"] and any("max_query_tokens=20" in note for note in notes(found))


async def test_a_reranker_that_reads_english_leaves_chinese_as_it_is() -> None:
    """The order of a Chinese question stays, with a note; an English one is reranked."""

    class English(BaseCrossEncoder):
        english_only = True

        def score(self, text_pairs: Any) -> list[float]:
            return [float(len(text_pairs) - place) * -1 for place in range(len(text_pairs))]

    retriever = made(English(), first_scores(a=3.0, b=2.0))
    assert ids(await both(retriever, "Which fan is loud?")) == ["b", "a"]
    found = await both(retriever, "哪个风扇最响？")
    assert ids(found) == ["a", "b"] and any("reads English only" in note for note in notes(found))


@pytest.mark.skipif(not is_installed("cross-encoder"), reason="rag-kit models install cross-encoder")
def test_index_retriever_reranks(tmp_path: Path) -> None:
    """The passage that answers comes first with fewer shared words; the first score is in the provenance."""
    texts = {
        "names": "Pump: start, degrees. Pump, start, degrees.",
        "answer": "The pump turns on at 40 degrees.",
    }
    with DocumentIndex.create(tmp_path / "index") as index:
        index.upsert([Document(text, id=name) for name, text in texts.items()])
        question = "At how many degrees does the pump start?"
        assert ids(index_retriever(index, "bm25").invoke(question)) == ["names", "answer"]
        found = index_retriever(index, "bm25", k=1, reranker="cross-encoder").invoke(question)
        stage = get_provenance(found[0])["stages"][-1]
        assert len(found) == 1 and stage["stage"] == "rerank:cross_encoder" and "reranker_score" in stage
        reordered = RerankRetriever(retriever=index_retriever(index, "bm25"), reranker="cross-encoder")
        assert ids(reordered.invoke(question)) == ["answer", "names"]
