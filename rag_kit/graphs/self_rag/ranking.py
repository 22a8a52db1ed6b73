"""The scores of Self-RAG, the ranking of candidates into beams, and a beam as an answer: pure functions.

Paper: Asai et al., Self-RAG: Learning to Retrieve, Generate, and Critique through Self-Reflection, arXiv 2310.11511,
section 3.3 and appendix A.3.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from functools import reduce

from langchain_core.documents import Document

from rag_kit.graphs.self_rag.shared import AnswerSegment, Beam, Continuation
from rag_kit.text import sentences
from rag_kit.text.citations.check import renumber
from rag_kit.text.sentences import append_part, end_sentence

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

#: The paper's weights of the three critiques in ``f``.
WEIGHTS = (1.0, 1.0, 0.5)

_NOT_WORD = re.compile(r"\W+")
_END_WORD = re.compile(r"^\W*END\W*$")


def critique_score(name: str, probabilities: Mapping[str, float]) -> float:
    """Return the expected worth (`WORTH`) of a critique's label, given each label's probability; 0 without any."""
    worth = WORTH[name]
    total = sum(probabilities.get(label, 0.0) for label in worth)
    if total <= 0:
        return 0.0
    return sum(value * (probabilities.get(label, 0.0) / total) for label, value in worth.items())


def sequence_probability(logprobs: Sequence[float]) -> float:
    """Return the length-normalised probability of a text: exp of its tokens' mean log-probability."""
    return math.exp(min(0.0, sum(logprobs) / len(logprobs))) if logprobs else 1.0


def segment_score(parts: Mapping[str, float], weights: Sequence[float] = WEIGHTS) -> float:
    """Return the paper's score of a segment: ``f = p(y) + w_rel s_rel + w_sup s_sup + w_use s_use``."""
    return parts["p"] + sum(weight * parts[name] for weight, name in zip(weights, CRITIQUES, strict=True))


def first_beam() -> Beam:
    """Make the beam with which writing begins."""
    return Beam(number=1, segments=[], score=0.0, ended=False, retrieve=False, wanted=0.0, query="", found=[])


def rank(
    beams: Sequence[Beam],
    candidates: Sequence[Continuation],
    *,
    width: int,
    weights: Sequence[float] = WEIGHTS,
    hard: bool = False,
) -> tuple[list[Beam], list[Continuation]]:
    """Score the candidates of a segment; return the best beams, best first, and the candidates with their scores.

    A beam to which some candidate had nothing to add competes unchanged, too; one that got no candidate at all has
    ended. Equal scores: the longer answer, then the order given. With ``hard``, candidates that are irrelevant or
    unsupported are left out.
    """
    judged = [_score(candidate, beams[candidate["beam"] - 1], weights) for candidate in candidates]
    competitors = _select_competitors(judged, beams, hard)
    # new beams, each with the candidate that it ends with; None for a beam that is unchanged
    options: list[tuple[Beam, Continuation | None]] = []
    for one in competitors:
        segment = AnswerSegment(text=one["text"], beam=one["beam"], passage=one["passage"], f=one["f"] or 0.0)
        segments = [*beams[one["beam"] - 1]["segments"], segment]
        options.append(({**first_beam(), "segments": segments, "score": one["score"] or 0.0}, one))
    continued = {candidate["beam"] for candidate in competitors}
    unscored = [candidate for candidate in judged if candidate["f"] is None]
    # beams that some candidate had nothing to add to
    complete = {candidate["beam"] for candidate in unscored if not candidate["reason"].startswith(FAILED)}
    for beam in beams:
        may_end = beam["ended"] or beam["number"] in complete or beam["number"] not in continued
        if beam["segments"] and may_end:
            options.append(({**beam, "ended": True, "retrieve": False}, None))
    options.sort(key=lambda option: (-option[0]["score"], -len(option[0]["segments"])))
    best: list[Beam] = []
    for number, (beam, last_candidate) in enumerate(options[:width], start=1):
        best.append({**beam, "number": number})
        if last_candidate is not None:
            last_candidate.update({"kept": True, "reason": f"kept as beam {number}"})
    for candidate in judged:
        lost = "nothing to add" if candidate["f"] is None else f"its score is not among the best {width}"
        candidate["reason"] = candidate["reason"] or lost
    return best, judged


def count_shared_segments(beams: Sequence[Beam]) -> int:
    """Count the segments that all beams begin with: these are decided, whichever wins."""
    count = 0
    for segments in zip(*(beam["segments"] for beam in beams), strict=False):
        if len({(segment["text"], segment["passage"]) for segment in segments}) > 1:
            break
        count += 1
    return count


def without_punctuation(text: str) -> str:
    """Remove case, blanks and punctuation, to see whether two texts have the same words."""
    return _NOT_WORD.sub("", text.casefold())


def _score(candidate: Continuation, beam: Beam, weights: Sequence[float]) -> Continuation:
    """Copy a candidate; if it was judged, with its ``f`` and the score of the beam that it would make."""
    if not candidate["parts"]:
        return {**candidate}
    f = segment_score(candidate["parts"], weights)
    scores = [*(segment["f"] for segment in beam["segments"]), f]
    # among beams of one length a mean orders as a sum does; between others a sum would decide by length alone
    return {**candidate, "f": f, "score": sum(scores) / len(scores)}


def _select_competitors(
    judged: Sequence[Continuation], beams: Sequence[Beam], drop_unsupported: bool
) -> list[Continuation]:
    """Return the scored candidates, best first, each text once; put into the others why they lost.

    With ``drop_unsupported``, irrelevant and unsupported ones are left out too.
    """
    by_text: dict[tuple[str, ...], Continuation] = {}
    scored = [candidate for candidate in judged if candidate["f"] is not None]
    scored.sort(key=lambda candidate: -(candidate["score"] or 0.0))  # stable: equal ones keep their order
    for candidate in scored:
        texts = [segment["text"] for segment in beams[candidate["beam"] - 1]["segments"]]
        whole_answer = tuple(map(without_punctuation, [*texts, candidate["text"]]))
        if drop_unsupported and candidate["labels"].get("relevance") == "irrelevant":
            candidate["reason"] = "the passage is irrelevant (hard constraint)"
        elif drop_unsupported and candidate["labels"].get("support") == "none":
            candidate["reason"] = "the passage does not support it (hard constraint)"
        elif by_text.setdefault(whole_answer, candidate) is not candidate:
            # setdefault returned the candidate that came first with this text
            candidate["reason"] = "another candidate has the same text, and no lower score"
    return list(by_text.values())


def clean_continuation(text: str, count: int, documents: Sequence[Document] = ()) -> str:
    """Return the first `count` sentences of a continuation, without citations; "" if it only says END."""
    without_citations = renumber(text, {}, [document.page_content for document in documents]).strip()
    spans = [span for span in sentences(without_citations) if not _END_WORD.match(span.text)][:count]
    return without_citations[spans[0].start : spans[-1].end].strip() if spans else ""


def answer_so_far(beam: Beam) -> str:
    """Return the answer so far, without citations."""
    return reduce(append_part, (segment["text"] for segment in beam["segments"]), "")


def used_passages(segments: Sequence[AnswerSegment]) -> list[int]:
    """Return the indices of the passages that an answer rests on, in the order of their first use."""
    return list(dict.fromkeys(segment["passage"] for segment in segments if segment["passage"] is not None))


def cite_segments(segments: Sequence[AnswerSegment]) -> list[str]:
    """Write the segments of the answer with ``[n]`` after each sentence; joined, they are the answer."""
    numbers = {passage: number for number, passage in enumerate(used_passages(segments), start=1)}
    texts: list[str] = []
    answer = ""
    for segment in segments:
        citation = "" if segment["passage"] is None else f"[{numbers[segment['passage']]}]"
        cited = (end_sentence(span.text) + citation for span in sentences(segment["text"]))
        longer = append_part(answer, reduce(append_part, cited, ""))
        texts.append(longer.removeprefix(answer))
        answer = longer
    return texts
