"""Self-RAG ends, whatever the model says, and gives what it has when a cap is reached."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from support.by_task import ByTask, by_task, first_sentence, grades, labels
from support.graphs import fixed

from rag_kit.errors import BudgetExceededError
from rag_kit.graphs import build_self_rag
from rag_kit.models import chat_model
from rag_kit.models.extractive.blocks import Prompt
from rag_kit.retrieval import BM25Retriever

TEXT = " ".join(f"Fact number {i} holds here." for i in range(40))


class Endless(BaseRetriever):
    """Always finds three long passages."""

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        return [Document(f"{TEXT} Passage {i} is other.") for i in range(3)]


def erratic(seed: int) -> ByTask:
    """Answers each prompt at random, of all that may be said and some that may not; the same for the same prompt."""

    def pick(prompt: Prompt, options: list[Any]) -> Any:
        return random.Random(f"{seed} {prompt.task} {prompt.body}").choice(options)

    def verdict(good: bool) -> dict[str, Any]:
        return {"relevant": good, "score": float(good), "reason": "r"}

    def grade(prompt: Prompt) -> Any:
        return pick(prompt, [verdict(g) for g in (True, False)] + [""])

    critiques: list[Any] = [
        labels(a, b, c)
        for a in ("relevant", "irrelevant")
        for b in ("full", "partial", "none")
        for c in range(1, 6)
    ]
    return by_task(
        {
            "retrieve_needed": lambda p: pick(p, [{"retrieve": "yes"}, {"retrieve": "no"}, "perhaps"]),
            "continue_answer": lambda p: pick(
                p, [first_sentence(p), "END", "Fact number 1 holds here.", "[1]"]
            ),
            "continue_unaided": lambda p: pick(p, ["END", f"Well, {len(p.body)}.", "So it is."]),
            "critique": lambda p: pick(p, [*critiques, "", {"relevance": "maybe"}]),
            "critique_usefulness": lambda p: pick(p, [{"usefulness": n} for n in range(7)]),
            "repair_json": "",
            "grade_passages": lambda p: pick(
                p,
                [{"grades": [{"id": one.number, **verdict(g)} for one in p.passages]} for g in (True, False)]
                + [""],
            ),
            "answer": lambda p: pick(p, ["Fact number 1 holds here.[1]", "No idea.", "文档中没有答案。"]),
            "answer_again": lambda p: pick(p, ["Fact number 2 holds here.[1]", "Fact number 9 holds.[7]"]),
            "grade_support": grade,
            "grade_usefulness": grade,
            "rewrite_query": lambda p: pick(p, [{"query": f"q{len(p.body)}"}, {"query": "same"}, ""]),
        }
    )


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(
    st.integers(0, 10_000),
    st.integers(1, 4),
    st.integers(1, 3),
    st.sampled_from(["soft", "hard"]),
    st.floats(0, 1),
)
def test_paper_ends_for_any_labels(
    seed: int, segments: int, width: int, constraint: str, delta: float
) -> None:
    """Segments, beams and calls stay within the settings; the answer has a status and each candidate a reason."""
    graph = build_self_rag(Endless(), erratic(seed), output="full")
    context: Any = {
        "max_segments": segments,
        "beam_width": width,
        "constraint": constraint,
        "delta": delta,
        "max_calls": None,
    }
    result = graph.invoke({"question": "Which facts hold?"}, context=context)
    known = ("grounded", "flagged", "uncited", "declined", "unsourced", "incomplete")
    assert result["answer"] and result["status"] in known
    assert result["segment"] <= segments and len(result["beams"]) <= width
    assert all(len(beam["segments"]) <= segments for beam in result["beams"])
    assert all(one["reason"] for one in result["trace"])
    per_segment = width + width * 3 * 2
    assert len(result["trace"]) <= segments * width * 3
    assert (
        result["usage"]["calls"] <= 3 * segments * per_segment
    )  # an unusable verdict is asked for up to three times


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 4), st.integers(1, 3), st.sampled_from(["soft", "hard"]))
def test_reflect_ends_for_any_verdicts(seed: int, rounds: int, generations: int, constraint: str) -> None:
    """Rounds and generations stay within the settings."""
    graph = build_self_rag(Endless(), erratic(seed), mode="reflect", output="full")
    context: Any = {
        "max_rounds": rounds,
        "max_generations": generations,
        "constraint": constraint,
        "max_calls": None,
    }
    result = graph.invoke({"question": "Which facts hold?"}, context=context)
    assert result["answer"] and result["status"] in ("grounded", "flagged", "uncited", "declined")
    assert result["round"] <= rounds and len(result["tried"]) <= rounds
    assert len(result["drafts"]) <= rounds * generations


def steady() -> ByTask:
    """Goes on for ever, from every passage."""
    return by_task(
        {
            "retrieve_needed": {"retrieve": "yes"},
            "continue_answer": first_sentence,
            "critique": labels(),
        }
    )


@pytest.mark.parametrize("max_calls", [0, 2, 3, 5, 7, 13, 29])
def test_the_best_so_far_is_given_at_any_cap_of_calls(max_calls: int) -> None:
    """Wherever the cap is reached: an answer, a note, never a call too many, the same each time.

    Before the first candidate is judged there is nothing to give: an error names the cap as it was given.
    """
    graph = build_self_rag(Endless(), steady(), output="full")
    context = {"max_calls": max_calls, "max_segments": 3, "k": 3}
    if max_calls < 3:
        with pytest.raises(BudgetExceededError, match=f"max_calls={max_calls}"):
            graph.invoke({"question": "Which facts hold?"}, context=context)
        return
    first = graph.invoke({"question": "Which facts hold?"}, context=context)
    second = graph.invoke({"question": "Which facts hold?"}, context=context)
    assert first["answer"].startswith("Fact number") and first["answer"] == second["answer"]
    assert first["usage"]["calls"] <= max_calls
    stopped = any(f"max_calls={max_calls}" in note for note in first["notes"])
    assert stopped or first["segment"] == 3


async def test_the_best_so_far_at_a_cap_of_tokens() -> None:
    """The same for tokens, in both forms."""
    graph = build_self_rag(Endless(), steady(), output="full")
    for result in (
        graph.invoke({"question": "Which facts hold?"}, context={"max_tokens": 130}),
        await graph.ainvoke({"question": "Which facts hold?"}, context={"max_tokens": 130}),
    ):
        assert result["answer"].startswith("Fact number")
        assert any("max_tokens=130" in note for note in result["notes"])
    with pytest.raises(BudgetExceededError, match="max_tokens=1"):
        graph.invoke({"question": "Which facts hold?"}, context={"max_tokens": 1})


async def test_the_best_so_far_at_the_deadline() -> None:
    """Slow calls: what was judged in time is the answer; with nothing judged, the error names the deadline."""
    slow = steady()

    def later(prompt: Prompt) -> Any:
        slow.seconds = 0.0 if not prompt.block("answer") else 5.0
        return first_sentence(prompt)

    def slower(prompt: Prompt) -> Any:
        slow.seconds = 5.0
        return labels()

    slow.answers["continue_answer"] = later
    slow.answers["critique"] = slower
    graph = build_self_rag(Endless(), slow, output="full")
    context = {"deadline": 1.0, "beam_width": 1, "k": 1}
    result = graph.invoke({"question": "Which facts hold?"}, context=context)
    assert result["answer"] == "Fact number 0 holds here.[1]"
    assert any("deadline=1" in note for note in result["notes"])
    slow.seconds = 5.0
    with pytest.raises(BudgetExceededError, match="deadline"):
        await graph.ainvoke({"question": "Which facts hold?"}, context={"deadline": 0.2})


def never_content() -> Any:
    """A model whose answers are never supported, and which always has another query."""
    counter = iter(range(10_000))
    return by_task(
        {
            "retrieve_needed": {"retrieve": "yes"},
            "continue_answer": first_sentence,
            "critique": labels(),
            "grade_passages": grades(lambda text: {"relevant": True, "score": 1.0, "reason": "r"}),
            "answer": "Fact number 1 holds here.[1]",
            "answer_again": "Fact number 2 holds here.[1]",
            "grade_support": {"relevant": False, "score": 0.0, "reason": "no"},
            "rewrite_query": lambda p: {"query": f"q{next(counter)}"},
        }
    )


@pytest.mark.parametrize("max_calls", [1, 2, 3, 5, 8, 11])
def test_reflect_gives_the_best_so_far_at_any_cap(max_calls: int) -> None:
    """An ungraded answer is given with a note; without any answer the cap is an error."""
    graph = build_self_rag(Endless(), never_content(), mode="reflect", output="full")
    context: Any = {"max_calls": max_calls, "max_rounds": 5}
    if max_calls < 2:  # the verdict on the passages comes before the first answer
        with pytest.raises(BudgetExceededError, match=f"max_calls={max_calls}"):
            graph.invoke({"question": "Which facts hold?"}, context=context)
        return
    result = graph.invoke({"question": "Which facts hold?"}, context=context)
    assert result["answer"].startswith("Fact number")
    assert result["usage"]["calls"] <= max_calls
    assert any(f"max_calls={max_calls}" in note for note in result["notes"])


@pytest.mark.parametrize("mode", ["paper", "reflect"])
async def test_without_k_the_retriever_gives_its_own_number(mode: Any) -> None:
    """As in every graph: `k` of the retriever holds, and that of the run in its place."""
    retriever = BM25Retriever.from_texts([f"Pump {number} starts at 40 degrees." for number in range(9)], k=7)
    graph = build_self_rag(retriever, chat_model("extractive"), mode=mode, output="full")
    asked = {"question": "At how many degrees does the pump start?"}

    def found(events: list[Any]) -> int:
        return next(int(event["passages"]) for event in events if event["event"] == "retrieved")

    assert found(list(graph.stream(asked, stream_mode="custom"))) == 7
    assert found([event async for event in graph.astream(asked, stream_mode="custom")]) == 7
    assert found(list(graph.stream(asked, context={"k": 3}, stream_mode="custom"))) == 3


def test_settings_have_bounds() -> None:
    """Settings of a run that would not end are refused by name."""
    graph = build_self_rag(Endless(), steady(), output="full")
    for name, value in {
        "max_segments": 0,
        "beam_width": 6,
        "delta": 1.5,
        "k": 21,
        "max_rounds": 11,
        "max_generations": 0,
        "segment_sentences": 6,
        "constraint": "none",
        "support_weight": -1,
    }.items():
        with pytest.raises(ValueError, match=name):
            graph.invoke({"question": "What?"}, context={name: value})


@pytest.mark.parametrize("mode", ["paper", "reflect"])
def test_the_widest_settings_stay_within_the_steps_of_the_graph(mode: Any) -> None:
    """Twenty segments, or ten rounds of ten generations, reach no recursion limit."""
    found = (
        Endless() if mode == "paper" else fixed("Fact number 1 holds here.")
    )  # a short one is checked quickly
    graph = build_self_rag(found, never_content(), mode=mode, output="full")
    context: Any = {
        "max_segments": 20,
        "max_rounds": 10,
        "max_generations": 10,
        "beam_width": 1,
        "max_calls": None,
    }
    result = graph.invoke({"question": "Which facts hold?"}, context=context)
    assert graph.name == ("self_rag" if mode == "paper" else "self_rag_reflect")
    assert (result["segment"] == 20) if mode == "paper" else (len(result["drafts"]) == 100)
