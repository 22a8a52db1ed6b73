"""Ranking candidates into beams, and a beam as an answer: pure functions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from rag_kit.graphs.self_rag.scores import PAPER_WEIGHTS, Parts, Weights, beam_score, segment_score
from rag_kit.graphs.self_rag.state import Beam, Candidate, Segment
from rag_kit.text import detect_language, sentences

#: How the reason of a candidate begins whose model call failed.
FAILED = "failed"

_NOT_WORD = re.compile(r"\W+")
_ENDED = re.compile(r"[.!?。！？…][\"'”’」』)）\]]*$")


class Ranked(NamedTuple):
    """What came of a segment: the beams that are kept, best first, and the candidates, judged."""

    beams: list[Beam]
    candidates: list[Candidate]


def first_beam() -> Beam:
    """The beam before anything is written."""
    return Beam(number=1, segments=[], score=0.0, ended=False, retrieve=False, wanted=0.0, query="", found=[])


def answer_so_far(beam: Beam) -> str:
    """The answer so far, without citations.

    Example:
        >>> answer_so_far({**first_beam(), "segments": [{"text": "A.", "beam": 1, "passage": 0, "f": 1.0}]})
        'A.'
    """
    return _joined([segment["text"] for segment in beam["segments"]])


def rank(
    beams: Sequence[Beam],
    candidates: Sequence[Candidate],
    *,
    width: int,
    weights: Weights = PAPER_WEIGHTS,
    hard: bool = False,
) -> Ranked:
    """Score the candidates of a segment and keep the best beams.

    A beam for which some candidate had nothing to add competes as it stands, too; one that got no candidate at all
    has ended. Equal scores: the longer answer, then the order given.

    Args:
        beams: Those before the segment, by number.
        candidates: Continuations of those that had not ended.
        width: How many beams are kept.
        weights: Of the three critiques.
        hard: Whether irrelevant and unsupported candidates are dropped.
    """
    judged = [_scored(candidate, beams, weights) for candidate in candidates]
    running = _running(judged, beams, hard)
    options: list[tuple[tuple[float, int, int], Beam, Candidate | None]] = []
    for order, one in enumerate(running):
        longer = _extended(beams[one["beam"] - 1], one)
        options.append(((-longer["score"], -len(longer["segments"]), order), longer, one))
    for order, beam in enumerate(beams, start=len(running)):
        mine = [one for one in judged if one["beam"] == beam["number"]]
        goes_on = any(one["beam"] == beam["number"] for one in running)
        if beam["segments"] and (beam["ended"] or not goes_on or any(map(_adds_nothing, mine))):
            still: Beam = {**beam, "ended": True, "retrieve": False}
            options.append(((-beam["score"], -len(beam["segments"]), order), still, None))
    options.sort(key=lambda option: option[0])
    kept: list[Beam] = []
    for number, (_, beam, made_of) in enumerate(options[:width], start=1):
        kept.append({**beam, "number": number})
        if made_of is not None:
            made_of["kept"] = True
            made_of["reason"] = f"kept as beam {number}"
    least = kept[-1]["score"] if kept else 0.0
    for one in judged:
        if not one["reason"]:
            one["reason"] = (
                "nothing to add"
                if one["f"] is None
                else f"score {_score(one):.3f} is not among the best {width} (the last of them has {least:.3f})"
            )
    return Ranked(kept, judged)


def _running(judged: Sequence[Candidate], beams: Sequence[Beam], hard: bool) -> list[Candidate]:
    """The candidates that compete, best first: without those that a constraint drops, and each text once."""
    found: dict[tuple[str, ...], Candidate] = {}
    scored = [one for one in judged if one["f"] is not None]
    for one in sorted(scored, key=lambda one: -_score(one)):  # stable: equal ones keep their order
        path = _path(beams[one["beam"] - 1], one["text"])
        why = _dropped(one) if hard else ""
        if not why and path in found:
            why = f"the same text as from {_place(found[path])}, whose score is not lower"
        if why:
            one["reason"] = why
        else:
            found[path] = one
    return list(found.values())


def undecided(beams: Sequence[Beam], left: int, weights: Weights = PAPER_WEIGHTS) -> bool:
    """Whether a beam that goes on may still come out before the best one that has ended.

    It cannot where even the highest ``f`` in every segment that is left would keep its mean below.

    Args:
        beams: Those that are kept.
        left: How many segments may still be written.
        weights: Of the three critiques.
    """
    highest = segment_score(Parts(1.0, 1.0, 1.0, 1.0), weights)
    ended = max((beam["score"] for beam in beams if beam["ended"]), default=None)
    open_ones = [beam for beam in beams if not beam["ended"]]
    if left < 1 or not open_ones:
        return False
    if ended is None:
        return True
    for beam in open_ones:
        scores = [segment["f"] for segment in beam["segments"]]
        # the mean only grows by segments that are better than it, so the most of them reach the most
        if max(beam_score([*scores, *[highest] * left]), beam["score"]) >= ended:
            return True
    return False


def shared_segments(beams: Sequence[Beam]) -> int:
    """How many segments all beams begin with: these are decided, whichever wins."""
    if not beams:
        return 0
    count = 0
    for parts in zip(*(beam["segments"] for beam in beams), strict=False):
        if any((part["text"], part["passage"]) != (parts[0]["text"], parts[0]["passage"]) for part in parts):
            break
        count += 1
    return count


def used_passages(segments: Sequence[Segment]) -> list[int]:
    """Indices of the passages that an answer rests on, in the order of their first use."""
    return list(dict.fromkeys(part["passage"] for part in segments if part["passage"] is not None))


def cited_pieces(segments: Sequence[Segment]) -> list[str]:
    """The segments as they stand in the answer, ``[n]`` after each sentence; joined they are the answer.

    Example:
        >>> first = {"text": "Tea is hot. Ice is cold.", "beam": 1, "passage": 7, "f": 1.0}
        >>> cited_pieces([first, {"text": "Hello", "beam": 1, "passage": None, "f": 1.0}])
        ['Tea is hot.[1] Ice is cold.[1]', ' Hello.']
    """
    numbers = {passage: number for number, passage in enumerate(used_passages(segments), start=1)}
    pieces: list[str] = []
    for part in segments:
        mark = "" if part["passage"] is None else f"[{numbers[part['passage']]}]"
        text = _joined([f"{_finished(one.text)}{mark}" for one in sentences(part["text"])])
        pieces.append(_gap(pieces[-1] if pieces else "", text) + text)
    return pieces


def _scored(candidate: Candidate, beams: Sequence[Beam], weights: Weights) -> Candidate:
    if not candidate["parts"]:
        return {**candidate}
    f = segment_score(Parts(**candidate["parts"]), weights)
    before = [segment["f"] for segment in beams[candidate["beam"] - 1]["segments"]]
    return {**candidate, "f": f, "score": beam_score([*before, f])}


def _adds_nothing(one: Candidate) -> bool:
    return one["f"] is None and not one["reason"].startswith(FAILED)


def _score(one: Candidate) -> float:
    return one["score"] or 0.0


def _dropped(one: Candidate) -> str:
    if one["labels"].get("relevance") == "irrelevant":
        return "the passage is irrelevant (hard constraint)"
    if one["labels"].get("support") == "none":
        return "the passage does not support it (hard constraint)"
    return ""


def _path(beam: Beam, text: str) -> tuple[str, ...]:
    return tuple(plain(part) for part in (*(segment["text"] for segment in beam["segments"]), text))


def plain(text: str) -> str:
    """A text without case, blanks and punctuation, to see whether two say the same word for word."""
    return _NOT_WORD.sub("", text.casefold())


def _place(one: Candidate) -> str:
    passage = "no passage" if one["passage"] is None else f"passage {one['passage']}"
    return f"{passage} after beam {one['beam']}"


def _extended(beam: Beam, one: Candidate) -> Beam:
    segment = Segment(text=one["text"], beam=one["beam"], passage=one["passage"], f=one["f"] or 0.0)
    return Beam(
        number=0,
        segments=[*beam["segments"], segment],
        score=_score(one),
        ended=False,
        retrieve=False,
        wanted=0.0,
        query="",
        found=[],
    )


def _finished(text: str) -> str:
    """A sentence with a stop, without which the citation check could not tell it from the next; rows have none."""
    text = " ".join(text.split())
    if text.startswith("|") or _ENDED.search(text):
        return text
    return text.rstrip(",;:，；：、") + ("。" if detect_language(text) == "zh" else ".")


def _joined(parts: Sequence[str]) -> str:
    text = ""
    for part in parts:
        text += _gap(text, part) + part
    return text


def _gap(before: str, part: str) -> str:
    """Rows of a table stand on lines of their own; Chinese sentences have no blank between them."""
    if not before:
        return ""
    if before.lstrip().startswith("|") or part.startswith("|"):
        return "\n"
    return "" if detect_language(part) == "zh" else " "
