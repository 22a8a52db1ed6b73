"""The plain graph: condense, retrieve, answer, cite."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain_core.documents import Document
from langgraph.checkpoint.memory import InMemorySaver
from support.by_task import ByTask, by_task
from support.graphs import BUILDERS, fixed

from rag_kit.errors import BudgetExceededError, InvalidInputError
from rag_kit.graphs import build_plain_rag
from rag_kit.models import chat_model
from rag_kit.retrieval import BM25Retriever, PointwiseReranker, RerankRetriever
from rag_kit.text.citations.decline import DECLINED

PASSAGES = [
    Document(
        "The pump starts at 40 degrees. It stops at 30 degrees.",
        metadata={"file": "pump.md", "heading": "Start"},
    ),
    Document("The fan starts at 60 degrees and is loud.", metadata={"file": "fan.pdf", "page": 3}),
    Document("Bananas ripen faster next to apples.", metadata={"file": "fruit.txt"}),
]


def scripted(answer: str = "") -> ByTask:
    return by_task({"answer": answer, "condense": {"query": "Is the fan loud?"}})


def retriever() -> BM25Retriever:
    return BM25Retriever.from_documents(PASSAGES, k=2)


def test_declines_without_asking_the_model_when_nothing_is_found() -> None:
    """No passage: the decline sentence of the question's language, and no model call."""
    model = scripted()
    result = build_plain_rag(fixed(), model, output="full").invoke({"question": "什么时候启动？"})
    assert result["answer"] == DECLINED["zh"]
    assert result["status"] == "declined"
    assert result["usage"]["calls"] == 0
    assert not model.asked


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        ("The fan starts at 60 degrees. [1]", "grounded"),
        ("The fan starts at 61 degrees. [1]", "flagged"),
        ("The fan starts at 60 degrees. [2]", "flagged"),
        ("The fan starts at 60 degrees. [9]", "flagged"),
        ("风扇在六十度时启动。[1]", "undecided"),
        ("The fan starts at 60 degrees.", "uncited"),
        (DECLINED["en"], "declined"),
    ],
)
def test_a_citation_that_does_not_hold_is_flagged(answer: str, status: str) -> None:
    """A changed number, another passage or a passage that does not exist is noticed."""
    documents = [PASSAGES[1], PASSAGES[2]]
    result = build_plain_rag(fixed(*documents), scripted(answer), output="full").invoke({"question": "When?"})
    assert result["answer"] == answer
    assert result["status"] == status


@pytest.mark.parametrize(
    ("context", "says"),
    [
        ({"langage": "en"}, r"'langage' is no argument \(did you mean 'language'\?\)"),
        ({"max_hops": 2}, "'max_hops' is no argument; allowed: "),  # and not max_tokens
        ({"delta": 0.5}, "'delta' is no argument; allowed: "),  # and not model
        ({"k": "x"}, "k: Input should be a valid integer"),
        ({"filter": 5}, "filter: "),
        ({"deadline": 1e300}, "deadline: "),
        ({"zzz": 1, "max_calls": -1}, "max_calls: .*'zzz' is no argument"),
        (5, "context is a int; give a dict"),
    ],
)
def test_wrong_settings_are_explained(context: Any, says: str) -> None:
    """One line of this kit's own; an unknown name is answered by all names that are allowed."""
    graph = build_plain_rag(fixed(*PASSAGES), chat_model("extractive"), output="full")
    for call in (graph.invoke, lambda *args, **kwargs: asyncio.run(graph.ainvoke(*args, **kwargs))):
        with pytest.raises(InvalidInputError, match=says) as caught:
            call({"question": "When does the pump start?"}, context=context)
        if "is no argument" in says:
            assert "language, max_calls, max_tokens" in str(caught.value)
        assert "\n" not in str(caught.value) and "pydantic" not in str(caught.value)


def test_a_question_of_a_megabyte_is_refused() -> None:
    """It would keep every node busy; the error says how much is allowed."""
    graph = build_plain_rag(fixed(*PASSAGES), chat_model("extractive"), output="full")
    with pytest.raises(InvalidInputError, match="1,000,000 characters; at most 32,000"):
        graph.invoke({"question": "why " * 250_000})
    assert graph.invoke({"question": ("why " * 8_000)})["status"]


@pytest.mark.parametrize("question", ["", "   ", None, 3])
def test_a_question_that_is_no_text_is_refused(question: Any) -> None:
    """An empty question gets a clear error, not an empty answer."""
    graph = build_plain_rag(retriever(), chat_model("extractive"), output="full")
    with pytest.raises(InvalidInputError, match="question"):
        graph.invoke({"question": question})


@pytest.mark.parametrize(
    ("parts", "named"),
    [((None, "llm"), "retriever"), ((["a"], "llm"), "retriever"), (("retriever", "extractive"), "llm")],
)
def test_a_part_of_the_wrong_kind_is_refused_when_building(parts: tuple[Any, Any], named: str) -> None:
    """A name instead of a model, or a list instead of a retriever, is refused at once."""
    ready = {"llm": chat_model("extractive"), "retriever": retriever()}
    first, second = (ready.get(part, part) if isinstance(part, str) else part for part in parts)
    with pytest.raises(InvalidInputError, match=named):
        build_plain_rag(first, second, output="full")


def test_max_tokens_counts_over_nodes() -> None:
    """The condense call's tokens are charged before the answer is asked for."""
    found = fixed(PASSAGES[1])
    model = scripted("The fan is loud. [1]")
    graph = build_plain_rag(found, model, checkpointer=InMemorySaver(), output="full")
    config: Any = {"configurable": {"thread_id": "1"}}
    graph.invoke({"question": "fan?"}, config)
    with pytest.raises(BudgetExceededError, match="max_tokens=15"):
        graph.invoke({"question": "Is it loud?"}, config, context={"max_tokens": 15})


def test_passages_that_do_not_fit_are_left_out_and_said() -> None:
    """A cap on characters keeps leading passages and notes the rest."""
    model = scripted("The pump starts at 40 degrees. [1]")
    graph = build_plain_rag(fixed(*PASSAGES), model, max_passage_chars=60, output="full")
    result = graph.invoke({"question": "When?"})
    assert any("2 passages did not fit" in note for note in result["notes"])
    assert "Bananas" not in model.asked[0][1]


def test_a_decline_beside_unread_passages_is_incomplete() -> None:
    """A long passage leaves no room for the next ones, so that nothing tells that the answer is not there."""
    found = fixed("The pump is blue. " * 20, "The pump starts at 40 degrees.")
    result = build_plain_rag(found, chat_model("extractive"), max_passage_chars=100).invoke(
        {"question": "When does the fan stop?"}
    )
    assert result["status"] == "incomplete"
    assert "Not all that was found could be read." in result["answer"]
    assert "answer: the first passage was read as far as max_passage_chars=100 allows" in result["notes"]


@pytest.mark.parametrize("name", ["plain", "conversational"])
def test_a_retriever_that_asks_the_model_about_each_passage_fits_the_default_caps(name: str) -> None:
    """Twenty candidates are graded one by one, and the answer is still asked for."""
    model = by_task(
        {
            "rerank_pointwise": {"relevant": True, "score": 0.5, "reason": "x"},
            "answer": "The fan 1 is loud.[1]",
        }
    )
    words = BM25Retriever.from_texts([f"The fan {number} is loud." for number in range(30)])
    ranked = RerankRetriever(retriever=words, reranker=PointwiseReranker(llm=model))
    result = BUILDERS[name](ranked, model).invoke({"question": "Which fan is loud?"})
    assert result["answer"] == "The fan 1 is loud.[1]" and result["usage"]["calls"] == 21
