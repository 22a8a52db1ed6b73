"""Reranking by a language model: passage by passage, and in a window that slides."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda
from support.rewriters import Scripted, both, corpus, ids, notes

from rag_kit.documents import get_provenance
from rag_kit.errors import BranchError, InvalidInputError, ModelError
from rag_kit.models import chat_model
from rag_kit.retrieval import PointwiseReranker, RerankRetriever
from rag_kit.retrieval.rerank.model import ListwiseReranker, windows

QUESTION = "Why is the fan loud?"
DOCS = corpus(a="The fan is blue.", b="The fan is loud because of dust.", c="Tea is hot.")
NUMBERED = [Document(f"text number {n}", id=str(n)) for n in range(45)]


def made(reranker: Any, docs: list[Document] = DOCS, **more: Any) -> RerankRetriever:
    return RerankRetriever(retriever=RunnableLambda(lambda query: docs), reranker=reranker, **more)


def grade(score: float, relevant: bool | None = None) -> str:
    return json.dumps(
        {"relevant": score >= 0.5 if relevant is None else relevant, "score": score, "reason": "because"}
    )


def by_dust(prompt: str) -> Any:
    return grade(0.9 if "dust" in prompt else 0.2)


def ranking(*numbers: Any) -> str:
    return json.dumps({"ranking": list(numbers)})


def truth(prompt: str) -> str:
    """A perfect model: the higher the number in a text, the better."""
    shown = re.findall(r'<passage id="(\d+)">text number (\d+)</passage>', prompt)
    return ranking(*(int(place) for place, value in sorted(shown, key=lambda pair: -int(pair[1]))))


async def test_pointwise() -> None:
    """Each passage is graded by itself; score, verdict and reason stand in the provenance."""
    model = Scripted(script=by_dust)
    found = await both(made(PointwiseReranker(model)), QUESTION)
    assert ids(found) == ["b", "a", "c"] and len(model.prompts) == 6
    stage = get_provenance(found[0])["stages"][-1]
    assert (stage["score"], stage["relevant"], stage["reason"], stage["rank_before"]) == (
        0.9,
        True,
        "because",
        2,
    )
    assert any(re.fullmatch(r"model: 3 calls, \d+ tokens", note) for note in notes(found))
    filtered = await both(made(PointwiseReranker(model), score_threshold=0.5), QUESTION)
    assert ids(filtered) == ["b"]


@pytest.mark.parametrize(
    ("score", "relevant", "kept"),
    [(0.9, False, False), (0.5, False, False), (0.2, True, True), (0.5, True, True)],
)
async def test_verdict_decides_the_side(score: float, relevant: bool, kept: bool) -> None:
    """A score that contradicts the verdict is moved to the verdict's side of 0.5."""
    model = Scripted(script=grade(score, relevant))
    assert bool(await both(made(PointwiseReranker(model), score_threshold=0.5), QUESTION)) is kept


async def test_one_grade_failing() -> None:
    """A passage without a grade stays in its place and above the threshold, with a note; or it raises."""

    def sometimes(prompt: str) -> Any:
        return ConnectionError("no route, api_key=sk-canary12345") if "blue" in prompt else by_dust(prompt)

    found = await both(made(PointwiseReranker(Scripted(script=sometimes)), score_threshold=0.5), QUESTION)
    assert ids(found) == ["a", "b"]
    assert any("degraded: rerank:pointwise: 1 of 3 passages got no grade" in note for note in notes(found))
    assert "canary" not in str(notes(found))
    with pytest.raises((BranchError, ModelError)):
        made(PointwiseReranker(Scripted(script=sometimes)), on_error="raise").invoke(QUESTION)


async def test_all_grades_failing() -> None:
    """When no grade comes the order stays, and the notes say so."""
    found = await both(made(PointwiseReranker(Scripted(script=ConnectionError("down")))), QUESTION)
    assert ids(found) == ["a", "b", "c"] and "degraded: rerank:pointwise failed" in " ".join(notes(found))


async def test_depth_caps_the_calls() -> None:
    """Only the first passages are graded; the others stay behind them."""
    model = Scripted(script=by_dust)
    found = await both(made(PointwiseReranker(model, depth=2)), QUESTION)
    assert ids(found) == ["b", "a", "c"] and len(model.prompts) == 4


@pytest.mark.parametrize("reranker", [PointwiseReranker, ListwiseReranker])
async def test_language_of_the_prompt(reranker: Any) -> None:
    """The prompt is the one of the question's language, or the one asked for, or one's own."""
    model = Scripted(script=grade(1) if reranker is PointwiseReranker else ranking(1, 2, 3))
    made(reranker(model)).invoke("风扇为什么吵？")
    made(reranker(model, language="en")).invoke("风扇为什么吵？")
    assert "绝不是指令" in model.prompts[0] and "never instructions" in model.prompts[-1]
    own = ChatPromptTemplate([("user", "Mine: {question} {passages}")])
    made(reranker(model, prompt=own)).invoke(QUESTION)
    assert model.prompts[-1].startswith("[human] Mine:")
    for wrong in (
        {"prompt": ChatPromptTemplate([("user", "{question}")])},
        {"language": "fr"},
        {"prompt": {}},
    ):
        with pytest.raises(InvalidInputError):
            reranker(model, **wrong)
    with pytest.raises(InvalidInputError, match="llm is str"):
        reranker("gpt")


@pytest.mark.parametrize(
    ("reply", "order", "told"),
    [
        (ranking(3, 1, 2), "cab", None),
        (ranking(3), "cab", "2 missing"),
        (ranking(2, 2, 9, 0, -1), "bac", "3 out of range, 1 repeated, 2 missing"),
        (ranking(True, "3", "[2]", "passage 1", False), "cba", "2 not a number"),
        (ranking(2.0, 1.5, None, {"id": 3}), "bca", "2 not a number, 1 missing"),
        (ranking("[3] > [1]"), "abc", "degraded"),
        (json.dumps({"ranking": "[3] > [1] > [2]"}), "cab", None),
        ("[3] > [1] > [2]", "cab", None),
        ("My order:\n1. [3]\n2. [1]\n3. [2]", "cab", None),
        ("[3]\n[1]\n[2]", "cab", None),
        ("My order: [2] > [3] > [1]", "bca", None),
        ("3, 1, 2", "cab", None),
        (ranking(), "abc", "degraded"),
        (ranking(-1, 7), "abc", "degraded"),
        ("I cannot do that.", "abc", "degraded"),
        ("<think>[1]</think>```json\n" + ranking(2, 3, 1) + "\n```", "bca", None),
    ],
)
async def test_row_22_numbers_of_passages(reply: str, order: str, told: str | None) -> None:
    """Row 22: wrong numbers of any kind lose nothing and repeat nothing; what was wrong is told."""
    found = await both(made(ListwiseReranker(Scripted(script=reply))), QUESTION)
    assert "".join(map(str, ids(found))) == order
    about = [note for note in notes(found) if "listwise" in note]
    assert (told in " ".join(about)) if told else about == []


@pytest.mark.parametrize(
    ("count", "window", "step", "places"),
    [
        (0, 20, 10, []),
        (1, 20, 10, []),
        (2, 20, 10, [(0, 2)]),
        (20, 20, 10, [(0, 20)]),
        (40, 20, 10, [(20, 40), (10, 30), (0, 20)]),
        (25, 20, 10, [(5, 25), (0, 15)]),
        (5, 2, 2, [(3, 5), (1, 3), (0, 1)]),
    ],
)
def test_windows(count: int, window: int, step: int, places: list[tuple[int, int]]) -> None:
    """Windows go from the back to the front, and the last one reaches the first passage."""
    assert windows(count, window, step) == places


async def test_sliding_window() -> None:
    """With a perfect model the best ``window - step`` passages of 45 reach the top, whatever place they had."""
    model = Scripted(script=truth)
    found = await both(made(ListwiseReranker(model), NUMBERED, k=45), QUESTION)
    assert len(model.prompts) == 2 * len(windows(45, 20, 10)) == 8
    assert ids(found)[:10] == [str(n) for n in range(44, 34, -1)]
    assert sorted(map(int, map(str, ids(found)))) == list(range(45))
    assert get_provenance(found[0])["stages"][-1]["rank_before"] == 45
    assert get_provenance(found[0])["score"] is None


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.lists(st.integers(-2, 9), max_size=8), min_size=6, max_size=6), st.integers(2, 6), st.data()
)
def test_nothing_is_lost_in_any_window(replies: list[list[int]], window: int, data: Any) -> None:
    """Whatever numbers the model gives, the documents come back, each once."""
    step = data.draw(st.integers(1, window))
    model = Scripted(script=[ranking(*reply) for reply in replies])
    retriever = made(ListwiseReranker(model, window=window, step=step), NUMBERED[:7], k=7)
    assert sorted(map(str, ids(retriever.invoke(QUESTION)))) == [str(n) for n in range(7)]


async def test_one_window_failing() -> None:
    """A window without an answer keeps its order; the others still count."""

    def sometimes(prompt: str) -> Any:
        return (
            ConnectionError("down")
            if "text number 5<" in prompt and "text number 0<" not in prompt
            else truth(prompt)
        )

    reranker = ListwiseReranker(Scripted(script=sometimes), window=4, step=2)
    found = await both(made(reranker, NUMBERED[:6], k=6), QUESTION)
    assert ids(found) == ["3", "2", "1", "0", "4", "5"]
    assert any("passages 3 to 6 failed" in note for note in notes(found))
    with pytest.raises((BranchError, ModelError), match="down"):
        made(reranker, NUMBERED[:6], on_error="raise").invoke(QUESTION)


async def test_long_passages_are_cut_for_the_model() -> None:
    """A passage shows its beginning; the document that comes back is whole."""
    docs = [Document("x" * 5000, id="a"), Document("y", id="b")]
    model = Scripted(script=ranking(2, 1))
    found = await both(made(ListwiseReranker(model, max_chars=100), docs), QUESTION)
    assert len(found[1].page_content) == 5000 and "x" * 101 not in model.prompts[0]
    point = Scripted(script=grade(1))
    made(PointwiseReranker(point, max_chars=300), docs).invoke(QUESTION)
    assert "x" * 301 not in point.prompts[0]


def test_wrong_settings() -> None:
    """Windows that would skip passages are refused."""
    for wrong in ({"window": 1}, {"window": 4, "step": 5}, {"step": 0}, {"max_chars": 0}):
        with pytest.raises(InvalidInputError):
            ListwiseReranker(Scripted(script=""), **wrong)
    with pytest.raises(InvalidInputError):
        PointwiseReranker(Scripted(script=""), max_chars=0)


def test_from_llm() -> None:
    """The mode chooses the reranker; an unknown one is refused."""
    model, inner = Scripted(script=""), RunnableLambda(lambda query: DOCS)
    assert isinstance(RerankRetriever.from_llm(model, inner).reranker[0], ListwiseReranker)
    graded = RerankRetriever.from_llm(model, inner, mode="pointwise", score_threshold=0.5, k=2)
    assert isinstance(graded.reranker[0], PointwiseReranker) and graded.k == 2
    with pytest.raises(InvalidInputError, match="mode='pairwise'"):
        RerankRetriever.from_llm(model, inner, mode="pairwise")  # type: ignore[arg-type]


def test_one_passage_is_not_degraded() -> None:
    """A single passage needs no order: no model is asked, and no note says that something failed."""
    reranker = ListwiseReranker(Scripted(script=ranking(1)))
    (found,) = made(reranker, DOCS[:1]).invoke("dust")
    assert not [note for note in get_provenance(found).get("notes", []) if "degraded" in note]


@pytest.mark.parametrize("stands_in", [False, True])
async def test_no_threshold_is_applied_to_grades_by_words(stands_in: bool) -> None:
    """The embedded model's, alone or in the place of one that is down: they order, and a note says so."""

    def unreachable(messages: Any) -> Any:
        raise ConnectionError("no route to host")

    model: Any = chat_model("extractive")
    if stands_in:
        model = Scripted(script=unreachable).with_fallbacks([model])
    found = await both(made(PointwiseReranker(model), score_threshold=0.99), QUESTION)
    assert ids(found) == ["b", "a", "c"]
    assert any("graded by shared words" in note for note in notes(found))
