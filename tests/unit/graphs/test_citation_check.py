"""`citation_check="model"`: the graph's language model checks the citations of an answer in one call."""

from __future__ import annotations

import re
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda
from langchain_openai import ChatOpenAI
from support.graphs import BUILDERS
from support.openai_server import OpenAIServer, Recorded, error

from rag_kit.errors import InvalidInputError
from rag_kit.graphs import (
    build_plain_rag,
    build_self_rag,
)
from rag_kit.models import chat_model

EN = (
    "When does the fan start?",
    "The fan starts at 60 degrees.",
    "It sets in from sixty.[1] It has 9 blades.[1]",
)
ZH = ("风扇在多少度时启动？", "风扇在60度时启动。", "到了六十度它就转起来。[1]它有9片叶片。[1]")
GRAPHS = {
    name: build for name, build in BUILDERS.items() if name != "self-rag"
}  # that one cites each segment itself


def scripted(request: Recorded) -> Any:
    """Answers in other words, and holds the first statement for supported."""
    task = re.findall(r"<task>(\w+)</task>", request.prompt)[0]
    if task == "check_citations":
        return {"labels": [{"id": 1, "support": "full"}, {"id": 2, "support": "none"}]}
    if task == "grade_passages":
        return {"grades": [{"id": 1, "relevant": True, "score": 1.0, "reason": "r"}]}
    if task in ("grade_support", "grade_usefulness"):
        return {"relevant": True, "score": 0.9, "reason": "r"}
    return (ZH if "风扇" in request.prompt else EN)[2]


def build(graph: str, text: str, server: OpenAIServer) -> Any:
    """The graph over one passage, with a model of the server."""
    llm = ChatOpenAI(model="test", base_url=server.url, api_key="sk-test", max_retries=0)
    retriever: Any = RunnableLambda(lambda query: [Document(text)])
    return GRAPHS[graph](retriever, llm)


def checks(server: OpenAIServer) -> list[str]:
    """The prompts that asked for a check."""
    return [chat.prompt for chat in server.chats if "<task>check_citations</task>" in chat.prompt]


@pytest.mark.parametrize(("question", "text", "answer"), [EN, ZH])
@pytest.mark.parametrize("graph", GRAPHS)
async def test_the_model_checks_all_statements_in_one_call(
    graph: str, question: str, text: str, answer: str
) -> None:
    """Over HTTP, in every graph: its verdicts decide, and the quotes stay those of the passage."""
    context = {"citation_check": "model", **({"route": "single"} if graph == "adaptive" else {})}
    with OpenAIServer([scripted]) as server:
        made = build(graph, text, server)
        inputs = {"question": question}
        for found in (made.invoke(inputs, context=context), await made.ainvoke(inputs, context=context)):
            assert [one["status"] for one in found["citations"]] == ["supported", "unsupported"]
            assert (found["answer"], found["status"]) == (answer, "flagged")
            assert all(one["quote"] in text for one in found["citations"])
        assert len(checks(server)) == 2 and text in checks(server)[0]
        made.invoke(inputs, context={**context, "citation_check": "words"})
        assert len(checks(server)) == 2


@pytest.mark.parametrize("graph", [*GRAPHS, "paper"])
@pytest.mark.parametrize(
    ("question", "text"),
    [
        (
            "What does the setting rrf_k take?",
            'The setting rrf_k takes {"int": [1, 100], "default": 60} and weight takes [0, 1].',
        ),
        ("循环在停止之前读取什么？", "循环在停止之前读取数组a[3]和[0, 1]。"),
    ],
)
async def test_brackets_of_a_document_come_through(graph: str, question: str, text: str) -> None:
    """In every graph, sync and async, numbers in brackets that the document has are no citations."""
    retriever: Any = RunnableLambda(lambda query: [Document(text)])
    build = {**GRAPHS, "paper": build_self_rag}[graph]
    made = build(
        retriever, chat_model("extractive"), output="full", **({"mode": "paper"} if graph == "paper" else {})
    )
    for found in (made.invoke({"question": question}), await made.ainvoke({"question": question})):
        assert (found["answer"], found["status"]) == (f"{text}[1]", "grounded")
        assert [one["statement"] for one in found["citations"]] == [text]


@pytest.mark.parametrize("broken", [error(500), "no JSON at all", {"labels": []}])
async def test_words_decide_where_the_model_gives_no_verdict(broken: Any) -> None:
    """A failed call, prose and a list without labels: the answer stays, and a note says who decided."""

    def failing(request: Recorded) -> Any:
        if "<task>check_citations</task>" in request.prompt:
            return broken
        return f"{EN[1]}[1]"

    with OpenAIServer([failing]) as server:
        made = build("plain", EN[1], server)
        context = {"citation_check": "model"}
        for found in (
            made.invoke({"question": EN[0]}, context=context),
            await made.ainvoke({"question": EN[0]}, context=context),
        ):
            assert found["status"] == "grounded"
            assert "the words decided" in found["notes"][-1]
        capped = made.invoke({"question": EN[0]}, context={**context, "max_calls": 1})
        assert (capped["status"], "the words decided" in capped["notes"][-1]) == ("grounded", True)


def test_the_extractive_model_is_asked_nothing() -> None:
    """It is no language model: words decide, and no call is spent."""
    retriever: Any = RunnableLambda(lambda query: [Document(EN[1])])
    graph = build_plain_rag(retriever, chat_model("extractive"))
    found = graph.invoke({"question": EN[0]}, context={"citation_check": "model"})
    assert (found["status"], found["usage"]["calls"]) == ("grounded", 1)


def test_another_check_is_refused() -> None:
    """The error names what is allowed."""
    retriever: Any = RunnableLambda(lambda query: [Document(EN[1])])
    graph = build_plain_rag(retriever, chat_model("extractive"))
    with pytest.raises(InvalidInputError, match="'words' or 'model'"):
        graph.invoke({"question": EN[0]}, context={"citation_check": "judge"})
