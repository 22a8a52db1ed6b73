"""A run that a test kills: every call of the pipeline and of the judge leaves a line in a file of its own."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

from rag_kit.concurrency.budget import charge_call
from rag_kit.evaluation import Example, evaluate
from rag_kit.evaluation.cells import Cell
from rag_kit.evaluation.metric import Metric
from rag_kit.evaluation.outputs import Output

EXAMPLES = 60


def note(path: Path, text: str) -> None:
    """Append a line; one write, so that a kill leaves it whole or not at all."""
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(handle, f"{text}\n".encode())
    os.close(handle)


class Judged(Metric):
    """A metric that takes a while and one call."""

    source = "ours"
    stage = "generation"

    def __init__(self, name: str, log: Path) -> None:
        self.name = name
        self.log = log

    async def score(self, example: Example, output: Output, judge: Any) -> Cell:
        charge_call()
        note(self.log, f"{self.name} {example.id}")
        await asyncio.sleep(0.02)
        return Cell.ok(int(example.id[1:]) / EXAMPLES, "理由", text=output.answer)


def main(folder: Path, log: Path, delay: float = 0.02) -> None:
    """Evaluate into a folder."""

    async def pipeline(question: str) -> str:
        note(log, f"pipeline {question}")
        await asyncio.sleep(delay)
        return f"Answer to {question} 答案" * 20

    examples = [Example(f"q{i}", f"q{i}") for i in range(EXAMPLES)]
    metrics = [Judged("ours_a", log), Judged("ours_b", log)]
    evaluate(pipeline, examples, metrics, out=folder, name="mine", max_concurrency=4, progress=False)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), *map(float, sys.argv[3:]))
