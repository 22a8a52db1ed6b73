"""The scores of Self-RAG, and the ranking of candidates into beams: pure functions.

Paper: Asai et al., Self-RAG: Learning to Retrieve, Generate, and Critique through Self-Reflection, arXiv 2310.11511,
section 3.3 and appendix A.3.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rag_kit.graphs.self_rag.state import Beam, Candidate, Segment

#: What each label of a critique is worth, and of the decision whether to look something up.
WORTH: dict[str, dict[str, float]] = {
    "relevance": {"relevant": 1.0, "irrelevant": 0.0},
    "support": {"full": 1.0, "partial": 0.5, "none": 0.0},
    "usefulness": {"1": -1.0, "2": -0.5, "3": 0.0, "4": 0.5, "5": 1.0},
    "retrieve": {"yes": 1.0, "no": 0.0},
}
CRITIQUES = ("relevance", "support", "usefulness")
#: How the reason of a candidate begins whose model call failed.
FAILED = "failed"

_NOT_WORD = re.compile(r"\W+")


class Weights(NamedTuple):
    """Weights of the three critiques in ``f``; the paper's defaults."""

    relevance: float = 1.0
    support: float = 1.0
    usefulness: float = 0.5


PAPER_WEIGHTS = Weights()


class Ranked(NamedTuple):
    """What came of a segment: the beams that are kept, best first, and the candidates, judged."""

    beams: list[Beam]
    candidates: list[Candidate]


def critique_score(name: str, probabilities: Mapping[str, float]) -> float:
    """The expected worth of a critique's labels, their probabilities normalised; 0 where none has any.

    Example:
        >>> critique_score("support", {"full": 0.5, "partial": 0.25, "none": 0.25})
        0.625
        >>> critique_score("retrieve", {"yes": 0.125, "no": 0.375})  # P(yes) / (P(yes) + P(no))
        0.25
    """
    worth = WORTH[name]
    total = sum(probabilities.get(label, 0.0) for label in worth)
    if total <= 0:
        return 0.0
    return sum(value * (probabilities.get(label, 0.0) / total) for label, value in worth.items())


def sequence_probability(logprobs: Sequence[float]) -> float:
    """The length-normalised probability of a text: the exponential of its tokens' mean log-probability.

    Example:
        >>> round(sequence_probability([math.log(0.5), math.log(0.5)]), 6), sequence_probability([])
        (0.5, 1.0)
    """
    return math.exp(min(0.0, sum(logprobs) / len(logprobs))) if logprobs else 1.0


def segment_score(parts: Mapping[str, float], weights: Weights = PAPER_WEIGHTS) -> float:
    """``f = p(y) + w_rel s_rel + w_sup s_sup + w_use s_use``.

    Example:
        >>> segment_score({"p": 0.5, "relevance": 0.75, "support": 0.625, "usefulness": 0.5})
        2.125
    """
    return parts["p"] + sum(weight * parts[name] for weight, name in zip(weights, CRITIQUES, strict=True))


def beam_score(scores: Sequence[float]) -> float:
    """The score of a sequence of segments: the mean of their ``f``.

    Among beams of one length this orders as their sum does; a mean also compares an answer that has ended with one
    that goes on, which a sum would decide by length alone.
    """
    return sum(scores) / len(scores) if scores else 0.0


def first_beam() -> Beam:
    """The beam before anything is written."""
    return Beam(number=1, segments=[], score=0.0, ended=False, retrieve=False, wanted=0.0, query="", found=[])


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
    """
    judged = [_scored(candidate, beams[candidate["beam"] - 1], weights) for candidate in candidates]
    running = _competing(judged, beams, hard)
    options: list[tuple[Beam, Candidate | None]] = [
        (_extended(beams[one["beam"] - 1], one), one) for one in running
    ]
    for beam in beams:
        goes_on = any(one["beam"] == beam["number"] for one in running)
        complete = any(one["beam"] == beam["number"] and _adds_nothing(one) for one in judged)
        if beam["segments"] and (beam["ended"] or complete or not goes_on):
            options.append(({**beam, "ended": True, "retrieve": False}, None))
    options.sort(key=lambda option: (-option[0]["score"], -len(option[0]["segments"])))
    kept: list[Beam] = []
    for number, (beam, made_of) in enumerate(options[:width], start=1):
        kept.append({**beam, "number": number})
        if made_of is not None:
            made_of["kept"], made_of["reason"] = True, f"kept as beam {number}"
    least = kept[-1]["score"] if kept else 0.0
    for one in judged:
        lost = f"score {one['score'] or 0.0:.3f} is not among the best {width} (the last of them has {least:.3f})"
        one["reason"] = one["reason"] or ("nothing to add" if one["f"] is None else lost)
    return Ranked(kept, judged)


def undecided(beams: Sequence[Beam], left: int, weights: Weights = PAPER_WEIGHTS) -> bool:
    """Whether a beam that goes on may still come out before the best one that has ended.

    It cannot where even the highest ``f`` in every segment that is left would keep its mean below.
    """
    highest = segment_score(dict.fromkeys(("p", *CRITIQUES), 1.0), weights)
    ended = max((beam["score"] for beam in beams if beam["ended"]), default=-math.inf)
    for beam in beams if left > 0 else ():
        scores = [segment["f"] for segment in beam["segments"]]
        # the mean only grows by segments that are better than it, so the most of them reach the most
        if not beam["ended"] and max(beam_score([*scores, *[highest] * left]), beam["score"]) >= ended:
            return True
    return False


def shared_segments(beams: Sequence[Beam]) -> int:
    """How many segments all beams begin with: these are decided, whichever wins."""
    count = 0
    for parts in zip(*(beam["segments"] for beam in beams), strict=False):
        if len({(part["text"], part["passage"]) for part in parts}) > 1:
            break
        count += 1
    return count


def plain(text: str) -> str:
    """A text without case, blanks and punctuation, to see whether two say the same word for word."""
    return _NOT_WORD.sub("", text.casefold())


def _scored(candidate: Candidate, beam: Beam, weights: Weights) -> Candidate:
    if not candidate["parts"]:
        return {**candidate}
    f = segment_score(candidate["parts"], weights)
    return {**candidate, "f": f, "score": beam_score([*(part["f"] for part in beam["segments"]), f])}


def _competing(judged: Sequence[Candidate], beams: Sequence[Beam], hard: bool) -> list[Candidate]:
    """The candidates that compete, best first: without those that a constraint drops, and each text once."""
    found: dict[tuple[str, ...], Candidate] = {}
    scored = [one for one in judged if one["f"] is not None]
    for one in sorted(scored, key=lambda one: -(one["score"] or 0.0)):  # stable: equal ones keep their order
        path = (*(plain(part["text"]) for part in beams[one["beam"] - 1]["segments"]), plain(one["text"]))
        if hard and one["labels"].get("relevance") == "irrelevant":
            one["reason"] = "the passage is irrelevant (hard constraint)"
        elif hard and one["labels"].get("support") == "none":
            one["reason"] = "the passage does not support it (hard constraint)"
        elif (first := found.setdefault(path, one)) is not one:
            place = "no passage" if first["passage"] is None else f"passage {first['passage']}"
            one["reason"] = (
                f"the same text as from {place} after beam {first['beam']}, whose score is not lower"
            )
    return list(found.values())


def _extended(beam: Beam, one: Candidate) -> Beam:
    segment = Segment(text=one["text"], beam=one["beam"], passage=one["passage"], f=one["f"] or 0.0)
    return {**first_beam(), "segments": [*beam["segments"], segment], "score": one["score"] or 0.0}


def _adds_nothing(one: Candidate) -> bool:
    return one["f"] is None and not one["reason"].startswith(FAILED)
