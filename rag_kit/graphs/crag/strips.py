"""Knowledge refinement: passages are cut into strips, strips are judged, those that help are put together again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Literal, NamedTuple

from langchain_core.documents import Document

from rag_kit.documents import copy_document, with_provenance
from rag_kit.graphs.crag.state import Strip
from rag_kit.graphs.evaluators.base import Evaluator, Grading, judge_passages
from rag_kit.graphs.state import digest_of
from rag_kit.text import sentences

#: A passage of so many sentences is one strip as it stands.
SHORT = 2
#: Strips of each source that are kept, as in the paper.
DEFAULT_STRIPS = 5
#: The stage of provenance of what refinement left of a passage.
REFINED = "crag:refine"
#: Most strips that are judged at a time; a retriever may give whole books.
MAX_JUDGED = 200


class Selection(NamedTuple):
    """Selected strips; `left_out` more were not judged; `rescued`: the best one is kept though below the threshold."""

    documents: list[Document]
    strips: list[Strip]
    left_out: int
    rescued: bool


def cut(text: str, size: int = 3) -> list[tuple[int, int]]:
    """Cut a text into strips of ``size`` sentences, a short one into one strip; return where each starts and ends."""
    spans = sentences(text)
    size = SHORT if len(spans) <= SHORT else size
    groups = (spans[first : first + size] for first in range(0, len(spans), size))
    return [(group[0].start, group[-1].end) for group in groups]


async def select_strips(
    evaluator: Evaluator,
    question: str,
    passages: Sequence[Document],
    language: str,
    *,
    origin: Literal["retrieved", "web"],
    size: int = 3,
    max_strips: int = DEFAULT_STRIPS,
    threshold: float = -0.5,
    known_gradings: Mapping[str, Grading] | None = None,
    keep_one: bool = False,
    instructions: str | None = None,
) -> Selection:
    """Cut passages into strips, grade these, and join those that are good enough, in the order of the passages.

    `known_gradings` are those of whole passages (digest -> grading): a passage that is a single strip is not judged
    again. With `keep_one` the best strip is kept where none reaches the threshold.
    """
    all_strips = [
        Strip(origin=origin, passage=number, start=start, end=end, text=passage.page_content[start:end], score=-1.0,
              reason="", kept=False)
        for number, passage in enumerate(passages)
        for start, end in cut(passage.page_content, size)
    ]  # fmt: skip
    strips, left_out = all_strips[:MAX_JUDGED], all_strips[MAX_JUDGED:]
    ungraded: list[Strip] = []
    for strip in strips:
        passage = passages[strip["passage"]]
        known = (known_gradings or {}).get(digest_of(passage))
        is_whole_passage = strip["text"] == passage.page_content.strip()
        # an evaluator that is not selective weighs strips against each other, so it judges all of them anew
        if known and is_whole_passage and evaluator.selective:
            strip.update(vars(known))  # type: ignore[typeddict-item] # score and reason
        else:
            ungraded.append(strip)
    spans = [_cut_span(passages[strip["passage"]], strip["start"], strip["end"]) for strip in ungraded]
    gradings = await judge_passages(evaluator, question, spans, language, instructions=instructions)
    for strip, grading in zip(ungraded, gradings, strict=True):
        strip.update(vars(grading))  # type: ignore[typeddict-item]
    # best first; of equals the earlier one, whose passage ranks higher
    best = sorted(strips, key=lambda strip: -strip["score"])[:max_strips]
    for strip in best:
        strip["kept"] = strip["score"] >= threshold
    rescued = keep_one and bool(best) and not best[0]["kept"]
    if rescued:
        best[0]["kept"] = True
    documents = _join_strips(strips, passages, evaluator.name, question)
    return Selection(documents, strips, len(left_out), rescued)


def _cut_span(passage: Document, start: int, end: int) -> Document:
    """Make a document of a span of a passage, with its metadata, and its offsets in the file if known."""
    span = copy_document(passage)
    span.page_content = passage.page_content[start:end]
    first, last = span.metadata.pop("start", None), span.metadata.pop("end", None)
    # if the lengths differ, the passage is not the file's own text: no offset of a part is known
    if isinstance(first, int) and isinstance(last, int) and last - first == len(passage.page_content):
        span.metadata.update(start=first + start, end=first + end)
    return span


def _join_strips(
    strips: Sequence[Strip], passages: Sequence[Document], evaluator: str, question: str
) -> list[Document]:
    """Join neighbouring strips that were kept, so that each document is verbatim text of its passage."""
    documents: list[Document] = []
    for (number, are_kept), group in groupby(strips, key=lambda strip: (strip["passage"], strip["kept"])):
        if not are_kept:
            continue
        neighbours = list(group)
        siblings = [strip for strip in strips if strip["passage"] == number]
        document = with_provenance(
            _cut_span(passages[number], neighbours[0]["start"], neighbours[-1]["end"]),
            score=max(strip["score"] for strip in neighbours),
            rank=len(documents) + 1,
            stage=REFINED if neighbours[0]["origin"] == "retrieved" else "crag:select_external",
            retriever=evaluator,
            query=question,
            passage=number,
            strips=[{key: strip[key] for key in ("start", "end", "score", "kept")} for strip in siblings],
        )
        documents.append(document)
    return documents
