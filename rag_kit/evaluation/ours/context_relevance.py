"""Context relevance: how much of what was retrieved is needed to answer the question?"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any

from rag_kit.evaluation.cells import Cell
from rag_kit.evaluation.metric import Metric, Source, Stage
from rag_kit.prompts import render_passages
from rag_kit.text import sentences

if TYPE_CHECKING:
    from rag_kit.evaluation.examples import Example
    from rag_kit.evaluation.judge.judge import Judge
    from rag_kit.evaluation.outputs import Output

_PROMPT = "judge_context_relevance"
_MAX_DETAILS = 50  # sentences in the details of a cell


class ContextRelevance(Metric):
    """Share of the sentences of all passages that are needed to answer: three of five are .6.

    The judge gets the question, after earlier turns, and all sentences with numbers, and gives the numbers of those
    that matter, in one call. Headings, list items and rows of tables are sentences; what has no letter or digit is
    none. Nothing retrieved is 0. A number that no sentence has is asked for once more, then the cell is an error.
    Sentences are counted as in the first version of Ragas (Es et al., 2023); Ragas's present ``context_relevance`` is
    another measure, two ratings from 0 to 2.

    Example:
        >>> import asyncio
        >>> from langchain_core.language_models import FakeListChatModel
        >>> from rag_kit.evaluation import Example, Judge
        >>> from rag_kit.evaluation.outputs import Output, Passage
        >>> judge = Judge(FakeListChatModel(responses=['{"sentences": [1, 3]}']), "none")
        >>> output = Output(passages=(Passage("a", "The lake is deep. It is cold."), Passage("b", "40 m deep. Blue.")))
        >>> asyncio.run(ContextRelevance().measure(Example("q", "How deep is it?"), output, judge)).value
        0.5
    """

    name = "ours_context_relevance"
    source: Source = "ours"
    stage: Stage = "retrieval"
    output_needs = frozenset({"passages"})
    needs_judge = True

    async def score(self, example: Example, output: Output, judge: Judge | None) -> Cell:
        """Return the share of sentences needed; its details list these, and for each passage how many of how many."""
        parts = [
            [sentence.text for sentence in sentences(text) if any(map(str.isalnum, sentence.text))]
            for text in output.contexts
        ]
        numbered = [(passage, text) for passage, part in enumerate(parts) for text in part]
        if not numbered or judge is None:
            return Cell.ok(0.0, "no passage was retrieved")
        passages = render_passages([text for _, text in numbered])
        values = {"question": example.conversation, "passages": passages}
        chosen = await _ask_numbers(judge, values, len(numbered))
        needed = [numbered[number - 1] for number in chosen]
        needed_by_passage = Counter(passage for passage, _ in needed)
        counts = [[needed_by_passage[passage], len(part)] for passage, part in enumerate(parts)]
        return Cell.ok(
            len(needed) / len(numbered),
            f"{len(needed)} of {len(numbered)} sentences are needed",
            relevant=[text for _, text in needed[:_MAX_DETAILS]], passages=counts,
        )  # fmt: skip

    def settings(self) -> dict[str, Any]:
        """The prompt that is sent."""
        return {"prompts": [_PROMPT]}


async def _ask_numbers(judge: Judge, values: dict[str, Any], total: int) -> list[int]:
    """Ask the judge for the numbers of the sentences needed, each once, in order."""

    def numbers(reply: Any) -> list[int]:
        entries = [re.fullmatch(r"\D*(\d+)\D*", str(entry)) for entry in reply.sentences]  # such as "[3]"
        return sorted({int(entry[1]) if entry else 0 for entry in entries})  # 0 is a wrong one

    def fault(reply: Any) -> str | None:
        wrong = [number for number in numbers(reply) if not 1 <= number <= total]
        return f"chose sentence {wrong[0]} of {total}" if wrong else None

    return numbers(await judge.ask(_PROMPT, values, fault=fault))
