"""Gold-span recall: whole answers, in the right document, within the budget."""

from __future__ import annotations

import pytest
from langchain_core.documents import Document

from rag_kit.evaluation import CorpusDocument, GoldAnswer, RetrievalDataset, SpanRecall

TEXT = "In 1912 the club won 36 games. In 1936 it lost the cup. The club won again."


def spans_of(answers, starts=(), *, title="", budget=3000, text=TEXT) -> SpanRecall:
    corpus = {"d": CorpusDocument("d", title, text), "other": CorpusDocument("other", "", text)}
    gold = {"q": GoldAnswer("q", tuple(answers), ("d",), tuple(starts))}
    return SpanRecall(RetrievalDataset("x", corpus, {"q": "?"}, {"q": {"d": 1}}, gold), budget=budget)


def piece(start: int, end: int, **metadata) -> Document:
    return Document(TEXT[start:end], metadata=metadata)


def test_the_whole_answer_must_be_there():
    """A passage that ends inside the answer does not count; one that holds it does."""
    spans = spans_of(["won 36 games"])
    end = TEXT.index("games") + 5
    assert spans.hit("q", [("d", piece(0, end))]) == 1.0
    assert spans.hit("q", [("d", piece(0, end - 1))]) == 0.0


def test_an_answer_cut_by_two_passages_does_not_count():
    """The answer must lie within one passage."""
    spans = spans_of(["won 36 games"])
    cut = TEXT.index("36")
    assert spans.hit("q", [("d", piece(0, cut)), ("d", piece(cut, 60))]) == 0.0


def test_the_budget_counts_characters_over_passages():
    """Earlier passages use up the budget; the last one is cut at it."""
    answer_end = TEXT.index("36 games") + len("36 games")
    filler = ("other", Document("x" * 100))
    assert spans_of(["36 games"], budget=100 + answer_end).hit("q", [filler, ("d", piece(0, 60))]) == 1.0
    assert spans_of(["36 games"], budget=99 + answer_end).hit("q", [filler, ("d", piece(0, 60))]) == 0.0
    assert spans_of(["36 games"], budget=100).hit("q", [filler, ("d", piece(0, 60))]) == 0.0


def test_another_document_with_the_same_words_does_not_count():
    """Only the gold document's text answers."""
    assert spans_of(["36 games"]).hit("q", [("other", Document(TEXT))]) == 0.0


def test_offsets_pin_the_place():
    """With answer_starts only that place counts, also behind a title and with space at the ends."""
    second = TEXT.rindex("The club won")
    spans = spans_of(["The club won "], [second], title="Club")
    assert spans.hit("q", [("d", Document("Club\n" + TEXT[:40]))]) == 0.0
    assert spans.hit("q", [("d", Document("Club\n" + TEXT))]) == 1.0
    assert spans.hit("q", [("d", piece(second, second + len("The club won")))]) == 1.0


def test_a_passage_is_placed_by_its_own_offset():
    """A passage whose words stand twice in the document is placed by metadata start."""
    text = "yes or no. yes or no."
    spans = spans_of(["yes or"], [11], text=text)
    assert spans.hit("q", [("d", Document("yes or no.", metadata={"start": 11}))]) == 1.0
    assert spans.hit("q", [("d", Document("yes or no.", metadata={"start_index": 11}))]) == 1.0
    assert spans.hit("q", [("d", Document("yes or no.", metadata={"start": 0}))]) == 0.0


def test_rewritten_passages_count_by_their_words():
    """A passage that is no verbatim part of the document counts if the answer's words are in it."""
    assert spans_of(["36 games"]).hit("q", [("d", Document("Summary: they won 36 games."))]) == 1.0
    assert spans_of(["36 games"]).hit("q", [("d", Document("Summary: they won many games."))]) == 0.0


def test_numbers_inside_longer_numbers_are_no_spans():
    """36 is not found in 1936, but Chinese words need no spaces around them."""
    spans = spans_of(["36"])
    at = TEXT.index("1936")
    assert spans.hit("q", [("d", piece(at, at + 10))]) == 0.0
    chinese = spans_of(["三十六"], text="他们赢了三十六场比赛。")
    assert chinese.hit("q", [("d", Document("他们赢了三十六场"))]) == 1.0


@pytest.mark.parametrize("answer", ["yes", "No", "maybe", "是"])
def test_verdicts_are_no_spans(answer):
    """A set of yes and no has no spans to recall."""
    assert not spans_of([answer], text="yes No maybe 是").applies


def test_a_set_has_spans_if_half_of_its_answers_do():
    """One stray match does not make a set one with spans."""
    corpus = {"d": CorpusDocument("d", "", TEXT)}
    gold = {str(i): GoldAnswer(str(i), ("1912" if i == 0 else "nowhere",), ("d",)) for i in range(3)}
    dataset = RetrievalDataset("x", corpus, dict.fromkeys(gold, "?"), {}, gold)
    assert not SpanRecall(dataset).applies
    assert SpanRecall(dataset).queries(["2", "0"]) == ["0"]
