"""Recall of gold spans with the corpus at hand: whole answers, in the right document, at the right place."""

from __future__ import annotations

from rag_kit.evaluation.examples import Example, GoldSpan
from rag_kit.evaluation.ours.span_recall import SpanRecall
from rag_kit.evaluation.outputs import Passage

TEXT = "In 1912 the club won 36 games. In 1936 it lost the cup. The club won again."
ANSWER = TEXT.index("36 games")


def recall(passages, *spans, answers=(), budget=3000, text=TEXT):
    example = Example("q", "?", answers=answers, spans=spans or [GoldSpan("d", "36 games", ANSWER)])
    return SpanRecall(budget, documents={"d": text, "other": text}).cell(example, passages).value


def piece(start: int, end: int, document: str = "d", **metadata) -> Passage:
    return Passage(f"{document}#{start}", TEXT[start:end], {"corpus_id": document, **metadata})


def test_the_whole_answer_must_be_in_one_passage_of_its_document():
    """A passage that ends inside the answer, two that share it, and another document's do not count."""
    end = ANSWER + len("36 games")
    assert recall([piece(0, end)]) == 1.0
    assert recall([piece(0, end - 1)]) == 0.0
    assert recall([piece(0, ANSWER + 2), piece(ANSWER + 2, 60)]) == 0.0
    assert recall([piece(0, 60, "other")]) == 0.0


def test_the_budget_counts_characters_over_passages():
    """Earlier passages use up the budget; the last one is cut at it."""
    filler, whole = Passage("other", "x" * 100), 100 + ANSWER + len("36 games")
    assert recall([filler, piece(0, 60)], budget=whole) == 1.0
    assert recall([filler, piece(0, 60)], budget=whole - 1) == 0.0
    assert recall([filler, piece(0, 60)], budget=100) == 0.0


def test_only_the_place_counts_where_the_passage_is_verbatim():
    """The same words elsewhere in the document do not count; a passage is placed by its own offset, else by search."""
    text, span = "yes or no. yes or no.", GoldSpan("d", "yes or", 11)
    for metadata, expected in (
        ({"start": 11}, 1.0),
        ({"start_index": 11}, 1.0),
        ({"start": 0}, 0.0),
        ({}, 0.0),
    ):
        passage = Passage("d", "yes or no.", metadata)
        assert recall([passage], span, text=text) == expected


def test_rewritten_passages_count_by_their_words():
    """A passage that is no verbatim part of the document counts if the answer's words are in it; Chinese too."""
    assert recall([Passage("d", "Summary: they won 36 games.")]) == 1.0
    assert recall([Passage("d", "Summary: they won 136 games.")]) == 0.0
    chinese = GoldSpan("d", "三十六", 4)
    assert recall([Passage("d", "摘要：赢了三十六场")], chinese, text="他们赢了三十六场比赛。") == 1.0


def test_spans_of_accepted_answers_are_versions_of_one():
    """Any place of any accepted answer will do; spans that are no accepted answer are wanted each."""
    spans = [GoldSpan("d", "1912", 3), GoldSpan("d", "36 games", ANSWER)]
    assert recall([piece(0, 15)], *spans) == 0.5
    assert recall([piece(0, 15)], *spans, answers=("36 games ", "1912")) == 1.0
