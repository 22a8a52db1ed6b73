"""Context relevance by sentences: how much of what came back is to the point."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rag_kit.concurrency import afan_out_map
from rag_kit.errors import ModelError
from rag_kit.evaluation.cells import Cell
from rag_kit.evaluation.metric import Metric, Source, Stage
from rag_kit.prompts import render_passages
from rag_kit.text import sentences

if TYPE_CHECKING:
    from rag_kit.evaluation.examples import Example
    from rag_kit.evaluation.judge.judge import Judge
    from rag_kit.evaluation.outputs import Output

MAX_SENTENCES = 400
"""Sentences looked at for one question; what follows is left out, and the reason says so."""

_BATCH = 40
_WORD = re.compile(r"\w")
_HEADING = re.compile(r"#{1,6}\s")


class ContextRelevance(Metric):
    """Relevant sentences of the retrieved passages / all their sentences: 4 of 10 are 0.4.

    The judge chooses the relevant ones (prompt ``judge_sentences``), 40 sentences a call. Headings and lines without
    a word are no sentences. It is the measure that the first Ragas paper (Es et al., 2023) called context relevance;
    what Ragas ships under that name today are two grades of 0 to 2 of the whole context. It falls with every
    sentence that is there for nothing, so longer passages score lower: compare pipelines of like sizes.
    """

    name = "ours_context_relevance"
    source: Source = "ours"
    stage: Stage = "retrieval"
    output_needs = frozenset({"passages"})
    needs_judge: bool = True

    async def score(self, example: Example, output: Output, judge: Judge | None) -> Cell:
        """The share; undefined where nothing, or no sentence, came back."""
        found = [
            one.text
            for text in output.contexts
            for one in sentences(text)
            if _WORD.search(one.text) and not _HEADING.match(one.text)
        ]
        read = found[:MAX_SENTENCES]
        if not read:
            return Cell.undefined("nothing was retrieved that holds a sentence")
        chosen = await _chosen(example.question, read, judge)
        reason = f"{len(chosen)} of {len(read)} sentences are relevant"
        if len(found) > len(read):
            reason += f"; {len(found) - len(read)} more were not looked at"
        return Cell.ok(
            len(chosen) / len(read), reason, relevant=[read[place] for place in chosen], sentences=len(read)
        )

    def settings(self) -> dict[str, Any]:
        """Who judges a sentence, and how many are looked at."""
        return {"by": "judge", "batch": _BATCH, "max_sentences": MAX_SENTENCES}


async def _chosen(question: str, read: Sequence[str], judge: Judge | None) -> list[int]:
    """Indexes of the relevant sentences, in order."""
    assert judge is not None
    asked = judge

    async def part(start: int) -> list[int]:
        batch = read[start : start + _BATCH]
        reply = await asked.ask(
            "judge_sentences",
            {"question": question, "passages": render_passages(batch), "count": len(batch)},
        )
        return [start + number - 1 for number in _numbers(reply.sentences, len(batch))]

    parts = await afan_out_map(part, range(0, len(read), _BATCH))
    return [place for chosen in parts.values for place in chosen]


def _numbers(given: Sequence[Any], count: int) -> list[int]:
    """The chosen numbers, each once, in order.

    Raises:
        ModelError: One is no number of a sentence.
    """
    wrong = [each for each in given if type(each) is not int or not 1 <= each <= count]
    if wrong:
        raise ModelError(f"the judge chose sentence {wrong[0]!r:.40}; there are sentences 1 to {count}")
    return sorted(set(given))


def context_relevance(name: str) -> Metric:
    """The metric ``ours_context_relevance``."""
    return ContextRelevance()
