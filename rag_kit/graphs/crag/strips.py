"""Knowledge refinement: passages are cut into strips, strips are judged, those that help are put together again."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Literal

from langchain_core.documents import Document

from rag_kit.documents import copy_document, with_provenance
from rag_kit.graphs.crag.state import PassageGrading, Strip
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


def cut(text: str, size: int = 3) -> list[tuple[int, int]]:
    """Cut a text into strips of ``size`` sentences, a short one into one strip; return where each starts and ends."""
    spans = sentences(text)
    size = SHORT if len(spans) <= SHORT else size
    groups = (spans[first : first + size] for first in range(0, len(spans), size))
    return [(group[0].start, group[-1].end) for group in groups]


def cut_passages(passages: Sequence[Document], size: int, origin: Literal["retrieved", "web"]) -> list[Strip]:
    """Cut passages into strips, which are not judged yet."""
    return [
        Strip(origin=origin, passage=number, start=start, end=end, text=passage.page_content[start:end], score=-1.0,
              reason="", kept=False)
        for number, passage in enumerate(passages)
        for start, end in cut(passage.page_content, size)
    ]  # fmt: skip


def take_known_grades(
    strips: Sequence[Strip], passages: Sequence[Document], gradings: Sequence[PassageGrading]
) -> list[Strip]:
    """Give each strip that is a whole judged passage the grading of that; return the other strips."""
    by_digest = {grading.get("digest"): grading for grading in gradings}
    others = []
    for strip in strips:
        passage = passages[strip["passage"]]
        known = by_digest.get(digest_of(passage))
        if known and strip["text"] == passage.page_content.strip():
            strip["score"], strip["reason"] = known["score"], known["reason"]
        else:
            others.append(strip)
    return others


def keep_best(strips: Sequence[Strip], max_strips: int, threshold: float, *, keep_one: bool) -> bool:
    """Mark the best strips as kept; with ``keep_one`` the best one also below the threshold, and tell if it is."""
    # of equals the earlier one, whose passage ranks higher
    best = sorted(strips, key=lambda strip: -strip["score"])[:max_strips]
    for strip in best:
        strip["kept"] = strip["score"] >= threshold
    is_rescued = keep_one and bool(best) and not best[0]["kept"]
    if is_rescued:
        best[0]["kept"] = True
    return is_rescued


def cut_span(passage: Document, start: int, end: int) -> Document:
    """Make a document of a span of a passage, with its metadata, and its offsets in the file if known."""
    span = copy_document(passage)
    span.page_content = passage.page_content[start:end]
    first, last = span.metadata.pop("start", None), span.metadata.pop("end", None)
    # if the lengths differ, the passage is not the file's own text: no offset of a part is known
    if isinstance(first, int) and isinstance(last, int) and last - first == len(passage.page_content):
        span.metadata.update(start=first + start, end=first + end)
    return span


def join_strips(
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
            cut_span(passages[number], neighbours[0]["start"], neighbours[-1]["end"]),
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
