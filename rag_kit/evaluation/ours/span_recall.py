"""Recall of gold spans: is what the reader must see in the first so many characters that came back?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

from rag_kit.errors import InvalidInputError
from rag_kit.evaluation.cells import Cell
from rag_kit.evaluation.examples import Example, GoldSpan
from rag_kit.evaluation.judge.judge import Judge
from rag_kit.evaluation.metric import Metric
from rag_kit.evaluation.ours.answers import normalize, occurs
from rag_kit.evaluation.outputs import Output, Passage

_MAX_BUDGET = 10_000_000  # characters
_MAX_DETAILS = 20  # missed spans in the details of a cell


class SpanRecall(Metric):
    """Share of the gold spans that lie wholly within one passage of their document.

    A passage must belong to the span's document (its own id or the document's in its metadata; a span whose document
    is ``""`` may come from any). Without the documents' texts, words are compared, so that it holds for any splitter:
    blanks, bars of tables, case and the form of letters do not matter. With them, as in the benchmark, a verbatim
    part of its document must cover the span's place. Spans of the accepted answers are versions of one: any will do.

    ``budget`` is the characters that a reader sees, over the passages in ranked order; the last one is cut. None: all.
    ``documents`` are texts by id; spans with a ``start`` then count at that place only.
    """

    source, stage = "ours", "retrieval"
    example_needs = frozenset({"spans"})
    output_needs = frozenset({"passages"})

    def __init__(self, budget: int | None = None, *, documents: Mapping[str, str] | None = None) -> None:
        if budget is not None and (type(budget) is not int or not 1 <= budget <= _MAX_BUDGET):
            raise InvalidInputError(f"budget is {budget!r}; give characters from 1 to {_MAX_BUDGET}, or None")
        self.budget = budget
        self.name = "ours_span_recall" if budget is None else f"ours_span_recall@{budget}"
        self._documents = documents or {}

    async def score(self, example: Example, output: Output, judge: Judge | None) -> Cell:
        """Return the share, with the spans that are missing."""
        return self.cell(example, output.passages or ())

    def cell(self, example: Example, passages: Sequence[Passage]) -> Cell:
        """Return the share of the gold spans within these passages, which are in ranked order."""
        groups = _group_versions(example)
        if not groups:
            return Cell.not_applicable("the example's spans are blank")
        parts, missed = self._cut_to_budget(passages), []
        for versions in groups:
            if not any(_contains_span(part, span) for span, part in product(versions, parts)):
                missed.append(versions[0].text)
        present = len(groups) - len(missed)
        reason = f"{present} of {len(groups)} spans are there"
        return Cell.ok(present / len(groups), reason, spans=len(groups), missed=missed[:_MAX_DETAILS])

    def settings(self) -> dict[str, Any]:
        """The budget in characters."""
        return {"budget": self.budget}

    def _cut_to_budget(self, passages: Sequence[Passage]) -> list[_VisiblePart]:
        """Return the parts of the passages that a reader sees within the budget."""
        remaining = sum(len(passage.text) for passage in passages) if self.budget is None else self.budget
        parts = []
        for passage in passages:
            if remaining <= 0:
                break
            visible = passage.text[:remaining]
            start = self._find_start(passage)
            parts.append(_VisiblePart(passage.ids, normalize(visible.replace("|", " ")), start, len(visible)))
            remaining -= len(visible)
        return parts

    def _find_start(self, passage: Passage) -> int | None:
        """Return a passage's offset in its document: from its metadata if right, else by search, else ``None``."""
        document = next((self._documents[key] for key in passage.ids if key in self._documents), None)
        if document is None:
            return None
        for key in ("start", "start_index"):
            start = passage.metadata.get(key)
            if isinstance(start, int) and start >= 0 and document.startswith(passage.text, start):
                return start
        position = document.find(passage.text)
        return position if position >= 0 else None


class _VisiblePart(NamedTuple):
    """The visible part of a passage: ids, normalized text, its offset in the document if known, its length there."""

    ids: tuple[str, ...]
    normalized: str
    start: int | None
    length: int


def _contains_span(part: _VisiblePart, span: GoldSpan) -> bool:
    """Tell whether a gold span lies wholly in the visible part of a passage: by offsets, else by text."""
    if span.document and span.document not in part.ids:
        return False
    if span.start is None or part.start is None:
        return occurs(normalize(span.text.replace("|", " ")), part.normalized)
    return part.start <= span.start and span.start + len(span.text) <= part.start + part.length


def _group_versions(example: Example) -> list[list[GoldSpan]]:
    """Group the spans of which any one will do: all accepted answers are one group, any other span is its own."""
    answers = {normalize(answer) for answer in example.answers}
    accepted: list[GoldSpan] = []
    groups: list[list[GoldSpan]] = []
    for span in example.spans:
        text = normalize(span.text)
        if text in answers:
            accepted.append(span)
        elif text:
            groups.append([span])
    return [accepted, *groups] if accepted else groups


def span_recall(name: str) -> Metric:
    """Make ``ours_span_recall``, or ``ours_span_recall@3000`` for a budget of 3,000 characters."""
    _, _, budget = name.partition("@")
    return SpanRecall(int(budget) if budget else None)
