"""Times that sentences state, and whether they state the period that a question asks for; cases made by hand."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_kit.models.extractive.evidence import PassageText
from rag_kit.models.extractive.period import ENOUGH, fit, periods, stated_share
from rag_kit.models.extractive.question import analyse
from rag_kit.models.extractive.timeline import Stated, timeline, without_lives
from rag_kit.models.extractive.timespan import Span, time_spans


def _told(*texts: str) -> list[list[tuple[str, float, float]]]:
    return [[(one.how, one.span.start, one.span.end) for one in line] for line in timeline(texts)]


@pytest.mark.parametrize(
    ("texts", "last"),
    [
        (["Ann led the club from 1990 to 1994."], ("range", 1990, 1995)),
        (["- Ann ( 1990–1994 )"], ("range", 1990, 1995)),
        (["She won in 1990.", "Later that year she fell ill."], ("point", 1990, 1991)),
        (["She won in 1990.", "The following year she lost."], ("point", 1991, 1992)),
        (["She won in 1990.", "Three years later she lost."], ("point", 1993, 1994)),
        (["In 1990 she sang in Bonn for two years."], ("range", 1990, 1993)),
        (["She joined Leeds in 1990."], ("begun", 1990, 9999)),
        (["She has led it since 1990."], ("open", 1990, 9999)),
        (["She won in 1990.", "She was glad."], ("carried", 1990, 1991)),
        (["她1990年获胜。", "次年她落败。"], ("point", 1991, 1992)),
        (["她1990年获胜。", "三年后她落败。"], ("point", 1993, 1994)),
        (["她从1990年至1994年担任主席。"], ("range", 1990, 1995)),
        (["退役后，1990年她加入利兹队。"], ("begun", 1990, 9999)),
    ],
)
def test_what_a_sentence_states(texts: list[str], last: tuple[str, float, float]) -> None:
    """Spans, points, what begins, what is counted from the time named last, and what is carried on."""
    assert _told(*texts)[-1] == [last]


def test_a_state_lasts_until_the_next_one_begins() -> None:
    """Who joined one club in 1990 and another in 1995 was with the first one until then."""
    told = _told("She joined Leeds in 1990.", "She signed for Hull in 1995.")
    assert told == [[("begun", 1990, 1995)], [("begun", 1995, 9999)]]


@pytest.mark.parametrize(
    "text",
    [
        "Ada Lenz ( 2 June 1899 – 19 June 1981 ) was a painter.",
        "Ada Lenz (born 2 June 1899) was a painter.",
        "阿达（1899年6月2日－1981年6月19日）是画家。",
        "阿达生于1899年。",
    ],
)
def test_a_life_is_no_state(text: str) -> None:
    """Dates of birth and death state nothing for the years between them."""
    assert time_spans(text)
    assert timeline([text]) == [[]]
    assert "1899" not in without_lives(text)


@pytest.mark.parametrize(
    ("question", "count"),
    [
        ("Who led the club from 1990 to 1994?", 1),
        ("谁从1990年到1994年担任主席？", 1),
        ("Who led the club in 1990?", 0),
        ("Who led the club in May 1990?", 0),
        ("Who led the club since 1990?", 0),
        ("What happened between 1990 and 1994?", 0),
        ("Who led the club in the 1990s?", 0),
        ("Who led the club?", 0),
    ],
)
def test_which_questions_ask_for_a_period(question: str, count: int) -> None:
    """Only a beginning and an end make a period; what happened once within some years may be asked for too."""
    assert len(periods(analyse(question))) == count


@pytest.mark.parametrize(
    ("passage", "stated"),
    [
        ("Ann Lee led the club from 1990 to 1994.", True),
        ("Ann Lee led the club from 1985 to 1999.", True),
        ("Ann Lee led the club from 1970 to 1975.", False),
        ("Ann Lee led the club in 1988.", False),
        ("Ann Lee (born 3 May 1950) led the club.", False),
    ],
)
def test_whether_a_period_is_stated(passage: str, stated: bool) -> None:
    """A span that holds the whole period states it, another time does not, nor does a life."""
    share = stated_share(analyse("Who led the club from 1990 to 1994?"), [PassageText(1, passage)])
    assert share is not None
    assert (share >= ENOUGH) is stated


def test_no_period_no_verdict() -> None:
    """A question for no period is none of this module's business; one without passages states nothing."""
    assert stated_share(analyse("Who led the club?"), [PassageText(1, "Ann led the club in 1990.")]) is None
    assert stated_share(analyse("Who led the club from 1990 to 1994?"), []) == 0.0


_WORDS = st.sampled_from(
    [
        "1990",
        "2001",
        "1990–94",
        "年",
        "月",
        "five years later",
        "for two years",
        "次年",
        "（",
        "born",
        "(",
        "from",
        "to",
        "至",
    ]
)


@given(st.lists(st.lists(_WORDS | st.text(max_size=8), max_size=8).map(" ".join), max_size=5))
def test_reading_times_never_fails(texts: list[str]) -> None:
    """Whatever the text: one line a sentence, each span with a beginning before its end, each fit from 0 to 1."""
    told = timeline(texts)
    assert len(told) == len(texts)
    for line in told:
        for one in line:
            assert one.span.start < one.span.end
            assert 0.0 <= fit(Span(1990, 1995), Stated(one.span, one.how)) <= 1.0


def test_a_table_of_years_is_read_once() -> None:
    """Twice as many years are about twice the work, not four times: a page of years held up a run for hours."""

    def steps(years: int) -> int:
        count = 0

        def counted(*_: object) -> object:
            nonlocal count
            count += 1
            return counted

        before = sys.gettrace()
        sys.settrace(counted)  # type: ignore[arg-type]
        try:
            timeline(["She joined in " + "1990 " * years])
        finally:
            sys.settrace(before)
        return count

    steps(2)  # what is loaded once
    assert steps(800) < 2.5 * steps(400)
