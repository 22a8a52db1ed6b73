"""Outages, and answers that were cut off: never reported as a decline or as grounded."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import FakeListChatModel, GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver
from support.by_task import by_task, labels
from support.graphs import BUILDERS, both, fixed, thread

from rag_kit.concurrency.notes import outages, write_note
from rag_kit.errors import BudgetExceededError
from rag_kit.graphs import as_chat, as_tool, build_adaptive_rag, build_plain_rag, build_self_rag
from rag_kit.models import chat_model
from rag_kit.retrieval import BM25Retriever, EnsembleRetriever
from rag_kit.text.citations.decline import DECLINED, is_declined

FAN = "The fan starts at 60 degrees."
ASKED: Any = {"question": "At how many degrees does the fan start?"}
OUTAGE = "degraded: dense failed: ConnectionError"
MISSING = {
    "en": "The answer is not in the documents that could be searched. Some could not be searched.",
    "zh": "能检索到的文档中没有答案。有些文档未能检索。",
}


class Degraded(BaseRetriever):
    """Finds what it holds, and says that one of its arms was not searched."""

    texts: list[str] = []

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        write_note(OUTAGE, unsearched=True)
        write_note("1 repeated passage left out")
        return [Document(text) for text in self.texts]


@pytest.mark.parametrize(
    ("texts", "question", "language"),
    [([], ASKED["question"], "en"), (["Tea is hot.", "茶很烫。"], "风扇在多少度时启动？", "zh")],
    ids=["nothing found", "nothing fits"],
)
@pytest.mark.parametrize("name", BUILDERS)
async def test_no_answer_beside_an_outage_is_incomplete(
    name: str, texts: list[str], question: str, language: str
) -> None:
    """In every graph, both forms and languages: the status and the answer say that something was not searched."""
    made = BUILDERS[name](Degraded(texts=texts), chat_model("extractive"), output="full")
    result = await both(made, question)
    assert (result["status"], result["answer"]) == ("incomplete", MISSING[language])
    assert result["notes"].count(OUTAGE) == 1 and "1 repeated passage left out" in result["notes"]
    assert result["unsearched"] == [OUTAGE] and not any("extracts" in note for note in result["notes"])
    assert result["history"][-1]["answer"] == result["answer"]


@pytest.mark.parametrize("name", BUILDERS)
async def test_an_answer_that_holds_keeps_its_status_with_the_note(name: str) -> None:
    """An answer from what was found is grounded, whatever was not searched; the next turn has no note."""
    graph = BUILDERS[name](Degraded(texts=[FAN]), chat_model("extractive"), checkpointer=InMemorySaver())
    result = graph.invoke(ASKED, thread())
    assert (result["status"], result["answer"]) == ("grounded", f"{FAN}[1]")
    assert OUTAGE in result["notes"]
    healthy = BUILDERS[name](fixed(FAN), chat_model("extractive"), checkpointer=graph.checkpointer)
    found = healthy.invoke({"question": "Who painted the ceiling?"}, thread())
    assert OUTAGE not in found["notes"]
    assert found["status"] == "declined" and healthy.get_state(thread()).values["unsearched"] == []


def test_a_decline_of_the_models_own_is_kept_and_completed() -> None:
    """In the model's words, with the sentence after them."""
    own = "The documents do not mention it."
    llm = by_task({"answer": own})
    result = build_plain_rag(Degraded(texts=["Tea is hot."]), llm).invoke(ASKED)
    assert (
        result["status"] == "incomplete"
        and result["answer"] == f"{own}\n\nSome documents could not be searched."
    )
    assert all(map(is_declined, [result["answer"], *MISSING.values()]))


def test_a_follow_up_that_could_not_be_completed_is_no_decline() -> None:
    """The model failed to write the question that was to be searched for."""
    llm = by_task({"condense": "{}", "answer": DECLINED["en"]})
    graph = build_plain_rag(fixed(FAN), llm, checkpointer=InMemorySaver())
    assert graph.invoke(ASKED, thread())["status"] == "declined"
    assert graph.invoke({"question": "And the lamp?"}, thread())["status"] == "incomplete"


class Down(FakeListChatModel):
    """Every task meets an outage, but for those that it is to decline."""

    declines: str = "none"

    def _call(self, messages: Any, *arguments: Any, **more: Any) -> str:
        if f"<task>{self.declines}</task>" in str(messages):
            return DECLINED["en"]
        raise ConnectionError("no route to host")


@pytest.mark.parametrize("name", ["plain", "crag", "adaptive"])
def test_what_was_not_asked_in_an_outage_is_no_decline(name: str) -> None:
    """The notes name the cause, as those of retrievers do; a failed classifier may have hidden a second step."""
    graph = BUILDERS[name](fixed(FAN), Down(responses=[""], declines="answer"), checkpointer=InMemorySaver())
    first = graph.invoke(ASKED, thread())
    second = graph.invoke({"question": "And the lamp?"}, thread())
    assert (first["status"], second["status"]) == (
        "incomplete" if name == "adaptive" else "declined",
        "incomplete",
    )
    assert second["answer"] == MISSING["en"]
    parts = ["condense", "classify"] if name == "adaptive" else ["condense"]
    for part in parts:
        note = f"degraded: {part} failed: ModelUnreachableError"
        assert any(note in other and "no route to host" in other for other in second["notes"])


@pytest.mark.parametrize("wrap", [False, True])
@pytest.mark.parametrize("name", ["crag", "adaptive", "reflect"])
async def test_an_extractive_stand_by_puts_no_passage_aside(name: str, wrap: bool) -> None:
    """It is no grader: what the model that is away was to judge stays, as the notes say, and is answered from."""
    llm: Any = Down(responses=[""]).with_fallbacks([chat_model("extractive")])
    llm = llm.with_config(tags=["mine"]) if wrap else llm
    safe = "The safe of the office is amber."
    found = await both(BUILDERS[name](fixed(safe), llm), "What is the colour of the safe of the office?")
    assert (found["status"], found["answer"]) == ("grounded", f"{safe}[1]")
    assert any("could not be judged: ModelUnreachableError" in note for note in found["notes"])


def test_the_tool_and_the_chat_say_that_it_is_incomplete() -> None:
    """The agent's model reads it, the chat's message has the status."""
    graph = build_plain_rag(Degraded(), chat_model("extractive"))
    assert "could not be searched" in as_tool(graph).invoke({"question": ASKED["question"]})
    message = as_chat(graph).invoke({"messages": [("user", ASKED["question"])]})["messages"][-1]
    assert message.additional_kwargs["status"] == "incomplete" and message.text == MISSING["en"]


@pytest.mark.parametrize(
    "metadata", [{"stop_reason": "max_tokens"}, {"finish_reason": "content_filter"}], ids=str
)
async def test_an_answer_that_was_cut_off_is_never_grounded(metadata: dict[str, Any]) -> None:
    """Whatever the provider calls it; a note says why, and a turn later nothing is left of it."""
    cut, whole = AIMessage(f"{FAN}[1]", response_metadata=metadata), AIMessage(f"{FAN}[1]")
    graph = build_plain_rag(fixed(FAN), GenericFakeChatModel(messages=iter([cut, whole, cut])))
    result = graph.invoke(ASKED)
    assert result["status"] == "incomplete" and any("answer: cut off" in note for note in result["notes"])
    whole_result = await graph.ainvoke(ASKED)
    assert whole_result["status"] == "grounded" and not whole_result["notes"]
    assert (await graph.ainvoke(ASKED))["status"] == "incomplete"


def cutting(**answers: Any) -> Any:
    """A model whose answers to these tasks end at the token limit."""
    llm = by_task(answers)
    reply = type(llm)._reply

    class Cutting(type(llm)):  # type: ignore[misc]
        def _reply(self, messages: Any) -> Any:
            result = reply(self, messages)
            if self.asked[-1][0] in ("answer", "continue_answer", "direct_answer"):
                result.generations[0].message.response_metadata = {"finish_reason": "length"}
            return result

    return Cutting(answers=answers)


def test_cut_off_answers_of_self_rag_and_talk() -> None:
    """A segment of the paper's, a draft of the loop's, and talk; a cut sentence that is not used does not count."""
    asks: Any = {"retrieve_needed": {"retrieve": "yes"}, "critique": labels()}
    good = {"relevant": True, "score": 1.0, "reason": "r"}
    paper: Any = {"max_segments": 1}
    llm = cutting(continue_answer=FAN, **asks)
    result = build_self_rag(fixed(FAN), llm, mode="paper").invoke(ASKED, context=paper)
    assert result["status"] == "incomplete" and any("cut off" in note for note in result["notes"])
    llm = cutting(continue_answer=f"{FAN} It is", **asks)
    assert build_self_rag(fixed(FAN), llm, mode="paper").invoke(ASKED, context=paper)["status"] == "grounded"
    grade = {"grades": [{"id": 1, **good}]}
    llm = cutting(
        answer=f"{FAN}[1]",
        grade_passages=grade,
        grade_support=good,
        grade_usefulness=good,
        rewrite_query={"query": "q"},
    )
    result = build_self_rag(fixed(FAN), llm, mode="reflect").invoke(ASKED)
    assert result["status"] == "incomplete" and any("cut off" in note for note in result["notes"])
    llm = cutting(direct_answer="Hello, I am")
    graph = build_adaptive_rag(fixed(FAN), llm, classifier=lambda question, earlier: "direct")
    assert graph.invoke({"question": "Hi!"})["status"] == "incomplete"


@pytest.mark.parametrize(
    ("verdict", "status", "note"),
    [
        ({"relevance": "irrelevant", "support": "none", "usefulness": 1}, "flagged", "irrelevant"),
        ({"support": "none"}, "flagged", "1 of 1 parts of the answer are not supported"),
        ({"support": "partial"}, "grounded", "supported in part"),
        ({"usefulness": 1}, "grounded", "may not answer the question"),
        ({}, "grounded", ""),
    ],
    ids=str,
)
def test_the_status_of_the_paper_follows_its_critique(verdict: Any, status: str, note: str) -> None:
    """A part without support is flagged, although the words of its passage are there."""
    llm = by_task(
        {"retrieve_needed": {"retrieve": "yes"}, "continue_answer": FAN, "critique": {**labels(), **verdict}}
    )
    result = build_self_rag(fixed(FAN), llm, mode="paper").invoke(ASKED, context={"max_segments": 1})
    assert result["status"] == status and result["answer"] == f"{FAN}[1]"
    assert note in " ".join(result["notes"]) if note else not result["notes"]


async def test_a_fallback_that_stands_in_is_noted(caplog: pytest.LogCaptureFixture) -> None:
    """LangChain's fallbacks hide it: the result gets a note, the log one line; what failed was not searched."""

    def unreachable(query: str) -> Any:
        raise ConnectionError("no route to host")

    outages.clear()
    inner: Any = RunnableLambda(unreachable, name="store").with_fallbacks([BM25Retriever.from_texts([FAN])])
    graph = build_plain_rag(inner.with_retry(stop_after_attempt=2), chat_model("extractive"))
    found, missing = await both(graph, ASKED["question"]), await both(graph, "Who painted the ceiling?")
    assert (found["status"], missing["status"]) == ("grounded", "incomplete")
    note = "degraded: store failed: ConnectionError: no route to host; the search went on without it"
    assert found["notes"].count(note) == missing["notes"].count(note) == 1
    assert [record.getMessage() for record in caplog.records] == [f"store: {note}"]


STAND_BY: dict[str, Any] = {
    "alone": lambda first, other: first.with_fallbacks([other]),
    "in a chain": lambda first, other: first.with_fallbacks([other]) | StrOutputParser(),
    "two chains": lambda first, other: (first | str).with_fallbacks([other | StrOutputParser()]),
}


UNANSWERED = "Who painted the ceiling of the fan?"


@pytest.mark.parametrize(
    ("name", "way"),
    [*((name, "alone") for name in BUILDERS), ("plain", "in a chain"), ("crag", "two chains")],
)
async def test_a_decline_of_extractive_for_a_model_is_incomplete(name: str, way: str) -> None:
    """Nobody read the passages."""
    graph = BUILDERS[name](fixed(FAN), STAND_BY[way](Down(responses=[""]), chat_model("extractive")))
    assert (await both(graph, UNANSWERED))["status"] == "incomplete"


@pytest.mark.parametrize("stand_by", STAND_BY.values(), ids=STAND_BY)
async def test_another_language_model_that_stands_by_may_decline(stand_by: Any) -> None:
    """It read the passages, and its request counts."""
    down, question = Down(responses=[""]), UNANSWERED
    other = FakeListChatModel(responses=[DECLINED["en"]])
    read = await both(build_plain_rag(fixed(FAN), stand_by(down, other)), question)
    assert read["status"] == "declined" and "was asked" in " ".join(read["notes"])
    assert read["usage"]["calls"] == 2
    with pytest.raises(BudgetExceededError):
        build_plain_rag(fixed(FAN), stand_by(down, other)).invoke(
            {"question": question}, context={"max_calls": 1}
        )
    first = FakeListChatModel(responses=[f"{FAN}[1]"]).with_fallbacks([other])
    assert not (await both(build_plain_rag(fixed(FAN), first), question))["notes"]


@pytest.mark.parametrize("several", [False, True])
async def test_what_only_a_filter_leaves_out_is_no_decline(several: bool) -> None:
    """A runnable that cannot search by the filter gave others' passages alone: what may be behind them is unknown."""
    documents = [Document(FAN, metadata={"tenant": "b"}), Document("Tea is hot.", metadata={"tenant": "a"})]
    inner: Any = RunnableLambda(lambda query: documents[:1], name="theirs")
    graph = build_plain_rag(
        EnsembleRetriever(retrievers=[inner]) if several else inner, chat_model("extractive")
    )
    result = graph.invoke(ASKED, context={"filter": {"tenant": "a"}})
    assert result == await graph.ainvoke(ASKED, context={"filter": {"tenant": "a"}}) | {
        "usage": result["usage"]
    }
    assert (result["status"], result["documents"]) == ("incomplete", [])
    assert any("theirs" in note and "filter" in note for note in result["notes"])
    listed = build_plain_rag(BM25Retriever.from_documents(documents), chat_model("extractive"))
    assert listed.invoke(ASKED, context={"filter": {"tenant": "a"}})["status"] == "declined"
