"""Strips: how passages are cut, judged, filtered and put together again."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document
from support.crag import Marked

from rag_kit.concurrency.notes import use_notes
from rag_kit.concurrency.steps import run
from rag_kit.documents import get_provenance
from rag_kit.errors import InvalidInputError
from rag_kit.graphs.crag.build import CragNodes
from rag_kit.graphs.crag.state import CragContext
from rag_kit.graphs.crag.strips import MAX_JUDGED, cut
from rag_kit.graphs.evaluators.base import Evaluator, Grading, judge_passages
from rag_kit.graphs.state import digest_of
from rag_kit.models import chat_model
from rag_kit.retrieval import BM25Retriever
from rag_kit.text import sentences


def text_of(count: int) -> str:
    """So many short sentences."""
    return " ".join(f"Sentence number {n} stands here." for n in range(1, count + 1))


@pytest.mark.parametrize(
    ("count", "size", "strips"),
    [(1, 3, 1), (2, 3, 1), (2, 1, 1), (3, 3, 1), (3, 1, 3), (4, 3, 2), (6, 3, 2), (7, 3, 3), (7, 2, 4)],
)
def test_how_many_strips(count: int, size: int, strips: int) -> None:
    """One or two sentences are one strip; longer passages are cut every `size` sentences."""
    assert len(cut(text_of(count), size)) == strips


def test_chinese_is_cut_at_its_own_stops() -> None:
    """The same rule in Chinese."""
    text = "水泵在四十度启动。它在三十度停止。它被漆成蓝色。没有人知道原因。"
    assert [text[a:b] for a, b in cut(text, 3)] == [
        "水泵在四十度启动。它在三十度停止。它被漆成蓝色。",
        "没有人知道原因。",
    ]


@settings(max_examples=30, deadline=None)
@given(st.text(alphabet="ab.。！? \n#-", max_size=200), st.integers(1, 5))
def test_strips_are_verbatim_in_order_and_lose_nothing(text: str, size: int) -> None:
    """Whatever the text: strips do not overlap, and together hold each visible character."""
    strips = cut(text, size)
    assert all(a < b for a, b in strips)
    assert all(first[1] <= second[0] for first, second in itertools.pairwise(strips))
    assert "".join("".join(text[a:b] for a, b in strips).split()) == "".join(text.split())
    assert bool(strips) == bool(sentences(text))


@pytest.fixture(autouse=True)
def no_events(monkeypatch: pytest.MonkeyPatch) -> None:
    """Outside of a run there is nobody to send events to."""
    monkeypatch.setattr("rag_kit.graphs.crag.build.report", lambda event, **details: None)


def choose(
    evaluator: Evaluator, *texts: str | Document, web: bool = False, gradings: Any = (), **context: Any
) -> Any:
    """Select strips of these texts, as passages or as results of the web; return documents, strips and notes."""
    nodes = CragNodes(
        BM25Retriever.from_texts(["Tea."]), chat_model("extractive"), {}, evaluator=evaluator, web=None
    )
    passages = [Document(text) if isinstance(text, str) else text for text in texts]
    key, node = ("web_documents", nodes.select_external) if web else ("documents", nodes.refine)
    state: Any = {key: passages, "gradings": gradings, "standalone": "q", "language": "en"}
    with use_notes() as notes:
        update = run(node(state, CragContext(**context)), {})
    return update[key], update["strips"], [*update["notes"], *notes.texts]


def test_the_best_five_are_kept_in_the_order_of_the_passages() -> None:
    """Top by confidence, equal ones by place, put together in document order."""
    marks = {"A": 0.1, "B": 0.9, "C": 0.5, "D": 0.5, "E": 0.7, "F": 0.6, "G": 0.4}
    documents, strips, _ = choose(Marked(marks), *(f"{letter} is here." for letter in marks))
    assert [d.page_content[0] for d in documents] == ["B", "C", "D", "E", "F"]
    assert [strip["kept"] for strip in strips] == [False, True, True, True, True, True, False]


def test_the_threshold_is_inclusive() -> None:
    """A strip at the threshold is kept, one below it is dropped."""
    _, strips, _ = choose(Marked({"A": -0.5, "B": -0.51}), "A is here.", "B is here.", strip_threshold=-0.5)
    assert [strip["kept"] for strip in strips] == [True, False]


def test_neighbours_are_put_together_verbatim_with_their_offsets() -> None:
    """Strips 1 and 2 of 4 become one span, strip 4 another; both quote the passage, gaps included."""
    text = "A one.  A two.\nA three.   B one. B two. B three. C one. C two. C three. D one. D two. D three."
    passage = Document(
        text, metadata={"file": "a.md", "page": 7, "heading": "H", "start": 100, "end": 100 + len(text)}
    )
    (first, second), strips, _ = choose(Marked({"A": 0.9, "B": 0.2, "D": 0.3}), passage)
    assert first.page_content == text[: text.index(" C one.")]
    assert second.page_content == "D one. D two. D three."
    for part in (first, second):
        start = part.metadata["start"] - 100
        assert text[start : part.metadata["end"] - 100] == part.page_content
        assert (part.metadata["file"], part.metadata["page"], part.metadata["heading"]) == ("a.md", 7, "H")
    [stage] = get_provenance(first)["stages"]
    assert stage["stage"] == "crag:refine"
    assert stage["score"] == 0.9
    assert [(s["score"], s["kept"]) for s in stage["strips"]] == [
        (0.9, True),
        (0.2, True),
        (-0.9, False),
        (0.3, True),
    ]
    assert [strip["text"] for strip in strips] == [text[s["start"] : s["end"]] for s in strips]
    assert passage.page_content == text
    assert not get_provenance(passage)


def test_a_passage_that_is_one_strip_is_not_judged_twice() -> None:
    """A short passage's grading is known; only strips of longer passages are asked about."""
    judge = Marked({"A": 0.9})
    short, long = Document("A is short."), Document(text_of(4))
    known = [{"digest": digest_of(each), "score": 0.25, "reason": "known"} for each in (short, long)]
    _, strips, _ = choose(judge, short, long, gradings=known)
    assert judge.asked == [[text_of(3), "Sentence number 4 stands here."]]
    assert (strips[0]["score"], strips[0]["reason"]) == (0.25, "known")


def test_the_best_is_kept_where_none_reaches_the_threshold() -> None:
    """Something retrieved was worth it, though no strip of it alone is; nothing of the web is."""
    marks = {"A": -0.8, "B": -0.7}
    documents, _, notes = choose(Marked(marks), "A is here.", "B is here.")
    assert [d.page_content for d in documents] == ["B is here."]
    assert "refine: no strip reached the threshold; the best one is kept" in notes
    assert choose(Marked(marks), "A is here.", "B is here.", web=True)[0] == []


def test_a_book_is_judged_up_to_a_bound() -> None:
    """No retriever can make the graph judge without end."""
    judge = Marked({})
    _, _, notes = choose(judge, text_of(3 * MAX_JUDGED + 30))
    assert len(judge.asked[0]) == MAX_JUDGED
    assert f"refine: 10 strips beyond {MAX_JUDGED} were not judged" in notes


@pytest.mark.parametrize("texts", [(), ("",), (" \n ", "")])
def test_nothing_to_cut(texts: tuple[str, ...]) -> None:
    """Blank passages have no strips, and the evaluator is not asked."""
    judge = Marked({})
    assert choose(judge, *texts)[:2] == ([], []) and judge.asked == []


@pytest.mark.parametrize("given_scores", [[0.1], [0.1, float("nan")], [0.1, 1.5]])
def test_an_evaluator_that_gives_nonsense_is_named(given_scores: list[float]) -> None:
    """Too few gradings, or a score out of range, is an error of the evaluator's."""

    class Broken(Marked):
        def grade(self, *_: Any) -> Any:
            yield from ()
            return [Grading(score, "") for score in given_scores]

    with pytest.raises(InvalidInputError, match="evaluator marked"):
        run(judge_passages(Broken({}), "q", [Document("a"), Document("b")], "en"), {})
