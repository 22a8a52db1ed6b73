"""Recall of gold spans: is what the reader must see in the text that came back?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from rag_kit.errors import InvalidInputError
from rag_kit.evaluation.cells import Cell
from rag_kit.evaluation.examples import GoldSpan
from rag_kit.evaluation.metric import Metric, Source, Stage
from rag_kit.evaluation.ours.occurrence import occurs, plain

if TYPE_CHECKING:
    from rag_kit.evaluation.examples import Example
    from rag_kit.evaluation.judge import Judge
    from rag_kit.evaluation.outputs import Output

_MAX_BUDGET = 10_000_000
_SHOWN = 20


class SpanRecall(Metric):
    """Share of the gold spans that lie wholly within one passage of their document.

    Compared are words, not offsets, so that it holds for any splitter: a passage must belong to the span's document
    (its own id or the document's in its metadata; a span whose document is ``""`` may come from any) and hold its
    text; blanks, case and the form of letters do not matter. Spans of one document that overlap, or of which one
    holds the other, are versions of one: any of them will do.

    `rag_kit.evaluation.SpanRecall` is the stricter measure of the benchmark, which knows the corpus and asks for the
    exact place.

    Args:
        budget: Characters that a reader sees, counted over the passages in ranked order; the last one is cut. None:
            all.

    Raises:
        InvalidInputError: If the budget is no whole number from 1.

    Example:
        >>> import asyncio
        >>> from rag_kit.evaluation.examples import Example
        >>> from rag_kit.evaluation.outputs import Output, Passage
        >>> example = Example("q", "?", spans=(GoldSpan("d", "the moon"), GoldSpan("d", "the sun")))
        >>> found = Output(passages=(Passage("d", "Tides follow the moon."),))
        >>> asyncio.run(SpanRecall().measure(example, found)).value
        0.5
    """

    source: Source = "ours"
    stage: Stage = "retrieval"
    example_needs = frozenset({"spans"})
    output_needs = frozenset({"passages"})

    def __init__(self, budget: int | None = None) -> None:
        if budget is not None and (type(budget) is not int or not 1 <= budget <= _MAX_BUDGET):
            raise InvalidInputError(f"budget is {budget!r}; give characters from 1 to {_MAX_BUDGET}, or None")
        self.budget = budget
        self.name = "ours_span_recall" if budget is None else f"ours_span_recall@{budget}"

    async def score(self, example: Example, output: Output, judge: Judge | None) -> Cell:
        """The share, with the spans that are missing."""
        groups = _groups([span for span in example.spans if plain(span.text)])
        if not groups:
            return Cell.not_applicable("the example's spans are blank")
        seen = list(self._seen(output))
        missed = [
            group[0].text
            for group in groups
            if not any(
                (not span.document or span.document in ids) and occurs(plain(span.text), text)
                for span in group
                for ids, text in seen
            )
        ]
        return Cell.ok(
            (len(groups) - len(missed)) / len(groups),
            f"{len(groups) - len(missed)} of {len(groups)} spans are there",
            spans=len(groups), missed=missed[:_SHOWN],
        )  # fmt: skip

    def settings(self) -> dict[str, Any]:
        """The budget in characters."""
        return {"budget": self.budget}

    def _seen(self, output: Output) -> Iterator[tuple[tuple[str, ...], str]]:
        """Ids and readable text of each passage within the budget."""
        left = self.budget
        for passage in output.passages or ():
            if left is not None and left <= 0:
                return
            yield passage.ids, plain(passage.text if left is None else passage.text[:left])
            left = None if left is None else left - len(passage.text)


def _groups(spans: Sequence[GoldSpan]) -> list[list[GoldSpan]]:
    """Spans that are versions of one another, together."""
    groups: list[list[GoldSpan]] = []
    for span in spans:
        group = next((group for group in groups if any(_same(span, other) for other in group)), None)
        if group is None:
            groups.append([span])
        else:
            group.append(span)
    return groups


def _same(one: GoldSpan, other: GoldSpan) -> bool:
    if one.document != other.document:
        return False
    if one.start is not None and other.start is not None:
        return one.start < other.start + len(other.text) and other.start < one.start + len(one.text)
    short, long = sorted((plain(one.text), plain(other.text)), key=len)
    return occurs(short, long)


def span_recall(name: str) -> Metric:
    """``ours_span_recall``, or ``ours_span_recall@3000`` with a budget of 3,000 characters."""
    _, _, budget = name.partition("@")
    return SpanRecall(int(budget) if budget else None)
