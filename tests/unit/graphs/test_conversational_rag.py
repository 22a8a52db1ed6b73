"""The conversational graph: threads, summaries under a cap, questions offered, guards, caps."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langgraph.checkpoint.memory import InMemorySaver
from support.by_task import ByTask, by_task
from support.graphs import fixed, go, thread, told

from rag_kit.errors import ModelUnreachableError
from rag_kit.graphs import Guards, build_conversational_rag
from rag_kit.graphs.conversational.build import is_long, split_history
from rag_kit.graphs.guards import Refusal
from rag_kit.models import chat_model
from rag_kit.retrieval import BM25Retriever

PASSAGES = [
    "The pump starts at 40 degrees. It stops at 30 degrees.",
    "The fan starts at 60 degrees and is loud.",
    "The relief valve is a spring that opens at 3 bar.",
]
CHINESE = ["水泵在四十度时启动，在三十度时停止。", "安全阀是一种弹簧阀，压力达到三巴时打开。"]


def scripted(**replies: Any) -> ByTask:
    usual = {
        "answer": "The pump starts at 40 degrees. [1]",
        "condense": {"query": "When does the pump start?"},
        "summarise_history": "The user asked about pumps.",
        "related_questions": {"queries": []},
    }
    return by_task({**usual, **replies})


@pytest.mark.parametrize(
    ("texts", "questions", "words"),
    [
        (PASSAGES, ["When does the pump start?", "When does it stop?"], ("pump", "stop")),
        (CHINESE, ["水泵什么时候启动？", "它什么时候停止？"], ("水泵", "停止")),
    ],
)
async def test_a_follow_up_is_understood_alike_in_both_forms(
    texts: list[str], questions: list[str], words: tuple[str, ...]
) -> None:
    """Two turns of a thread, sync and async, give the same state; the question is never overwritten."""
    ends = []
    for native in (False, True):
        graph = build_conversational_rag(
            BM25Retriever.from_texts(texts, k=2),
            chat_model("extractive"),
            checkpointer=InMemorySaver(),
            output="full",
        )
        results = []
        for question in questions:
            values: Any = {"question": question}
            context: Any = {"related_questions": 2}
            results.append(await go(graph, native, values, thread(), context=context))
        ends.append([told(result) for result in results])
    assert ends[0] == ends[1]
    last = ends[0][1]
    assert last["question"] == questions[1]
    assert all(word in last["search_query"] for word in words)
    assert last["status"] == "grounded"
    assert [turn["question"] for turn in last["history"]] == questions


def test_the_summary_is_written_over_the_cap_only_and_grows_from_the_last() -> None:
    """Below the cap there is no call; above it the older half joins the earlier summary in one."""
    model = scripted()
    graph = build_conversational_rag(fixed(*PASSAGES), model, checkpointer=InMemorySaver(), output="full")
    context: Any = {"max_history_turns": 4}
    results = [
        graph.invoke({"question": f"Question {n} about the pump?"}, thread(), context=context)
        for n in range(9)
    ]
    assert [n for n, result in enumerate(results) if any("summarise" in x for x in result["notes"])] == [5, 8]
    assert [len(result["history"]) for result in results] == [1, 2, 3, 4, 5, 3, 4, 5, 3]
    first, second = [text for task, text in model.asked if task == "summarise_history"]
    assert "Question 0" in first and "Question 2" in first and "Question 3" not in first
    assert '<turn role="summary">The user asked about pumps.</turn>' in second
    assert "Question 0" not in second and "Question 3" in second
    last = next(text for task, text in reversed(model.asked) if task == "condense")
    assert "The user asked about pumps." in last and "Question 5 about" not in last
    assert results[-1]["summary"] == "The user asked about pumps."


def test_long_turns_are_summarised_by_their_characters() -> None:
    """A cap on characters holds too, and a summary longer than allowed is cut."""
    model = scripted(answer="The pump starts at 40 degrees. [1] " * 20, summarise_history="x" * 5000)
    graph = build_conversational_rag(fixed(*PASSAGES), model, checkpointer=InMemorySaver(), output="full")
    context: Any = {"max_history_chars": 800}
    graph.invoke({"question": "When does the pump start?"}, thread(), context=context)
    graph.invoke({"question": "Why?"}, thread(), context=context)
    result = graph.invoke({"question": "Why?"}, thread(), context=context)
    assert len(result["summary"]) == 200


@given(
    lengths=st.lists(st.integers(1, 400), max_size=20),
    max_turns=st.integers(1, 19),
    max_chars=st.integers(200, 2000),
)
@settings(max_examples=40, deadline=None)
def test_what_stays_is_within_the_caps(lengths: list[int], max_turns: int, max_chars: int) -> None:
    """Nothing is lost or reordered, and what stays word for word is no longer too long."""
    turns: Any = [{"question": "q", "answer": "a" * length} for length in lengths]
    older, newer = split_history(turns, max_turns, max_chars)
    assert older + newer == turns
    assert not is_long(newer, "", max_turns, max_chars)
    if is_long(turns, "", max_turns, max_chars):
        assert older


def test_a_thread_goes_on_without_a_summary_when_none_is_written() -> None:
    """The model fails at the summary: the turn is answered, the history kept, and the notes say so."""
    model = scripted(summarise_history=ModelUnreachableError("away"))
    graph = build_conversational_rag(fixed(*PASSAGES), model, checkpointer=InMemorySaver(), output="full")
    context: Any = {"max_history_turns": 1}
    for _ in range(3):
        result = graph.invoke({"question": "When does the pump start?"}, thread(), context=context)
    assert result["status"] == "grounded"
    assert any("degraded: summarise failed: ModelUnreachableError" in note for note in result["notes"])
    assert len(result["history"]) == 3


def test_the_extractive_model_summarises_what_was_asked() -> None:
    """Offline a summary is what was asked with first sentences, never the model's line about itself."""
    graph = build_conversational_rag(
        BM25Retriever.from_texts(PASSAGES, k=2),
        chat_model("extractive"),
        checkpointer=InMemorySaver(),
        output="full",
    )
    context: Any = {"max_history_turns": 1}
    for question in ("When does the pump start?", "When does the fan start?", "When does it stop?"):
        result = graph.invoke({"question": question}, thread(), context=context)
    assert "When does the pump start? The pump starts at 40 degrees." in result["summary"]
    assert "extractive model" not in result["summary"]


def test_offered_questions_are_new_answerable_and_few() -> None:
    """Earlier questions, and those that the passages cannot answer, are left out, whoever offers them."""
    offered = [
        "When does the pump start?",
        "WHEN does the pump start",
        "Who built the Titanic?",
        "When does the fan start?",
        "At how many bar does the relief valve open?",
        "Is the fan loud?",
    ]
    model = scripted(related_questions={"queries": offered})
    graph = build_conversational_rag(fixed(*PASSAGES), model, checkpointer=InMemorySaver(), output="full")
    question: Any = {"question": "When does the pump start?"}
    result = graph.invoke(question, thread(), context={"related_questions": 2})
    assert result["related_questions"] == [offered[3], offered[4]]
    assert graph.invoke(question, thread())["related_questions"] == []
    assert "related_questions" not in model.tasks()[2:]


@pytest.mark.parametrize(
    ("texts", "question"), [(PASSAGES, "When does the pump start?"), (CHINESE, "水泵什么时候启动？")]
)
def test_the_extractive_model_offers_no_questions_and_says_so(texts: list[str], question: str) -> None:
    """The answer stands; a note says that this takes a language model."""
    graph = build_conversational_rag(fixed(*texts), chat_model("extractive"), output="full")
    result = graph.invoke({"question": question}, context={"related_questions": 3})
    assert result["status"] == "grounded" and result["related_questions"] == []
    assert any(note.startswith("related_questions: 'extractive' is no") for note in result["notes"])


def test_the_answer_stands_when_a_cap_leaves_no_room_for_more() -> None:
    """With one call allowed the answer is given, and the notes say what was left out."""
    graph = build_conversational_rag(fixed(*PASSAGES), scripted(), output="full")
    result = graph.invoke(
        {"question": "When does the pump start?"}, context={"max_calls": 1, "related_questions": 3}
    )
    assert result["status"] == "grounded"
    assert result["notes"] == ["related questions: left out, a cap of the run was reached (calls)"]
    assert result["usage"]["calls"] == 1


def test_guards_see_every_way_out_and_in() -> None:
    """Masked words reach no prompt and no later turn; a refused question leaves no trace; offers are guarded."""
    model = scripted(related_questions={"queries": ["When does the fan start?", "Is the fan loud?"]})
    guards = Guards(
        question=[lambda text, config: Refusal("No.") if "bomb" in text else text.replace("Smith", "[name]")],
        passages=[lambda documents, config: documents[:2]],
        answer=[lambda text, config: Refusal("Not that.") if "loud?" in text else None],
    )
    graph = build_conversational_rag(
        fixed(*PASSAGES), model, guards=guards, checkpointer=InMemorySaver(), output="full"
    )
    assert graph.invoke({"question": "How is a bomb made?"}, thread())["status"] == "refused"
    assert not model.asked
    result = graph.invoke(
        {"question": "When does Smith start the pump?"}, thread(), context={"related_questions": 3}
    )
    assert result["question"] == "When does Smith start the pump?"
    assert result["related_questions"] == ["When does the fan start?"]
    assert len(result["documents"]) == 2
    graph.invoke({"question": "And when does it stop?"}, thread())
    seen = "".join(text for _, text in model.asked)
    assert "Smith" not in seen and "bomb" not in seen and "[name]" in seen and "relief" not in seen
