"""Ranking candidates into beams."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rag_kit.graphs.self_rag.ranking import (
    CRITIQUES,
    WORTH,
    answer_so_far,
    cite_segments,
    count_shared_segments,
    critique_score,
    first_beam,
    rank,
    used_passages,
)
from rag_kit.graphs.self_rag.shared import Beam, Continuation


def candidate(
    text: str,
    relevance: str = "relevant",
    support: str = "full",
    usefulness: str = "5",
    *,
    passage: int = 0,
    beam: int = 1,
    segment: int = 1,
    reason: str = "",
) -> Continuation:
    """A candidate with prompted labels; an empty text has nothing to add."""
    parts = {
        "p": 1.0,
        "relevance": float(relevance == "relevant"),
        "support": {"full": 1.0, "partial": 0.5, "none": 0.0}[support],
        "usefulness": WORTH["usefulness"][usefulness],
    }
    return Continuation(
        segment=segment, beam=beam, passage=passage, source=None, text=text,
        labels={"relevance": relevance, "support": support, "usefulness": usefulness} if text else {},
        probabilities={}, parts=parts if text else {}, f=None, score=None, kept=False, won=False, reason=reason,
    )  # fmt: skip


def beam(number: int, *texts: str, score: float = 3.0, ended: bool = False) -> Beam:
    """A beam whose segments all have the same f."""
    segments: list[Any] = [{"text": text, "beam": 1, "passage": 0, "f": score} for text in texts]
    return Beam(
        number=number,
        segments=segments,
        score=score,
        ended=ended,
        retrieve=True,
        wanted=1.0,
        query="",
        found=[],
    )


def texts(beams: list[Beam]) -> list[str]:
    return [answer_so_far(one) for one in beams]


def test_the_best_two_are_kept_in_order_of_f() -> None:
    """f of 3.5, 2.75 and 2: the third loses, and the trace says by how much."""
    beams_made, judged = rank(
        [first_beam()],
        [
            candidate("C.", support="none", usefulness="3", passage=0),
            candidate("A.", passage=1),
            candidate("B.", support="partial", usefulness="4", passage=2),
        ],
        width=2,
    )
    assert texts(beams_made) == ["A.", "B."]
    assert [one["f"] for one in judged] == [2.0, 3.5, 2.75]
    assert [one["kept"] for one in judged] == [False, True, True]
    assert judged[0]["reason"] == "its score is not among the best 2"
    assert judged[1]["reason"] == "kept as beam 1"


def test_a_beam_is_ranked_by_the_mean_of_its_segments() -> None:
    """2.0 followed by 3.5 (mean 2.75) stays behind 3.0 followed by 3.0 (mean 3.0)."""
    weak, strong = beam(1, "W.", score=2.0), beam(2, "S.", score=3.0)
    beams_made, _ = rank(
        [weak, strong],
        [candidate("X.", beam=1), candidate("Y.", beam=2, usefulness="3")],
        width=2,
    )
    assert texts(beams_made) == ["S. Y.", "W. X."]
    assert [one["score"] for one in beams_made] == [3.0, 2.75]


def test_an_answer_may_stop_when_a_passage_has_nothing_to_add() -> None:
    """The beam as it stands competes with a continuation that makes it worse, and wins."""
    beams_made, judged = rank(
        [beam(1, "A.", score=3.5)],
        [candidate(""), candidate("Junk.", "irrelevant", "none", "1", passage=1)],
        width=2,
    )
    assert texts(beams_made) == ["A.", "A. Junk."]
    assert [one["ended"] for one in beams_made] == [True, False]
    assert judged[0]["reason"] == "nothing to add"


def test_a_failed_candidate_ends_no_beam_that_goes_on() -> None:
    """A call that failed says nothing about completeness."""
    failed = candidate("", passage=1, reason="failed: TimeoutError")
    beams_made, judged = rank([beam(1, "A.", score=3.5)], [failed, candidate("B.", usefulness="1")], width=2)
    assert texts(beams_made) == ["A. B."]
    assert judged[0]["reason"] == "failed: TimeoutError"


def test_a_beam_without_any_continuation_has_ended() -> None:
    """It stays, as it is; the empty beam does not."""
    beams_made, _ = rank([beam(1, "A.")], [candidate("")], width=2)
    assert texts(beams_made) == ["A."] and beams_made[0]["ended"]
    assert rank([first_beam()], [candidate("")], width=2)[0] == []


def test_the_same_text_from_two_passages_counts_once() -> None:
    """Else both beams would be the same answer; that with the higher f is kept."""
    beams_made, judged = rank(
        [first_beam()],
        [
            candidate("Same text.", support="partial", passage=0),
            candidate("same  text", passage=1),
            candidate("B.", usefulness="1", passage=2),
        ],
        width=2,
    )
    assert [one["segments"][0]["passage"] for one in beams_made] == [1, 2]
    assert judged[0]["reason"].endswith("the same text, and no lower score")


def test_what_all_beams_share_is_decided() -> None:
    """Only segments that no beam can change are told."""
    assert count_shared_segments([beam(1, "A.", "B."), beam(2, "A.", "C.")]) == 1
    assert count_shared_segments([beam(1, "A."), beam(2, "C.")]) == 0
    assert count_shared_segments([beam(1, "A.", "B.")]) == 2
    assert count_shared_segments([]) == 0


def test_citations_are_numbered_by_first_use() -> None:
    """Passage 5 is used first and becomes [1], also where it is used again; a direct segment has none."""
    parts: Any = [
        {"text": "Tea is hot. Ice is cold.", "beam": 1, "passage": 5, "f": 1.0},
        {"text": "Milk is white.", "beam": 1, "passage": 2, "f": 1.0},
        {"text": "You are welcome", "beam": 1, "passage": None, "f": 1.0},
        {"text": "Tar is black", "beam": 1, "passage": 5, "f": 1.0},
    ]
    assert used_passages(parts) == [5, 2]
    assert "".join(cite_segments(parts)) == (
        "Tea is hot.[1] Ice is cold.[1] Milk is white.[2] You are welcome. Tar is black.[1]"
    )


def test_chinese_segments_are_joined_without_blanks() -> None:
    """And get a Chinese stop."""
    parts: Any = [
        {"text": "水泵在四十度时启动", "beam": 1, "passage": 0, "f": 1.0},
        {"text": "风扇的噪音很大。", "beam": 1, "passage": 1, "f": 1.0},
    ]
    assert "".join(cite_segments(parts)) == "水泵在四十度时启动。[1]风扇的噪音很大。[2]"


labelled = st.builds(
    candidate,
    st.sampled_from(["", "A.", "B.", "C.", "a"]),
    st.sampled_from(list(WORTH["relevance"])),
    st.sampled_from(list(WORTH["support"])),
    st.sampled_from(list(WORTH["usefulness"])),
    passage=st.integers(0, 4),
    beam=st.integers(1, 2),
)


@given(st.lists(labelled, max_size=12), st.integers(1, 4), st.booleans())
def test_any_labels_give_at_most_the_width_best_first(
    candidates: list[Continuation], width: int, hard: bool
) -> None:
    """Beams are bounded, ordered, numbered; every candidate has a reason, and as many are kept as beams grew."""
    beams = [beam(1, "S.", score=3.0), beam(2, "T.", score=2.0)]
    beams_made, judged = rank(beams, candidates, width=width, hard=hard)
    assert 1 <= len(beams_made) <= width
    assert [one["number"] for one in beams_made] == list(range(1, len(beams_made) + 1))
    scores = [one["score"] for one in beams_made]
    assert scores == sorted(scores, reverse=True)
    assert len(judged) == len(candidates) and all(one["reason"] for one in judged)
    assert sum(one["kept"] for one in judged) == sum(not one["ended"] for one in beams_made)
    if hard:
        assert all(
            one["labels"]["support"] != "none" and one["labels"]["relevance"] == "relevant"
            for one in judged
            if one["kept"]
        )


@given(
    st.dictionaries(st.sampled_from([label for name in CRITIQUES for label in WORTH[name]]), st.floats(0, 1))
)
def test_scores_stay_in_their_bounds(known: dict[str, float]) -> None:
    """Whatever a model's probabilities are, also missing ones."""
    assert 0 <= critique_score("relevance", known) <= 1 + 1e-9
    assert 0 <= critique_score("support", known) <= 1 + 1e-9
    assert -1 - 1e-9 <= critique_score("usefulness", known) <= 1 + 1e-9
