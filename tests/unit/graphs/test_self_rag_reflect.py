"""Self-RAG as a loop that grades and tries again."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from support.by_task import ByTask, by_task, grades, passage_of
from support.graphs import both

from rag_kit.graphs import build_self_rag
from rag_kit.models import chat_model
from rag_kit.retrieval import BM25Retriever
from rag_kit.text.citations.decline import DECLINED

FAN = Document("The fan starts at 60 degrees.", metadata={"file": "fan.md"})
FRUIT = Document("Bananas ripen faster next to apples.", metadata={"file": "fruit.md"})
QUESTION = "At how many degrees does the fan start?"
GOOD = "The fan starts at 60 degrees.[1]"


class ByQuery(BaseRetriever):
    """Gives documents by query, and keeps what was searched for."""

    known: dict[str, list[Document]]
    default: list[Document] = []
    queries: list[str] = []

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        self.queries.append(query)
        return self.known.get(query, self.default)


def by_query(*default: Document, **known: list[Document]) -> ByQuery:
    return ByQuery(known=known, default=list(default), queries=[])


def grade(good: bool, reason: str = "because") -> dict[str, Any]:
    return {"relevant": good, "score": float(good), "reason": reason}


def model(**answers: Any) -> ByTask:
    """Every grader is content unless told otherwise; only the fan's passage is relevant."""
    return by_task(
        {
            "grade_passages": grades(lambda text: grade("fan" in text)),
            "answer": GOOD,
            "answer_again": GOOD,
            "grade_support": grade(True),
            "grade_usefulness": grade(True),
            "rewrite_query": {"query": "fan"},
        }
        | answers
    )


def reflect(retriever: Any, llm: Any, **context: Any) -> Any:
    """The whole state after the question."""
    graph = build_self_rag(retriever, llm, mode="reflect", output="full")
    return graph.invoke({"question": QUESTION}, context=context)


def test_the_straight_way() -> None:
    """Relevant passages, a supported and useful answer: one round, one generation."""
    llm = model()
    result = reflect(by_query(FRUIT, FAN), llm)
    assert (result["answer"], result["status"]) == (GOOD, "grounded")
    assert [d.metadata["file"] for d in result["documents"]] == ["fan.md"]
    assert llm.tasks() == ["grade_passages", "answer", "grade_support", "grade_usefulness"]
    assert [(one["verdict"], one["kept"]) for one in result["trace"]] == [
        ("relevance", False),
        ("relevance", True),
        ("support", True),
        ("usefulness", True),
    ]
    assert (result["round"], result["generations"]) == (1, 1) and "scoring" not in result


def test_irrelevant_passages_lead_to_another_query_and_the_question_stays() -> None:
    """The rewritten query is searched for; what is answered is the question."""
    found = by_query(FRUIT, fan=[FAN])
    llm = model()
    result = reflect(found, llm)
    assert found.queries == [QUESTION, "fan"]
    assert (result["question"], result["search_query"], result["answer"]) == (QUESTION, "fan", GOOD)
    asked = [body for task, body in llm.asked if task == "answer"]
    assert QUESTION in asked[0]


def test_an_unsupported_answer_is_written_again_with_the_reason() -> None:
    """The second writing is told what had no support."""
    verdicts = iter([grade(False, "61 is nowhere"), grade(True)])
    llm = model(answer="The fan starts at 61 degrees.[1]", grade_support=lambda p: next(verdicts))
    result = reflect(by_query(FAN), llm)
    assert (result["answer"], result["status"]) == (GOOD, "grounded")
    [again] = [body for task, body in llm.asked if task == "answer_again"]
    assert "61 is nowhere" in again and "The fan starts at 61 degrees." in again


def test_an_answer_beside_the_point_leads_to_another_search() -> None:
    """Not useful: the query is rewritten, and the better answer of the second round is given."""
    verdicts = iter([grade(False, "no number"), grade(True)])
    texts = iter(["The fan is loud.[1]", GOOD])
    found = by_query(Document("The fan is loud."), fan=[FAN])
    llm = model(answer=lambda p: next(texts), grade_usefulness=lambda p: next(verdicts))
    result = reflect(found, llm)
    assert (result["answer"], result["round"]) == (GOOD, 2)
    assert [draft["useful"] for draft in result["drafts"]] == [False, True]


def test_the_best_so_far_is_given_when_the_rounds_are_used_up() -> None:
    """Never useful: the first supported answer, with a note."""
    llm = model(grade_usefulness=grade(False, "no unit"))
    result = reflect(by_query(FAN), llm, max_rounds=2)
    assert (result["answer"], result["status"]) == (GOOD, "grounded")
    assert any("may not resolve the question: no unit" in note for note in result["notes"])
    assert llm.tasks().count("answer") == 2


def test_an_answer_without_support_is_flagged_or_dropped() -> None:
    """Soft flags it, also where its words look right; hard declines."""
    llm = model(grade_support=grade(False, "not said"))
    graph = build_self_rag(by_query(FAN), llm, mode="reflect", output="full")
    soft = graph.invoke({"question": QUESTION})
    assert (soft["answer"], soft["status"]) == (GOOD, "flagged")
    assert any("not supported: not said" in note for note in soft["notes"])
    hard = graph.invoke({"question": QUESTION}, context={"constraint": "hard"})
    assert (hard["answer"], hard["status"]) == (DECLINED["en"], "declined")


def test_a_supported_answer_is_better_than_an_unsupported_one() -> None:
    """The last resort is the best of all drafts, not the last one."""
    supports = iter([grade(True), grade(False), grade(False)])
    llm = model(
        grade_support=lambda p: next(supports),
        grade_usefulness=grade(False, "meh"),
        answer=lambda p: GOOD if "loud" not in passage_of(p) else "The fan is red.[1]",
        answer_again="The fan is blue.[1]",
    )
    found = by_query(FAN, fan=[Document("The fan is loud.")])
    result = reflect(found, llm)
    assert result["answer"] == GOOD
    assert result["documents"] == [FAN]


def test_a_decline_searches_again_and_declines_at_last() -> None:
    """An answer that declines is not graded; another query is tried first."""
    llm = model(answer=DECLINED["en"])
    result = reflect(by_query(FAN), llm)
    assert (result["answer"], result["status"], result["round"]) == (DECLINED["en"], "declined", 2)
    assert "grade_support" not in llm.tasks()


def test_nothing_relevant_declines_without_writing() -> None:
    """After the last round nothing is written."""
    llm = model()
    result = reflect(by_query(FRUIT), llm)
    assert result["status"] == "declined"
    assert "answer" not in llm.tasks()
    assert any("no passage was relevant" in note for note in result["notes"])


def test_the_same_query_is_not_searched_for_twice() -> None:
    """A rewriter that repeats itself ends the loop."""
    found = by_query(FRUIT)
    llm = model(rewrite_query={"query": QUESTION.upper()})
    result = reflect(found, llm, max_rounds=10)
    assert found.queries == [QUESTION]
    assert any("tried already" in note for note in result["notes"])


@pytest.mark.parametrize("broken", ["grade_passages", "grade_support", "grade_usefulness", "rewrite_query"])
def test_an_unusable_verdict_falls_back_and_says_so(broken: str) -> None:
    """Passages are kept, citations decide, the answer counts as useful, the loop ends."""
    llm = model(**{broken: "", "repair_json": ""})
    found = by_query(FRUIT if broken == "rewrite_query" else FAN)
    result = reflect(found, llm)
    name = "grade_documents" if broken == "grade_passages" else broken
    assert any(note.startswith(name) for note in result["notes"])
    assert result["answer"] == (DECLINED["en"] if broken == "rewrite_query" else GOOD)


async def test_sync_and_async_with_the_extractive_model() -> None:
    """Both forms agree; a question in other words is found after rewriting by rule."""
    retriever = BM25Retriever.from_documents([FRUIT, FAN], k=2)
    graph = build_self_rag(retriever, chat_model("extractive"), mode="reflect", output="full")
    for question in (QUESTION, "Who is the king of France?"):
        found = await both(graph, question)
        assert (found["answer"] == GOOD) == (question == QUESTION)
    assert found["status"] == "declined" and len(found["tried"]) == 2


def test_the_accepted_answer_alone_is_sent() -> None:
    """A rejected draft is never shown."""
    verdicts = iter([grade(False), grade(True)])
    llm = model(answer="The fan starts at 61 degrees.[1]", grade_support=lambda p: next(verdicts))
    graph = build_self_rag(by_query(FAN), llm, mode="reflect", output="full")
    parts = list(graph.stream({"question": QUESTION}, stream_mode=["custom", "messages"]))
    assert [p["text"] for kind, p in parts if kind == "custom" and p["event"] == "segment"] == [GOOD]
    assert not [p for kind, p in parts if kind == "messages"]
