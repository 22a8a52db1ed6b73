"""The default grader: the graph's own language model in few calls, else words."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda
from langchain_openai import ChatOpenAI
from support.openai_server import OpenAIServer, Recorded

from rag_kit.concurrency.steps import run
from rag_kit.graphs import build_crag, build_self_rag
from rag_kit.graphs.evaluators.models import LLMEvaluator
from rag_kit.models import chat_model

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
