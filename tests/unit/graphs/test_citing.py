"""Checks of an answer: citations by the graph's language model, and passages that disagree."""

from __future__ import annotations

import re
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.runnables import RunnableLambda
from langchain_openai import ChatOpenAI
from support.graphs import BUILDERS, each_graph, go
from support.openai_server import OpenAIServer, Recorded, error

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


YEARS = {2023: 120, 2025: 150, 2024: 135}


def policies(**about: Any) -> Any:
    """A retriever of three versions of a policy, the newest in the middle."""
    texts = [
        Document(
            f"The hotel limit is {amount} EUR per night.", metadata={"title": "Travel policy", "year": year}
        )
        for year, amount in YEARS.items()
    ]
    return RunnableLambda(lambda query: texts)


async def run(graph: Any, question: str, native: bool, **more: Any) -> Any:
    return await go(graph, native, {"question": question}, **more)


both = pytest.mark.parametrize("native", [False, True], ids=["invoke", "ainvoke"])


@each_graph
async def test_the_extractive_answer_is_the_newest_value_alone(name: str, native: bool) -> None:
    """And the note has all values with their versions, in every graph."""
    graph = BUILDERS[name](policies(), chat_model("extractive"))
    result = await run(graph, "What is the hotel limit per night?", native)
    assert "150 EUR" in result["answer"] and "120" not in result["answer"] and "135" not in result["answer"]
    [note] = [note for note in result["notes"] if "disagree" in note]
    for year, amount in YEARS.items():
        assert f"{amount} EUR ({year})" in note
    newest = next(at for at, doc in enumerate(result["documents"], start=1) if "150" in doc.page_content)
    assert note.endswith(f"the newest is [{newest}]")


@both
async def test_a_question_about_a_year_is_answered_for_it(native: bool) -> None:
    """An older version stays what it is when it is asked for."""
    texts = [Document(f"In {year} the hotel limit is {amount} EUR.") for year, amount in YEARS.items()]
    graph = build_plain_rag(RunnableLambda(lambda query: texts), chat_model("extractive"))
    result = await run(graph, "What was the hotel limit in 2023?", native)
    assert "120 EUR" in result["answer"] and not [note for note in result["notes"] if "disagree" in note]


@both
async def test_a_language_model_reads_versions_and_the_rule(native: bool) -> None:
    """The prompt has each passage's version, and asks for the newest; the note is there whatever it answers."""
    seen: list[str] = []

    class Model(FakeListChatModel):
        responses: list[str] = ["150 EUR per night[2]; it was 120 EUR in 2023.[1]"]

        def _call(self, messages: Any, *args: Any, **kwargs: Any) -> str:
            seen.append("\n".join(message.text for message in messages))
            return super()._call(messages, *args, **kwargs)

    result = await run(build_plain_rag(policies(), Model()), "What is the hotel limit?", native)
    assert 'version="2025"' in seen[0] and "newest" in seen[0]
    assert result["notes"] == [
        "answer: passages disagree: [1] 120 EUR (2023), [2] 150 EUR (2025), [3] 135 EUR (2024); the newest is [2]"
    ]


@both
async def test_chinese_drafts_give_way_to_the_final_text(native: bool) -> None:
    """By the title; without any version the first stays, and the note says that nothing tells."""
    texts = ["住宿标准为每晚350元。", "住宿标准为每晚400元。"]
    for titles, amount, end in (
        (["差旅制度（征求意见稿）", "差旅制度（正式）"], "400元", "the newest is [2]"),
        (["差旅制度", "差旅制度"], "350元", "nothing says which is the newest"),
    ):
        found = [Document(text, metadata={"title": title}) for text, title in zip(texts, titles, strict=True)]
        graph = build_plain_rag(RunnableLambda(lambda query, found=found: found), chat_model("extractive"))
        result = await run(graph, "住宿标准是多少？", native)
        assert amount in result["answer"] and result["answer"].count("元") == 1
        assert [note for note in result["notes"] if note.endswith(end)]


def test_the_paper_mode_names_passages_that_the_answer_does_not_rest_on() -> None:
    """They have no number there; their title stands for it."""
    graph = build_self_rag(policies(), chat_model("extractive"), mode="paper")
    result = graph.invoke({"question": "What is the hotel limit per night?"}, context={"max_segments": 1})
    [note] = [note for note in result["notes"] if "disagree" in note]
    assert len(result["documents"]) == 1 and note.count("Travel policy ") == 2 and note.count("[1]") >= 1


@pytest.mark.parametrize(
    ("question", "texts"),
    [
        ("北京和上海的住宿标准是多少？", ["北京的住宿标准为每晚300元。", "上海的住宿标准为每晚400元。"]),
        ("What is the fee?", ["The fee for students is 20 EUR.", "The fee for adults is 50 EUR."]),
        ("How much is the course?", ["The course on 5 May costs 100 EUR.", "The course on 9 June costs 140 EUR."]),
        ("营业收入是多少？", ["2023年营业收入为10亿元。", "2024年营业收入为14亿元。"]),
    ],
)  # fmt: skip
def test_other_things_and_series_are_no_versions(question: str, texts: list[str]) -> None:
    """Both values are answered where another word has the same place, or each statement names a time of its own."""
    dated = [Document(text, metadata={"title": "Fees", "year": 2023 + n}) for n, text in enumerate(texts)]
    result = build_plain_rag(RunnableLambda(lambda _: dated), chat_model("extractive")).invoke(
        {"question": question}
    )
    assert all(text in result["answer"] for text in texts)
