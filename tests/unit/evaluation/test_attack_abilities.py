"""RGB's abilities with a reader that cancels, fails at failing, or is cancelled."""

import asyncio

import pytest

from rag_kit.evaluation import Example, aabilities
from rag_kit.evaluation.outputs import Passage
from rag_kit.evaluation.sets import EvaluationSet


class Unspeakable(Exception):
    """An exception that cannot tell what failed."""

    def __str__(self):
        raise RuntimeError("no text")


def own_set():
    """A few questions over a corpus of one's own."""
    corpus = [
        Passage(f"p{n}", f"The lake number {n} is {n + 10} metres deep. It lies in Bavaria.")
        for n in range(12)
    ]
    examples = [
        Example(
            f"q{n}", f"How deep is the lake number {n}?", answers=(f"{n + 10} metres",), relevant={f"p{n}": 1}
        )
        for n in range(6)
    ]
    return EvaluationSet("lakes", examples, corpus=corpus)


@pytest.mark.parametrize("fault", [asyncio.CancelledError, Unspeakable])
async def test_a_readers_own_fault_is_an_error_of_its_question(fault):
    """A cancellation that nobody asked for, or an exception without a text: one question, not the run."""

    async def reader(question, passages):
        if "number 1" in question:
            raise fault
        return "10 metres"

    report = await aabilities(reader, own_set(), abilities=["noise_robustness"], noise_rates=[0.0])
    (score,) = report.scores
    assert (score.errors, score.total) == (1, 6)
    assert fault.__name__ in next(case["error"] for case in report.cases if case["error"])


async def test_a_cancelled_run_goes_on_with_what_is_missing(tmp_path):
    """task.cancel() leaves no task, and nothing that was answered is asked for again."""
    asked, out = [], tmp_path / "replies.jsonl"

    async def reader(question, passages):
        await asyncio.sleep(0.02)
        asked.append(question)
        return "10 metres"

    def begin():
        return aabilities(
            reader,
            own_set(),
            abilities=["noise_robustness"],
            noise_rates=[0.0, 0.4],
            out=out,
            max_concurrency=2,
        )

    for wanted in (0, 2, 5):
        before = asyncio.all_tasks()
        task = asyncio.ensure_future(begin())
        while len(asked) < wanted and not task.done():
            await asyncio.sleep(0.003)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert asyncio.all_tasks() <= before
    report = await begin()
    assert sum(score.total for score in report.scores) == 12
    assert len(asked) <= 12 + 2 * 3
    known = len(asked)
    await begin()
    assert len(asked) == known
