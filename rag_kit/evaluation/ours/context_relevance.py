"""Context relevance: how much of what was retrieved is needed to answer the question?"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from rag_kit.evaluation.cells import Cell
from rag_kit.evaluation.examples import Example
from rag_kit.evaluation.judge.judge import Judge
from rag_kit.evaluation.metric import Metric
from rag_kit.evaluation.outputs import Output
from rag_kit.prompts import render_passages
from rag_kit.text import sentences

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
    source, stage = "ours", "retrieval"
    output_needs = frozenset({"passages"})
    needs_judge = True

    async def score(self, example: Example, output: Output, judge: Judge | None) -> Cell:
        """Return the share of sentences needed; its details list these, and for each passage how many of how many."""
        by_passage = [
            [sentence.text for sentence in sentences(text) if any(map(str.isalnum, sentence.text))]
            for text in output.contexts
        ]
        # (position of the passage, sentence)
        all_sentences = [(position, text) for position, texts in enumerate(by_passage) for text in texts]
        if not all_sentences or judge is None:
            return Cell.ok(0.0, "no passage was retrieved")
        rendered = render_passages([text for _, text in all_sentences])  # numbered from 1
        values = {"question": example.conversation, "passages": rendered}
        numbers = await _ask_numbers(judge, values, len(all_sentences))
        needed = [all_sentences[number - 1] for number in numbers]
        needed_counts = Counter(position for position, _ in needed)
        counts = [[needed_counts[position], len(texts)] for position, texts in enumerate(by_passage)]
        return Cell.ok(
            len(needed) / len(all_sentences),
            f"{len(needed)} of {len(all_sentences)} sentences are needed",
            relevant=[text for _, text in needed[:_MAX_DETAILS]], passages=counts,
        )  # fmt: skip

    def settings(self) -> dict[str, Any]:
        """The prompt that is sent."""
        return {"prompts": [_PROMPT]}


async def _ask_numbers(judge: Judge, values: dict[str, Any], total: int) -> list[int]:
    """Ask the judge for the numbers of the sentences needed, each once, in order; each is from 1 to ``total``."""

    def read_numbers(reply: Any) -> list[int]:
        """Read ``[3, "[1]"]`` as ``[1, 3]``; an entry that is no number counts as 0, which is out of range."""
        matches = [re.fullmatch(r"\D*(?<![-−–])(\d+)\D*", str(entry)) for entry in reply.sentences]
        return sorted({int(match[1]) if match else 0 for match in matches})

    def fault(reply: Any) -> str | None:
        wrong = [number for number in read_numbers(reply) if not 1 <= number <= total]
        return f"chose sentence {wrong[0]} of {total}" if wrong else None

    return read_numbers(await judge.ask(_PROMPT, values, fault=fault))
