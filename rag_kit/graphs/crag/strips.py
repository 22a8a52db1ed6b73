"""Knowledge refinement: passages are cut into strips, strips are judged, those that help are put together again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from langchain_core.documents import Document

from rag_kit.documents import copy_document, with_provenance
from rag_kit.graphs.crag.state import Strip
from rag_kit.graphs.evaluators.base import Evaluator, Grading, judged_by
from rag_kit.graphs.evaluators.lexical import LexicalEvaluator
from rag_kit.text import sentences

#: A passage of so many sentences is one strip as it stands.
SHORT = 2
#: Strips of each source that are kept, as in the paper.
DEFAULT_STRIPS = 5
#: Most strips that are judged at a time; a retriever may give whole books.
MAX_JUDGED = 200


@dataclass(frozen=True)
class Selection:
    """What selection left.

    Attributes:
        documents: Runs of neighbouring strips that were kept, verbatim, in the order of the passages.
        strips: Every strip with its confidence, kept or not.
        left_out: How many strips were not even judged, beyond `MAX_JUDGED`.
        rescued: Whether no strip reached the threshold and the best one was kept all the same.
    """

    documents: list[Document] = field(default_factory=list)
    strips: list[Strip] = field(default_factory=list)
    left_out: int = 0
    rescued: bool = False


def cut(text: str, size: int = 3) -> list[tuple[int, int]]:
    """Cut a passage into strips of a few sentences.

    Args:
        text: The passage.
        size: Sentences in a strip; a passage of one or two sentences is one strip whatever the size.

    Returns:
        Start and end of each strip in the text, in order, without white space around; none for a blank text.

    Example:
        >>> text = "One. Two. Three. Four."
        >>> [text[start:end] for start, end in cut(text, 3)]
        ['One. Two. Three.', 'Four.']
        >>> cut("One. Two.", 1)
        [(0, 9)]
    """
    found = sentences(text)
    if not found:
        return []
    if len(found) <= SHORT:
        return [(found[0].start, found[-1].end)]
    groups = (found[at : at + size] for at in range(0, len(found), size))
    return [(group[0].start, group[-1].end) for group in groups]


async def select_strips(
    evaluator: Evaluator,
    question: str,
    passages: Sequence[Document],
    language: str,
    *,
    origin: Literal["retrieved", "web"],
    size: int = 3,
    most: int = DEFAULT_STRIPS,
    threshold: float = -0.5,
    known: Sequence[Grading] | None = None,
    keep_one: bool = False,
    instructions: str | None = None,
) -> Selection:
    """Cut passages into strips, grade these, and join those that are good enough, in the order of the passages.

    Args:
        evaluator: The same one that judged the passages.
        question: What strips are judged by.
        passages: The passages.
        language: ``"en"`` or ``"zh"``.
        origin: Where the passages are from.
        size: Sentences in a strip.
        most: Most strips that are kept.
        threshold: Strips of a lower confidence are dropped.
        known: Gradings of the whole passages: one that is a single strip is not judged twice.
        keep_one: Keep the best strip where none reaches the threshold.
        instructions: In place of the prompt file's own, for an evaluator that has a prompt.
    """
    places = [
        (number, start, end)
        for number, passage in enumerate(passages)
        for start, end in cut(passage.page_content, size)
    ]
    judged = _shared_out(places, MAX_JUDGED)
    if not judged:
        return Selection()
    # lexical evidence is weighed against that of the other strips, so it is judged anew; it costs no call
    reuse = bool(known) and not isinstance(evaluator, LexicalEvaluator)
    whole = _whole(judged, passages) if reuse else set()
    asked = [place for place in judged if place not in whole]
    parts = [_part(passages[number], start, end) for number, start, end in asked]
    fresh = await judged_by(evaluator, question, parts, language, instructions=instructions)
    by_place = dict(zip(asked, fresh, strict=True))
    scored = [(place, known[place[0]] if known and place in whole else by_place[place]) for place in judged]
    # the best first; of equals the earlier one, whose passage ranks higher
    ranking = sorted(range(len(scored)), key=lambda at: (-scored[at][1].score, at))
    kept = {at for at in ranking[:most] if scored[at][1].score >= threshold}
    rescued = keep_one and not kept
    if rescued:
        kept = {ranking[0]}
    strips = [
        Strip(
            origin=origin,
            passage=place[0],
            start=place[1],
            end=place[2],
            text=passages[place[0]].page_content[place[1] : place[2]],
            score=grading.score,
            reason=grading.reason,
            kept=at in kept,
        )
        for at, (place, grading) in enumerate(scored)
    ]
    documents = _joined(strips, passages, evaluator.name, question)
    return Selection(documents, strips, len(places) - len(judged), rescued)


def _shared_out(places: list[tuple[int, int, int]], most: int) -> list[tuple[int, int, int]]:
    """The first strips of each passage, by turns, so that one as long as a book takes nobody else's place."""
    if len(places) <= most:
        return places
    turns: dict[int, int] = {}
    ordered = []
    for at, (number, _, _) in enumerate(places):
        turns[number] = turns.get(number, -1) + 1
        ordered.append((turns[number], at))
    return [places[at] for at in sorted(at for _, at in sorted(ordered)[:most])]


def _whole(places: Sequence[tuple[int, int, int]], passages: Sequence[Document]) -> set[tuple[int, int, int]]:
    """Strips that are all there is of their passage."""
    return {
        (number, start, end)
        for number, start, end in places
        if passages[number].page_content.strip() == passages[number].page_content[start:end]
    }


def _part(passage: Document, start: int, end: int) -> Document:
    """A span of a passage as a document of its own, with title, heading and page of the whole.

    The offsets of a chunk in its file (metadata ``start`` and ``end``) become those of the span.
    """
    part = copy_document(passage)
    whole = part.page_content
    part.page_content = whole[start:end]
    at, to = part.metadata.get("start"), part.metadata.get("end")
    if isinstance(at, int) and isinstance(to, int):
        if to - at == len(whole):
            part.metadata.update(start=at + start, end=at + end)
        else:
            part.metadata.pop("start"), part.metadata.pop("end")
    return part


def _joined(
    strips: Sequence[Strip], passages: Sequence[Document], evaluator: str, question: str
) -> list[Document]:
    """Strips that were kept, neighbours as one span, so that each document is verbatim text of its passage."""
    runs: list[list[Strip]] = []
    before: Strip | None = None
    for strip in strips:
        if strip["kept"]:
            if before is not None and before["kept"] and before["passage"] == strip["passage"]:
                runs[-1].append(strip)
            else:
                runs.append([strip])
        before = strip
    return [
        _document(run, strips, passages[run[0]["passage"]], rank, evaluator, question)
        for rank, run in enumerate(runs, start=1)
    ]


def _document(
    run: Sequence[Strip], strips: Sequence[Strip], passage: Document, rank: int, evaluator: str, question: str
) -> Document:
    of_passage: list[dict[str, Any]] = [
        {key: strip[key] for key in ("start", "end", "score", "kept")}
        for strip in strips
        if strip["passage"] == run[0]["passage"]
    ]
    part = _part(passage, run[0]["start"], run[-1]["end"])
    return with_provenance(
        part,
        score=max(strip["score"] for strip in run),
        rank=rank,
        stage="crag:refine" if run[0]["origin"] == "retrieved" else "crag:select_external",
        retriever=evaluator,
        query=question,
        passage=run[0]["passage"],
        strips=of_passage,
    )
