"""A pipeline whose score follows from its setting, a metric that reads it, and a program that searches for it."""

from __future__ import annotations

import json
import os
import random
import sys
import time
from pathlib import Path

from rag_kit.evaluation import Example, tune
from rag_kit.evaluation.cells import Cell
from rag_kit.evaluation.metric import Metric

SPACE = {
    "kind": ["plain", "good", "bad"],
    "x": {"float": [0, 1], "default": 0.1},
    "n": {"int": [1, 50], "default": 1},
}


class Told(Metric):
    """The number that the pipeline answers."""

    name, source, stage = "ours_told", "ours", "end_to_end"

    async def score(self, example, output, judge):
        if output.answer == "none":
            return Cell.undefined("no number was told")
        return Cell.ok(float(output.answer))


class Wrong(Told):
    """The same where less is better."""

    name, higher_is_better = "ours_wrong", False


def questions(count: int = 60) -> list[Example]:
    """Questions of two types."""
    return [
        Example(f"q{n:03}", f"Question {n}?", tags={"type": "odd" if n % 2 else "even"}) for n in range(count)
    ]


def value(settings: dict, question: str) -> float:
    """Return the score of a setting on a question: its own quality, and luck that is the question's."""
    base = {"plain": 0.4, "good": 0.55, "bad": 0.1}[settings["kind"]]
    quality = base + 0.2 * settings["x"] + 0.002 * settings.get("n", 0) * (settings["kind"] == "good")
    return min(1.0, max(0.0, quality + random.Random(question).uniform(-0.1, 0.1)))


def make(settings: dict):
    """A pipeline."""
    return lambda question: str(value(settings, question))


def main() -> None:
    """Search in a folder, slowly, and write down everything that is asked."""
    out, asked, trials = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])

    def logged(settings):
        def answer(question):
            with asked.open("a") as file:
                file.write(json.dumps([settings, question]) + "\n")
                file.flush()
                os.fsync(file.fileno())
            time.sleep(float(os.environ.get("TUNE_SLEEP", "0")))
            return str(value(settings, question))

        return answer

    tune(
        logged, questions(), Told(), space=SPACE, out=out, n_trials=trials, max_concurrency=2, progress=False,
    )  # fmt: skip


if __name__ == "__main__":
    main()
