"""How surely passages help, measured beside many others."""

from __future__ import annotations

import sys
from itertools import permutations

import pytest

from rag_kit.text.evidence.questions import analyse, offers
from rag_kit.text.evidence.sentences import PassageText, collect, weight_of
from rag_kit.text.evidence.times import fit_in_time, time_spans
from rag_kit.text.evidence.usefulness import measure


def test_many_passages_take_their_number_not_its_square() -> None:
    """Each added passage costs as much as the one before it; thousands held up a run for a minute."""

    def steps(count: int) -> int:
        lines = 0

        def counted(*_: object) -> object:
            nonlocal lines
            lines += 1
            return counted

        texts = [PassageText(number, f"The fan {number} starts at noon.") for number in range(count)]
        before = sys.gettrace()
        sys.settrace(counted)  # type: ignore[arg-type]
        try:
            measure("When does the fan start?", texts)
        finally:
            sys.settrace(before)
        return lines

    steps(2)  # what is loaded once
    assert steps(200) < 2.5 * steps(100)


def test_a_sum_of_weights_is_one_in_any_order() -> None:
    """A set keeps no order between runs; with other last bits of a sum, ties were decided anew in each run."""
    question = analyse("Name the year in which Alderton sold the river lake.")

    assert len({weight_of(question, keys) for keys in permutations(question.keys)}) == 1


def test_a_quoted_sentence_below_a_picture_is_no_heading() -> None:
    """Without a full stop at its end, it was taken for one, as the line break behind the picture was looked at."""
    passage = PassageText(1, "![pump](pump.png)\n\n“Stop the pump at noon.” It is loud.")

    found = collect(analyse("When is the pump stopped?"), [passage])

    assert [candidate.text for candidate in found] == ["“Stop the pump at noon.”", "It is loud."]


@pytest.mark.parametrize(
    ("kind", "sentence", "question", "expected"),
    [
        ("number", "It has 76 rooms.", "How many rooms did it have in 1976?", True),
        ("number", "It has 76 rooms.", "Which of the 76 rooms is how large?", False),
        ("when", "It opened in Q2 2025.", "When did it open?", True),
        ("number", "It opened in Q2 2025.", "How many rooms does it have?", False),
        ("when", "它于第二季度开业。", "它什么时候开业？", True),
        ("who", "Cats sleep.", "Who wrote it?", False),
        ("who", "作者是Jane。", "谁写的？", True),
    ],
)
def test_a_sentence_offers_what_the_question_has_not(
    kind: str, sentence: str, question: str, expected: bool
) -> None:
    """Numbers are compared whole, a quarter says when, not how many, and any capital is no person."""
    assert offers(kind, sentence, question) is expected


def test_an_open_span_may_begin_in_the_last_year() -> None:
    """It has a length, by which its overlap is divided."""
    spans = time_spans("2999年以来")
    assert fit_in_time(spans, spans).overlap == 1.0
