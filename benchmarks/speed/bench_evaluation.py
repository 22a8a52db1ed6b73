"""Evaluation: a run must take what its judge takes, and no more memory for more rows.

A judge of 200 ms is asked by five metrics, Ragas's and ours, ten times a row, at most 32 at a time. The ideal is
calls * 200 ms / 32. The time is what the run takes on a machine with nothing else to do (waits and processor time of
its thread), so that other work does not count. The last row is by the clock on the wall, results written to a folder;
where other work keeps the machine busy it says nothing about the run, and counts for nothing.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import tempfile
import time
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

os.environ.setdefault("RAGAS_DO_NOT_TRACK", "true")

from harness import Row, at_most, unshared_seconds
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from rag_kit.evaluation import Example, Judge, aevaluate
from rag_kit.evaluation.outputs import Output, Passage

SECONDS = 0.2
AT_ONCE = 32
PASSAGES = 3
METRICS = (
    "faithfulness", "context_recall", "context_precision", "context_relevance",
    "context_precision_without_reference",
)  # fmt: skip
CALLS = 2 + 1 + PASSAGES + 2 + PASSAGES
"""Calls a row, if everything is asked once."""

_BUSY = 0.75
"""Running processes a core (this one among them) from which on the wall clock is not judged."""

_STATEMENT = {"statement": "The Rhine is long.", "reason": "It says so."}
_REPLIES: dict[str, dict[str, Any]] = {
    "StatementGeneratorOutput": {"statements": [_STATEMENT["statement"]]},
    "NLIStatementOutput": {"statements": [{**_STATEMENT, "verdict": 1}]},
    "ContextRecallOutput": {"classifications": [{**_STATEMENT, "attributed": 1}]},
    "ContextPrecisionOutput": {"reason": "It says so.", "verdict": 1},
    "ContextRelevanceOutput": {"rating": 2},
}


class Slow(BaseChatModel):
    """A judge that takes its time and answers each task with the same words."""

    seconds: float = SECONDS
    calls: int = 0

    @property
    def _llm_type(self) -> str:
        return "slow"

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        raise NotImplementedError

    async def _agenerate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        self.calls += 1
        await asyncio.sleep(self.seconds)
        text = str(messages[0].content)
        named = re.search(
            r"<task>(\w+)</task>|\"title\": \"(\w+)\", \"type\": \"object\"}Do not use single", text
        )
        task = "" if named is None else named[1] or named[2]
        usage = {"input_tokens": 400, "output_tokens": 20, "total_tokens": 420}
        message = AIMessage(json.dumps(_REPLIES[task]), usage_metadata=usage)
        return ChatResult(generations=[ChatGeneration(message=message)])


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


async def _run(count: int, model: Slow, out: Path | None = None) -> Any:
    judge = Judge(model, "none", max_concurrency=AT_ONCE)
    results = await aevaluate(
        _pipeline, _rows(count), METRICS, judge=judge, out=out, max_concurrency=AT_ONCE, progress=False
    )
    bad = [cell.reason for row in results.rows for cell in row.cells.values() if cell.status != "ok"]
    if bad or model.calls != count * CALLS:
        raise SystemExit(f"{len(bad)} cells failed, {model.calls} calls for {count} rows: {bad[:1]}")
    return results


def _beyond_results(count: int) -> int:
    """Bytes held at the peak of a run beyond what its results hold when it is done."""
    tracemalloc.start()
    try:
        results = asyncio.run(_run(count, Slow(seconds=0.0)))
        held, peak = tracemalloc.get_traced_memory()
        assert len(results.rows) == count
        return peak - held
    finally:
        tracemalloc.stop()


def _resident() -> int:
    """Bytes of this process in memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def run(quick: bool = False) -> list[Row]:
    """The rows of ``make bench``."""
    few, many = (100, 200) if quick else (200, 1000)  # up to 64 rows are under way at a time
    asyncio.run(_run(4, Slow(seconds=0.0)))  # imports, prompts, dictionaries
    ideal = many * CALLS * SECONDS / AT_ONCE
    rows = [
        at_most(
            f"{many} rows x {len(METRICS)} metrics, judge of 200 ms, {AT_ONCE} at once / ideal",
            unshared_seconds(lambda: _run(many, Slow())) / ideal,
            1.1,
            f"{many * CALLS} calls, ideal {ideal:.1f} s",
        )
    ]
    small, large = _beyond_results(few), _beyond_results(many)
    rows.append(
        at_most(
            f"memory beyond the results at the peak: {many} rows / {few} rows",
            large / small,
            1.25,
            f"{small / 1e6:.1f} and {large / 1e6:.1f} MB",
        )
    )
    asyncio.run(_run(few, Slow(seconds=0.0)))
    before = _resident()
    with tempfile.TemporaryDirectory() as folder:
        begun = time.perf_counter()
        asyncio.run(_run(many, Slow(), Path(folder) / "run"))
        seconds = time.perf_counter() - begun
    rows.append(
        at_most(
            f"resident memory: after {many} more rows / after {few} rows",
            _resident() / before,
            1.1,
            f"{before / 1e6:.0f} MB",
        )
    )
    load = os.getloadavg()[0] / (os.cpu_count() or 1)
    wall = at_most(
        "the same by the clock on the wall, written to a folder / ideal",
        seconds / ideal,
        1.1,
        f"{load:.1f} running processes a core",
    )
    rows.append(replace(wall, ok=True, target="(busy)") if load > _BUSY else wall)
    return rows
