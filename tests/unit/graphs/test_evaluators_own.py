"""Evaluators of a user's own: what they may be, and what is told where one is wrong."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
import pytest
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda
from pydantic import BaseModel

from rag_kit.errors import InvalidInputError
from rag_kit.graphs import build_crag, build_self_rag, fit_thresholds
from rag_kit.graphs.evaluators.base import Evaluator, Grading
from rag_kit.models import chat_model
from rag_kit.retrieval import BM25Retriever

TEXTS = ["The fan starts at 60 degrees.", "The pump starts at 40 degrees."]
QUESTION = {"question": "When does the fan start?"}
PAIRS = [
    ("When does the fan start?", "The fan starts at 60 degrees.", True),
    ("When does the fan start?", "Bananas are yellow.", False),
    ("When does the pump start?", "The pump starts at 40 degrees.", True),
    ("When does the pump start?", "Grass is green.", False),
]


class Own(Evaluator):
    """Gives what a function makes of the passages, without being a coroutine."""

    name = "own"

    def __init__(self, func: Callable[[Sequence[Document]], Any]) -> None:
        self.func = func

    def grade(self, question: str, passages: Sequence[Document], language: str) -> Any:
        return self.func(passages)


class Stepping(Own):
    """The same, as a coroutine function."""

    async def grade(self, question: str, passages: Sequence[Document], language: str) -> Any:  # type: ignore[override]
        return self.func(passages)


class Awaiting(Evaluator):
    """A coroutine that awaits what is no step, and so needs an event loop."""

    name = "awaiting"

    async def grade(self, question: str, passages: Sequence[Document], language: str) -> Any:  # type: ignore[override]
        await asyncio.sleep(0)
        return [Grading(0.9) for _ in passages]


def graph(evaluator: Any) -> Any:
    """CRAG over two passages."""
    return build_crag(
        BM25Retriever.from_texts(TEXTS, k=2), chat_model("extractive"), evaluator=evaluator, output="full"
    )


@pytest.mark.parametrize("kind", [Own, Stepping])
async def test_a_list_will_do_and_a_coroutine_too(kind: type[Own]) -> None:
    """An evaluator that calls nothing need not be a coroutine."""
    made = graph(kind(lambda passages: [Grading(0.9, "mine") for _ in passages]))
    for found in (made.invoke(QUESTION), await made.ainvoke(QUESTION)):
        assert (found["action"], found["gradings"][0]["reason"]) == ("correct", "mine")
        assert found["answer"] == "The fan starts at 60 degrees.[1]"


@pytest.mark.parametrize("kind", [Own, Stepping])
@pytest.mark.parametrize(
    ("given", "told"),
    [
        (lambda passages: None, "gave None"),
        (lambda passages: [0.9 for _ in passages], "must give a list of 2 Grading"),
        (lambda passages: [Grading(0.9)], "must give a list of 2 Grading"),
        (lambda passages: [Grading(cast(Any, "high")) for _ in passages], "score='high'"),
        (lambda passages: [Grading(float("nan")) for _ in passages], "score=nan"),
    ],
)
def test_a_wrong_evaluator_is_told_what_is_wrong(kind: type[Own], given: Any, told: str) -> None:
    """In words, and not by an error from inside the graph; fitting tells the same."""
    with pytest.raises(InvalidInputError, match=f"the evaluator own gave .*{told.removeprefix('gave ')}"):
        graph(kind(given)).invoke(QUESTION)
    with pytest.raises(InvalidInputError, match="the evaluator own gave"):
        fit_thresholds(kind(given), PAIRS)


@pytest.mark.filterwarnings("error")
async def test_a_coroutine_that_needs_an_event_loop_is_refused() -> None:
    """It could not run under ``invoke``; the message says what may be awaited."""
    with pytest.raises(InvalidInputError, match="may await steps only"):
        graph(Awaiting()).invoke(QUESTION)
    with pytest.raises(InvalidInputError, match="may await steps only"):
        await graph(Awaiting()).ainvoke(QUESTION)


class Grade(BaseModel):
    """The request that a user's model gets."""

    relevant: bool
    score: float = 0.5
    reason: str = ""


class Binary(BaseModel):
    """The grade of LangGraph's tutorial."""

    binary_score: str


def _good(text: str) -> bool:
    return "fan" in text or "风扇" in text


async def _later(question: str, passage: Document) -> bool:
    return _good(passage.page_content)


def _of_text(question: str, text: str) -> float:
    return 0.9 if _good(text) else -0.9


GRADERS: dict[str, Any] = {
    "truth values": lambda question, passages: [_good(one.page_content) for one in passages],
    "array": lambda question, passages: np.array(
        [0.9 if _good(one.page_content) else -0.9 for one in passages]
    ),
    "one truth value": lambda question, passage: _good(passage.page_content),
    "one number": lambda question, doc: 0.9 if _good(doc.page_content) else -0.9,
    "of a text": _of_text,
    "dict with a score": lambda question, passage: {"score": 0.9 if _good(passage.page_content) else -0.9},
    "dict with a verdict": lambda question, passages: [
        {"relevant": _good(one.page_content), "score": 0.9, "reason": "It says so."} for one in passages
    ],
    "object": lambda question, passage: Grade(relevant=_good(passage.page_content), score=0.9),
    "grading": lambda question, passage: Grading(0.9 if _good(passage.page_content) else -0.9),
    "binary score": lambda question, d: Binary(binary_score="yes" if _good(d.page_content) else "no"),
    "chain": RunnableLambda(lambda asked: Grade(relevant=_good(asked["passage"]), score=0.9)),
    "share": RunnableLambda(lambda asked: {"score": 0.9 if _good(asked["document"]) else 0.05}),
    "asynchronous": _later,
}
CHINESE = ["风扇在60度时启动。", "水泵在40度时启动。"]


@pytest.mark.parametrize("kind", GRADERS)
@pytest.mark.parametrize(
    ("texts", "question", "answer"),
    [
        (TEXTS, "When does the fan start?", "The fan starts at 60 degrees.[1]"),
        (CHINESE, "风扇在多少度时启动？", "风扇在60度时启动。[1]"),
    ],
)
async def test_a_grader_of_ones_own_decides(kind: str, texts: list[str], question: str, answer: str) -> None:
    """Whatever its form, what it calls relevant makes the action "correct", and only that is answered from."""
    for only, action in ((texts, "correct"), (texts[1:], "incorrect")):
        made = build_crag(
            BM25Retriever.from_texts(only, k=2),
            chat_model("extractive"),
            evaluator=GRADERS[kind],
            output="full",
        )
        asked = {"question": question}
        results = [await made.ainvoke(asked)]
        if kind != "asynchronous":
            results.append(made.invoke(asked))
        for found in results:
            assert found["action"] == action
            if action == "correct":
                assert found["answer"] == answer and len(found["documents"]) == 1


@pytest.mark.parametrize("wrapped", [False, True])
async def test_a_chain_of_prompt_and_structured_model(wrapped: bool) -> None:
    """`prompt | llm.with_structured_output(Grade)`: asked about each passage."""
    seen: list[str] = []

    class Model(FakeListChatModel):
        responses: list[str] = []

        def _generate(self, messages: Any, *args: Any, **kwargs: Any) -> ChatResult:
            seen.append(messages[-1].content)
            call = {"name": "Grade", "args": {"relevant": "60" in seen[-1], "score": 0.9}, "id": "1"}
            return ChatResult(generations=[ChatGeneration(message=AIMessage("", tool_calls=[call]))])

        def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
            return self.bind()

    prompt = ChatPromptTemplate.from_messages([("user", "{question} -- {document}")])
    chain: Any = prompt | Model().with_structured_output(Grade)
    made = graph(chain.with_retry() if wrapped else chain)
    for found in (made.invoke(QUESTION), await made.ainvoke(QUESTION)):
        assert found["action"] == "correct" and found["answer"] == "The fan starts at 60 degrees.[1]"
    assert f"{QUESTION['question']} -- {TEXTS[1]}" in seen


@pytest.mark.parametrize(
    ("grader", "said"),
    [
        (lambda question, passages: [0.1], "returned 1 values for 2 passages"),
        (lambda question, passages: None, "returned None"),
        (lambda question, passages: ["high", "low"], r"returned 'high' \(str\)"),
        (lambda question, passages: [90, 10], "90 .* goes from -1 to 1"),
        (lambda question, passages: passages.page_content, "no attribute 'page_content'"),
        (lambda question, passage: [0.5], r"asked about one passage: TypeError: it returned \[0.5\]"),
        (lambda question, passage: {"relevance": 0.5}, "returned {'relevance': 0.5}"),
        (RunnableLambda(lambda asked: asked["doc"]), "KeyError: 'doc'"),
        (RunnableLambda(lambda asked: {"score": -0.5}), "goes from 0 to 1"),
    ],
)
async def test_what_can_be_used_for_no_passage_is_an_error(grader: Any, said: str) -> None:
    """It says what was returned and what is allowed, instead of calling every passage ambiguous."""
    made = graph(grader)
    with pytest.raises(InvalidInputError, match=f"{said}.*allowed for a passage: true or false, a number"):
        made.invoke(QUESTION)
    with pytest.raises(InvalidInputError, match=said):
        await made.ainvoke(QUESTION)


def test_a_failure_or_one_odd_value_is_a_note() -> None:
    """An endpoint that is away, or one passage without a grade, makes that ambiguous; the run goes on."""

    def away(question: str, passages: list[Document]) -> list[float]:
        raise ConnectionError("away")

    found = graph(away).invoke(QUESTION)
    assert found["action"] == "ambiguous"
    assert "grade: 2 of 2 passages could not be judged: ConnectionError: away" in found["notes"]
    words = BM25Retriever.from_texts(TEXTS, k=2)
    found = build_self_rag(words, chat_model("extractive"), evaluator=away, output="full").invoke(QUESTION)
    assert "grade_documents: 2 of 2 passages could not be judged: ConnectionError: away" in found["notes"]
    found = graph(lambda question, passages: [0.9, "?"]).invoke(QUESTION)
    assert found["action"] == "correct" and any("1 of 2 passages" in note for note in found["notes"])
    found = graph(RunnableLambda(lambda asked: None)).invoke(QUESTION)
    assert found["action"] == "ambiguous"


def test_a_function_of_something_else_is_refused_when_the_graph_is_built() -> None:
    """A function of one argument can be no grader."""
    with pytest.raises(InvalidInputError, match="two arguments: the question"):
        graph(lambda passage: True)
