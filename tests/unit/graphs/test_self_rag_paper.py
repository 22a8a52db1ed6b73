"""Self-RAG as in the paper, as a graph."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatResult
from support.by_task import ByTask, by_task, first_sentence, labels, passage_of
from support.graphs import fixed

from rag_kit.errors import InvalidInputError, ModelUnauthorizedError
from rag_kit.graphs import Guards, build_self_rag
from rag_kit.graphs.guards import Refusal
from rag_kit.models import chat_model
from rag_kit.models.extractive.blocks import Prompt
from rag_kit.retrieval import BM25Retriever
from rag_kit.text.citations.decline import DECLINED

WRONG = Document("The fan was painted in 1990. The fan is loud.", metadata={"file": "paint.md"})
RIGHT = Document("The fan starts at 60 degrees.", metadata={"file": "fan.md"})
OTHER = Document("Bananas ripen faster next to apples.", metadata={"file": "fruit.md"})
QUESTION = "At how many degrees does the fan start?"


def judge(prompt: Prompt) -> dict[str, Any]:
    """A critic that knows which passage supports the answer."""
    good = "60 degrees" in passage_of(prompt)
    return labels("relevant", "full", 5) if good else labels("irrelevant", "none", 2)


def model(**answers: Any) -> ByTask:
    """A model that looks up, takes the passage's next sentence, and judges it."""
    return by_task(
        {
            "retrieve_needed": {"retrieve": "yes"},
            "continue_answer": first_sentence,
            "continue_unaided": "END",
            "critique": judge,
            "critique_usefulness": {"usefulness": 4},
        }
        | answers
    )


def paper(retriever: Any, llm: Any, question: str, *, guards: Any = None, **context: Any) -> Any:
    """The whole state after a question."""
    graph = build_self_rag(retriever, llm, mode="paper", guards=guards, output="full")
    return graph.invoke({"question": question}, context=context)


def test_the_supported_passage_wins_although_it_ranks_second() -> None:
    """With a scripted critic the second passage's text is the answer, and the trace says why the first lost."""
    result = paper(fixed(WRONG, RIGHT), model(), QUESTION, max_segments=1)
    assert result["answer"] == "The fan starts at 60 degrees.[1]"
    assert result["status"] == "grounded"
    assert [d.metadata["file"] for d in result["documents"]] == ["fan.md"]
    assert result["scoring"] == "labels"
    first, second = result["trace"]
    assert (first["passage"], first["source"], first["f"]) == (0, "paint.md", 1 + 0 + 0 - 0.25)
    assert (second["passage"], second["source"], second["f"]) == (1, "fan.md", 3.5)
    assert (first["won"], second["won"]) == (False, True)
    assert first["reason"] == "kept as beam 2" and second["reason"] == "kept as beam 1"
    assert first["labels"] == {"relevance": "irrelevant", "support": "none", "usefulness": "2"}
    assert first["parts"] == {"p": 1.0, "relevance": 0.0, "support": 0.0, "usefulness": -0.5}
    assert first["probabilities"]["support"] == {"full": 0.0, "partial": 0.0, "none": 1.0}


def test_hard_constraints_decline_where_soft_ones_answer() -> None:
    """Nothing supported: soft gives the best and the citation check flags it, hard declines."""
    invented = model(continue_answer="The fan starts at 61 degrees.", critique=labels("relevant", "none", 5))
    graph = build_self_rag(fixed(RIGHT), invented, output="full")
    soft = graph.invoke({"question": QUESTION}, context={"max_segments": 1})
    hard = graph.invoke({"question": QUESTION}, context={"max_segments": 1, "constraint": "hard"})
    assert (soft["answer"], soft["status"]) == ("The fan starts at 61 degrees.[1]", "flagged")
    assert (hard["answer"], hard["status"]) == (DECLINED["en"], "declined")
    assert "hard constraint" in hard["trace"][0]["reason"]


def test_segments_follow_each_other_and_what_was_said_is_searched_for() -> None:
    """Two segments from two passages, cited apart; the second search adds the first segment, the question stays."""
    start = Document("The pump starts at 40 degrees.", metadata={"file": "a"})
    stop = Document("The pump stops at 30 degrees.", metadata={"file": "b"})
    found = fixed(start, stop)

    def critic(prompt: Prompt) -> dict[str, Any]:
        starts = "starts" in prompt.block("statement")
        return labels("relevant", "full", 4 if starts else 5 if prompt.block("answer") else 3)

    llm = model(critique=critic)
    result = paper(found, llm, "When does it start and stop?")
    assert result["answer"] == "The pump starts at 40 degrees.[1] The pump stops at 30 degrees.[2]"
    assert result["status"] == "grounded"
    assert result["question"] == "When does it start and stop?"
    assert found.queries[0] == "When does it start and stop?"
    assert set(found.queries[1:3]) == {
        "When does it start and stop? The pump starts at 40 degrees.",
        "When does it start and stop? The pump stops at 30 degrees.",
    }
    won = [one for one in result["trace"] if one["won"]]
    assert [(one["segment"], one["source"]) for one in won] == [(1, "a"), (2, "b")]


def test_without_retrieval_a_segment_is_written_directly() -> None:
    """No search, no support to judge, no citation: the answer is marked as resting on nothing."""
    found = fixed(RIGHT)
    llm = model(
        retrieve_needed={"retrieve": "no"},
        continue_unaided=lambda p: "END" if p.block("answer") else "You are welcome.",
    )
    result = paper(found, llm, "Thank you!")
    assert (result["answer"], result["status"]) == ("You are welcome.", "unsourced")
    assert not found.queries
    assert result["documents"] == []
    assert "critique" not in llm.tasks() and "continue_answer" not in llm.tasks()
    entry = result["trace"][0]
    assert entry["passage"] is None
    assert entry["f"] == 1 + 0.5 * 0.5  # p(y) and usefulness alone


def test_retrieval_is_decided_for_each_segment_and_each_beam() -> None:
    """One beam looks documents up for its second segment, the other goes on without, in one step."""
    start = Document("The pump starts at 40 degrees.")
    hum = Document("The pump hums.")

    def decide(prompt: Prompt) -> dict[str, str]:
        return {"retrieve": "no" if "hums" in prompt.block("answer") else "yes"}

    found = fixed(start, hum)
    llm = model(
        retrieve_needed=decide,
        critique=labels(),
        continue_unaided="That is all.",
        continue_answer=lambda p: "END" if p.block("answer") else first_sentence(p),
    )
    result = paper(found, llm, "What?", max_segments=2)
    second = [(one["beam"], one["passage"]) for one in result["trace"] if one["segment"] == 2]
    assert second == [(1, 0), (1, 1), (2, None)]
    assert len(found.queries) == 2  # the question, and again for the one beam


def test_weights_of_a_run_decide() -> None:
    """With the weight of usefulness alone, the unsupported but useful text wins."""
    verdicts = {"60": labels("relevant", "full", 2), "1990": labels("irrelevant", "none", 5)}

    def critic(prompt: Prompt) -> dict[str, Any]:
        return next(v for key, v in verdicts.items() if key in prompt.block("statement"))

    graph = build_self_rag(fixed(RIGHT, WRONG), model(critique=critic), output="full")
    context = {"max_segments": 1}
    paper = graph.invoke({"question": QUESTION}, context=context)
    weights = {"relevance_weight": 0, "support_weight": 0, "usefulness_weight": 1}
    other = graph.invoke({"question": QUESTION}, context={**context, **weights})
    assert "60" in paper["answer"] and "1990" in other["answer"]


def test_k_beams_and_sentences_are_knobs() -> None:
    """Passages, beams and sentences of a segment follow the settings."""
    many = [Document(f"Fact {i} holds. Detail {i} follows.") for i in range(6)]
    retriever = BM25Retriever.from_documents(many)
    llm = model(critique=labels(), continue_answer=lambda p: passage_of(p))
    context = {"k": 3, "beam_width": 1, "segment_sentences": 2, "max_segments": 1}
    result = paper(retriever, llm, "Which fact holds?", **context)
    assert len(result["trace"]) == 3
    assert len(result["beams"]) == 1
    assert len(result["citations"]) == 2


class Barrier(ByTask):
    """Answers a task only when as many calls of it are under way as there should be."""

    parties: int
    task: str
    threads: Any = None
    waiting: list[int] = []
    event: Any = None

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        if f"<task>{self.task}</task>" in str(messages[0].content):
            self.threads.wait(30)
        return self._reply(messages)

    async def _agenerate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        if f"<task>{self.task}</task>" in str(messages[0].content):
            self.waiting.append(1)
            if len(self.waiting) == self.parties:
                self.event.set()
            await asyncio.wait_for(self.event.wait(), 30)
        return self._reply(messages)


async def test_all_passages_are_written_from_at_once_and_judged_in_one_call() -> None:
    """A model that answers nobody before all five calls are under way answers them all."""
    task = "continue_answer"
    documents = [Document(f"Fact {i} holds.") for i in range(5)]
    answers = dict(model(critique=labels()).answers)
    context = {"max_segments": 1}
    llm = Barrier(answers=answers, asked=[], parties=5, task=task, threads=threading.Barrier(5))
    first = paper(fixed(*documents), llm, "Which?", **context)
    llm = Barrier(answers=answers, asked=[], waiting=[], parties=5, task=task, event=asyncio.Event())
    second = await build_self_rag(fixed(*documents), llm, output="full").ainvoke(
        {"question": "Which?"}, context=context
    )
    assert len(first["trace"]) == len(second["trace"]) == 5
    assert llm.tasks() == ["retrieve_needed", *["continue_answer"] * 5, "critique"]


def test_what_is_judged_in_one_call_is_bounded() -> None:
    """Passages beyond max_passage_chars, or more than ten, are judged in another call; each has its own labels."""
    documents = [Document(""), *(Document(f"Fact {i} holds. {'x' * 40}") for i in range(12))]
    for chars, critiques in ((12_000, 2), (120, 6)):
        llm = model(critique=lambda p: labels("relevant", "none" if "Fact 3" in passage_of(p) else "full", 5))
        graph = build_self_rag(fixed(*documents), llm, max_passage_chars=chars, output="full")
        result = graph.invoke({"question": "Which?"}, context={"max_segments": 1})
        assert llm.tasks().count("critique") == critiques and len(result["trace"]) == 13
        unsupported = [one["text"] for one in result["trace"] if one["labels"].get("support") == "none"]
        assert unsupported == ["Fact 3 holds."]


def test_only_the_winner_is_sent_and_nothing_twice() -> None:
    """The segment events joined are the answer; no token of a candidate reaches the messages stream."""
    graph = build_self_rag(fixed(WRONG, RIGHT, OTHER), chat_model("extractive"), mode="paper", output="full")
    pieces, tokens, state = [], [], {}
    for kind, part in graph.stream({"question": QUESTION}, stream_mode=["custom", "messages", "values"]):
        if kind == "custom" and part["event"] == "segment":
            pieces.append(part["text"])
        elif kind == "messages":
            tokens.append(part)
        elif kind == "values":
            state = part
    assert "".join(pieces) == state["answer"]
    assert not tokens


def test_what_is_decided_is_sent_before_the_end() -> None:
    """With one beam each segment is sent when it is ranked, before the next one is written."""
    text = Document("Tea is hot. Ice is cold. Milk is white.")
    graph = build_self_rag(fixed(text), model(critique=labels()), output="full")
    events = [
        part["event"]
        for part in graph.stream({"question": "What?"}, stream_mode="custom", context={"beam_width": 1})
    ]
    assert events.count("segment") == 3
    assert events.index("segment") < events.index("decided", 2)


def test_a_decline_after_many_long_passages_is_one() -> None:
    """Each was shown by itself, so all that was found was read; one that is cut was not."""
    for count, sentences, status in ((6, 150, "declined"), (1, 800, "incomplete")):
        found = fixed(
            *(
                f"Passage {number} is of the hall. {'It is blue here. ' * sentences}"
                for number in range(count)
            )
        )
        assert sum(len(one.page_content) for one in found.documents) > 12_000
        result = paper(found, model(continue_answer="END"), QUESTION)
        assert result["status"] == status


def test_nothing_found_declines_without_writing() -> None:
    """One decision, no continuation, no second search; where nothing was searched for, it is no decline."""
    llm = model()
    result = paper(fixed(), llm, QUESTION)
    assert result["status"] == "declined"
    assert llm.tasks() == ["retrieve_needed"]
    assert paper(fixed(RIGHT), llm, QUESTION, delta=1)["status"] == "incomplete"


@pytest.mark.parametrize("broken", ["retrieve_needed", "critique"])
def test_an_unusable_verdict_falls_back_and_says_so(broken: str) -> None:
    """No decision: documents are looked up. No critique: the lowest labels."""
    answers = {"retrieve_needed": "", "critique": "", "repair_json": ""}
    llm = model(**{broken: answers[broken], "repair_json": ""})
    result = paper(fixed(RIGHT), llm, QUESTION, max_segments=1)
    assert any(broken in note for note in result["notes"])
    assert "60 degrees" in result["answer"]
    if broken == "critique":
        assert result["trace"][0]["f"] == 1 + 0 + 0 - 0.5


def test_a_failed_candidate_is_told_and_the_others_go_on() -> None:
    """One passage's call fails: the answer comes from the others; all fail: the error comes through."""

    def flaky(prompt: Prompt) -> Any:
        return ValueError("broken pipe") if "painted" in passage_of(prompt) else first_sentence(prompt)

    result = paper(fixed(WRONG, RIGHT), model(continue_answer=flaky), QUESTION, max_segments=1)
    assert "60 degrees" in result["answer"]
    assert any("1 candidates failed: " in note and "broken pipe" in note for note in result["notes"])
    assert result["trace"][0]["reason"].startswith("failed: ")
    declines = model(
        continue_answer=lambda prompt: (
            flaky(prompt) if "painted" in passage_of(prompt) else "The answer is not in the documents."
        )
    )
    result = paper(fixed(WRONG, RIGHT), declines, QUESTION, max_segments=1)
    assert (result["status"], len(result["unsearched"])) == ("incomplete", 1)
    graph = build_self_rag(
        fixed(RIGHT), model(continue_answer=ModelUnauthorizedError("no key")), output="full"
    )
    with pytest.raises(Exception, match="no key"):
        graph.invoke({"question": QUESTION})


def test_guards_hold_on_every_path() -> None:
    """Passages are filtered; a refused answer takes everything with it, and no segment of it was sent."""
    mine = Guards(passages=[lambda found, config: [d for d in found if d.metadata["file"] != "fan.md"]])
    result = paper(fixed(WRONG, RIGHT), model(), QUESTION, guards=mine)
    assert "60" not in result["answer"] and RIGHT not in result["documents"]
    secret = Guards(answer=[lambda text, config: Refusal("Secret.", reason="60") if "60" in text else None])
    graph = build_self_rag(fixed(RIGHT), model(), guards=secret, output="full")
    parts = list(graph.stream({"question": QUESTION}, stream_mode=["custom", "values"]))
    state = parts[-1][1]
    assert (state["answer"], state["status"]) == ("Secret.", "refused")
    assert state["trace"] == state["documents"] == state["beams"] == []
    assert not [part for kind, part in parts if kind == "custom" and part["event"] == "segment"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"mode": "fast"},
        {"scoring": "yes"},
        {"max_passage_chars": 0},
        {"mode": ""},
        {"evaluator": lambda question, passages: 1, "mode": "paper"},  # whose critique judges
    ],
)
def test_wrong_options_are_refused_when_building(wrong: dict[str, Any]) -> None:
    """The error names the option."""
    with pytest.raises(InvalidInputError, match=next(iter(wrong))):
        build_self_rag(fixed(RIGHT), chat_model("extractive"), **wrong, output="full")
