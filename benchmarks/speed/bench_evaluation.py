"""Evaluation: a run must take what its judge takes, and no more memory for more rows.

A judge of 200 ms is asked by five metrics, Ragas's and ours, ten times a row, at most 32 at a time. The ideal is
calls * 200 ms / 32. The time is what the run takes on a machine with nothing else to do (waits and processor time of
its thread), so that other work does not count.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import tracemalloc
from typing import Any

os.environ.setdefault("RAGAS_DO_NOT_TRACK", "true")

from harness import Row, at_most, unshared_seconds
from langchain_core.messages import BaseMessage
from scripted import MODEL, Model

from rag_kit.evaluation import Example, Judge, aevaluate
from rag_kit.evaluation.outputs import Output, Passage

AT_ONCE = 32
PASSAGES = 3
METRICS = (
    "faithfulness", "context_recall", "context_precision", "context_relevance",
    "context_precision_without_reference",
)  # fmt: skip
CALLS = 2 + 1 + PASSAGES + 2 + PASSAGES
"""Calls a row, if everything is asked once."""

_STATEMENT = {"statement": "The Rhine is long.", "reason": "It says so."}
_REPLIES: dict[str, dict[str, Any]] = {
    "StatementGeneratorOutput": {"statements": [_STATEMENT["statement"]]},
    "NLIStatementOutput": {"statements": [{**_STATEMENT, "verdict": 1}]},
    "ContextRecallOutput": {"classifications": [{**_STATEMENT, "attributed": 1}]},
    "ContextPrecisionOutput": {"reason": "It says so.", "verdict": 1},
    "ContextRelevanceOutput": {"rating": 2},
}


def _reply(messages: list[BaseMessage]) -> str:
    """The reply to the task of a prompt, which is Ragas's or ours."""
    named = re.search(
        r"<task>(\w+)</task>|\"title\": \"(\w+)\", \"type\": \"object\"}Do not use single",
        str(messages[0].content),
    )
    return json.dumps(_REPLIES[named[1] or named[2] if named else ""])


def _rows(count: int) -> list[Example]:
    """Questions with a reference each."""
    return [
        Example(f"q{number}", f"How long is river number {number}?", reference="The Rhine is long.")
        for number in range(count)
    ]


def _pipeline(question: str) -> Output:
    """Answers at once, with passages of a usual length."""
    text = " ".join(f"Sentence {number} tells of a river and of its length." for number in range(12))
    passages = tuple(Passage(f"d{number}", f"{question} {text}") for number in range(PASSAGES))
    return Output(answer="The Rhine is long.", passages=passages)


async def _run(count: int, delay: float) -> Any:
    asked = 0

    def reply(messages: list[BaseMessage]) -> str:
        nonlocal asked
        asked += 1
        return _reply(messages)

    judge = Judge(Model(reply=reply, delay=delay), "none", max_concurrency=AT_ONCE)
    results = await aevaluate(
        _pipeline, _rows(count), METRICS, judge=judge, max_concurrency=AT_ONCE, progress=False
    )
    bad = [cell.reason for row in results.rows for cell in row.cells.values() if cell.status != "ok"]
    if bad or asked != count * CALLS:
        raise SystemExit(f"{len(bad)} cells failed, {asked} calls for {count} rows: {bad[:1]}")
    return results


def _beyond_results(count: int) -> int:
    """Bytes held at the peak of a run beyond what its results hold when it is done."""
    tracemalloc.start()
    try:
        results = asyncio.run(_run(count, 0.0))
        held, peak = tracemalloc.get_traced_memory()
        assert len(results.rows) == count
        return peak - held
    finally:
        tracemalloc.stop()


def run(quick: bool = False) -> list[Row]:
    """The rows of ``make bench``."""
    few, many = (100, 200) if quick else (200, 1000)  # up to 64 rows are under way at a time
    asyncio.run(_run(4, 0.0))  # imports, prompts, dictionaries
    ideal = many * CALLS * MODEL / AT_ONCE
    taken = unshared_seconds(lambda: _run(many, MODEL))
    small, large = _beyond_results(few), _beyond_results(many)
    return [
        at_most(
            f"{many} rows x {len(METRICS)} metrics, judge of 200 ms, {AT_ONCE} at once / ideal",
            taken / ideal,
            1.1,
            f"{many * CALLS} calls, ideal {ideal:.1f} s",
        ),
        at_most(
            f"memory beyond the results at the peak: {many} rows / {few} rows",
            large / small,
            1.25,
            f"{small / 1e6:.1f} and {large / 1e6:.1f} MB",
        ),
    ]
