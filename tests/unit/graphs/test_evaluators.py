"""Evaluators: one grading a passage, in order, sync and async alike; what fails is ambiguous and loses nothing."""

from __future__ import annotations

import json
import math
import re
import time
from typing import Any

import pytest
from langchain_core.cross_encoders import BaseCrossEncoder
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda
from langchain_openai import ChatOpenAI
from support.by_task import by_task
from support.openai_server import OpenAIServer, Recorded

from rag_kit.concurrency.steps import arun, run
from rag_kit.errors import InvalidInputError
from rag_kit.graphs import build_crag, build_self_rag
from rag_kit.graphs.evaluators.base import Evaluator, Grading, LexicalEvaluator, Thresholds
from rag_kit.graphs.evaluators.function import as_evaluator
from rag_kit.graphs.evaluators.models import CrossEncoderEvaluator, LLMEvaluator
from rag_kit.models import chat_model
from rag_kit.models.extractive.blocks import Prompt

QUESTION = "Which team did Smith play for in 1992?"
PASSAGES = [
    Document("Smith played for Leeds from 1990 to 1994."),
    Document("Smith was the coach of Hull in 2003."),
    Document("Bananas are yellow."),
]


async def both(evaluator: Evaluator, question: str, passages: list[Document]) -> list[Grading]:
    """Judge in both forms; they agree."""
    found = run(evaluator.grade(question, passages, "en"), {})
    assert found == await arun(evaluator.grade(question, passages, "en"), {})
    assert len(found) == len(passages)
    assert all(-1 <= one.score <= 1 for one in found)
    return found


def grade(score: float, relevant: bool = True, reason: str = "It says so.") -> str:
    """A model's grade."""
    return f'{{"relevant": {str(relevant).lower()}, "score": {score}, "reason": "{reason}"}}'


@pytest.mark.parametrize(("lower", "upper"), [(0.5, -0.5), (-1.1, 0), (0, 1.1), (math.nan, 0), ("a", 1)])
def test_thresholds_out_of_order_are_refused(lower: Any, upper: Any) -> None:
    """They lie from -1 to 1, lower not above upper."""
    with pytest.raises(InvalidInputError):
        Thresholds(lower, upper)


async def test_lexical_evidence_sees_words_and_time() -> None:
    """Words decide, and a passage about another time scores lower than the same about the time asked for."""
    found = await both(LexicalEvaluator(), QUESTION, PASSAGES)
    assert found[0].score > found[1].score > found[2].score == -1.0
    earlier = await both(LexicalEvaluator(), QUESTION.replace("1992", "1987"), PASSAGES)
    assert earlier[0].score < found[0].score
    assert "outside the time" in earlier[0].reason
    assert "touch the time" in found[0].reason


class Encoder(BaseCrossEncoder):
    """Gives what it was told to."""

    def __init__(self, values: Any) -> None:
        self.values = values

    def score(self, text_pairs: Any) -> Any:
        if isinstance(self.values, Exception):
            raise self.values
        return self.values


async def test_logits_become_confidences() -> None:
    """tanh(x / 2) of a score; a column of one is read; NaN is not graded."""
    found = await both(CrossEncoderEvaluator(Encoder([0.0, [2.0], math.nan])), QUESTION, PASSAGES)
    assert found[0].score == 0.0
    assert found[1].score == pytest.approx(0.7615941559557649)
    assert found[2].reason.startswith("not graded")


@pytest.mark.parametrize("values", [[0.1], "text", None, OSError("gone")])
async def test_a_broken_cross_encoder_loses_no_passage(values: Any) -> None:
    """Every passage is ambiguous then: neither correct nor incorrect by the thresholds."""
    evaluator = CrossEncoderEvaluator(Encoder(values), thresholds=Thresholds(0.2, 0.6))
    found = await both(evaluator, QUESTION, PASSAGES)
    assert all(one.reason.startswith("not graded: ") for one in found)
    assert evaluator.thresholds.action([one.score for one in found]) == "ambiguous"


def test_what_can_be_an_evaluator() -> None:
    """Evaluators, models, cross-encoders, embeddings, functions, nothing; else a clear refusal."""
    assert as_evaluator().name == as_evaluator(None).name == "lexical"
    mine = LexicalEvaluator()
    assert as_evaluator(mine) is mine
    assert isinstance(as_evaluator(chat_model("extractive")), LLMEvaluator)
    assert isinstance(as_evaluator(Encoder([])), CrossEncoderEvaluator)
    for wrong in (3, "lexical", LexicalEvaluator, [mine]):
        with pytest.raises(InvalidInputError, match="evaluator"):
            as_evaluator(wrong)
    for made in (
        lambda: CrossEncoderEvaluator("x"),
        lambda: LLMEvaluator("x"),
        lambda: LLMEvaluator(chat_model("extractive"), batch_size=0),
    ):
        with pytest.raises(InvalidInputError):
            made()


async def test_a_model_judges_each_passage_at_once() -> None:
    """One call a passage, all at the same time; the verdict decides the side of the score."""

    def slow(prompt: Prompt) -> str:
        time.sleep(0.2)
        return grade(0.9) if "Leeds" in prompt.body else grade(0.9, relevant=False)

    evaluator = LLMEvaluator(by_task({"grade_passage": slow}), batch_size=1)
    start = time.perf_counter()
    found = run(evaluator.grade(QUESTION, PASSAGES * 3, "en"), {})
    assert time.perf_counter() - start < 1.2  # nine in a row take 1.8 s
    assert [round(one.score, 2) for one in found[:3]] == [0.8, -0.8, -0.8]
    assert found[0].reason == "It says so."


async def test_a_failed_call_is_ambiguous() -> None:
    """One call of three fails: that passage alone is not graded."""

    def some(prompt: Prompt) -> str:
        if "Hull" in prompt.body:
            raise ConnectionError("away")
        return grade(0.9) if "Leeds" in prompt.body else "no JSON at all"

    found = await both(
        LLMEvaluator(by_task({"grade_passage": some, "repair_json": ""}), batch_size=1), QUESTION, PASSAGES
    )
    assert found[0].score == pytest.approx(0.8)
    assert all(one.reason.startswith("not graded: ") for one in found[1:])
    assert LLMEvaluator.thresholds.action([one.score for one in found[1:]]) == "ambiguous"


async def test_several_passages_in_one_call() -> None:
    """Ids out of range fall away, of a repeated one the first counts, a missing one is not graded."""
    calls: list[str] = []

    def batch(prompt: Prompt) -> str:
        calls.append(prompt.body)
        entries = [
            '{"id": 2, "relevant": false, "score": 0.1, "reason": "other time"}',
            '{"id": 9, "relevant": true, "score": 1.0, "reason": "nowhere"}',
            '{"id": 2, "relevant": true, "score": 1.0, "reason": "again"}',
            '{"id": "[1]", "relevant": true, "score": 1.0, "reason": "yes"}',
            "5",
        ]
        return f'{{"grades": [{", ".join(entries)}]}}'

    evaluator = LLMEvaluator(by_task({"grade_passages": batch}), batch_size=3)
    found = run(evaluator.grade(QUESTION, PASSAGES, "en"), {})
    assert len(calls) == 1
    assert [round(one.score, 2) for one in found] == [1.0, -0.8, 0.0]
    assert found[2].reason == "not graded: the model left it out"
    calls.clear()
    assert len(run(evaluator.grade(QUESTION, PASSAGES + PASSAGES[:1], "en"), {})) == 4
    assert len(calls) == 2


EN = ("When does the fan start?", "The fan starts at 60 degrees.", "Report {} of the hall.")
ZH = ("风扇在多少度时启动？", "风扇在60度时启动。", "关于大厅的第{}份报告。")


def answering(request: Recorded) -> Any:
    """Calls what holds the number 60 relevant, and answers from it."""
    task = re.search(r"<task>(\w+)</task>", request.prompt)
    assert task is not None
    if task[1] == "grade_passages":
        found = re.findall(r'<passage id="(\d+)"[^>]*>(.*?)</passage>', request.prompt, re.DOTALL)
        return {
            "grades": [
                {
                    "id": int(number),
                    "relevant": "60" in text,
                    "score": 0.9 if "60" in text else 0.1,
                    "reason": "r",
                }
                for number, text in found
            ]
        }
    if task[1] in ("grade_support", "grade_usefulness"):
        return {"relevant": True, "score": 0.9, "reason": "r"}
    return "风扇在60度时启动。[1]" if "风扇" in request.prompt else "The fan starts at 60 degrees.[1]"


def tasks(server: OpenAIServer) -> list[str]:
    """Return the tasks that were asked for, in order."""
    return [re.findall(r"<task>(\w+)</task>", chat.prompt)[0] for chat in server.chats]


@pytest.mark.parametrize(("question", "fact", "other"), [EN, ZH])
@pytest.mark.parametrize("graph", ["crag", "reflect"])
async def test_a_language_model_grades_by_default(graph: str, question: str, fact: str, other: str) -> None:
    """Over HTTP: ten passages are graded in a call, what it calls irrelevant is not answered from."""
    texts = [fact, *(other.format(number) for number in range(11))]
    retriever: Any = RunnableLambda(lambda query: [Document(text) for text in texts])
    with OpenAIServer([answering]) as server:
        llm = ChatOpenAI(model="test", base_url=server.url, api_key="sk-test", max_retries=0)
        made: Any = (
            build_crag(retriever, llm) if graph == "crag" else build_self_rag(retriever, llm, mode="reflect")
        )
        for found in (made.invoke({"question": question}), await made.ainvoke({"question": question})):
            assert (found["answer"], found["status"]) == (f"{fact}[1]", "grounded")
            assert [document.page_content for document in found["documents"]] == [fact]
        asked = tasks(server)
        # twelve passages, in two runs
        assert asked.count("grade_passages") == 4
        assert len(asked) == (6 if graph == "crag" else 10)


def test_a_call_is_bounded_in_text_too() -> None:
    """Long passages share a call only as far as four of the longest allowed; each is cut to that."""
    sizes: list[int] = []

    def grading(request: Recorded) -> Any:
        sizes.append(len(request.prompt))
        return answering(request)

    with OpenAIServer([grading]) as server:
        llm = ChatOpenAI(model="test", base_url=server.url, api_key="sk-test", max_retries=0)
        passages = [Document(f"{'word ' * 2_000} 60") for _ in range(9)]
        judged = run(LLMEvaluator(llm).grade("When?", passages, "en"), {})
    assert len(judged) == 9 and len(sizes) == 3
    assert max(sizes) < 40_000


@pytest.mark.parametrize("wrapped", [False, True])
def test_words_are_the_evidence_beside_the_extractive_model(wrapped: bool) -> None:
    """It is no language model, also inside with_retry: no call is spent on grading."""
    llm: Any = chat_model("extractive")
    retriever: Any = RunnableLambda(lambda query: [Document(EN[1]), Document("Bananas are yellow.")])
    found = build_crag(retriever, llm.with_retry() if wrapped else llm, output="full").invoke(
        {"question": EN[0]}
    )
    assert "terms in its best sentence" in found["gradings"][0]["reason"]
    assert (found["usage"]["calls"], found["answer"]) == (1, f"{EN[1]}[1]")


def test_instructions_and_prompt_files_reach_the_default_grader(tmp_path: Any) -> None:
    """A run's own grade_instructions go out with the gradings."""
    retriever: Any = RunnableLambda(lambda query: [Document(EN[1])])
    with OpenAIServer([answering]) as server:
        llm = ChatOpenAI(model="test", base_url=server.url, api_key="sk-test", max_retries=0)
        for made in (build_crag(retriever, llm), build_self_rag(retriever, llm, mode="reflect")):
            made.invoke({"question": EN[0]}, context={"grade_instructions": "Mine for grading."})
        graded = [chat for chat in server.chats if "<task>grade_passages</task>" in json.dumps(chat.body)]
        assert len(graded) == 2 and all("Mine for grading." in chat.prompt for chat in graded)


@pytest.mark.parametrize(("question", "fact", "other"), [EN, ZH])
@pytest.mark.parametrize("graph", ["crag", "reflect"])
def test_what_was_cut_before_it_was_graded_is_no_decline(
    graph: str, question: str, fact: str, other: str
) -> None:
    """The answer stands behind what the grader was shown: nothing says that it is not there."""
    retriever: Any = RunnableLambda(lambda query: [Document(other.format("x") * 1_000 + fact)])
    with OpenAIServer([answering]) as server:
        llm = ChatOpenAI(model="test", base_url=server.url, api_key="sk-test", max_retries=0)
        made = (
            build_crag(retriever, llm) if graph == "crag" else build_self_rag(retriever, llm, mode="reflect")
        )
        found: Any = made.invoke(
            {"question": question}, context={"max_rounds": 1} if graph == "reflect" else None
        )
    assert found["status"] == "incomplete"
    assert "grade: 1 passages judged by their first 8,000 characters" in found["notes"]
