"""A run: cancelled, killed or ended from within, two on one folder, ids and texts of any kind."""

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from support.cancelling import cancel_at
from support.interrupted import start_interruptible
from support.tuning import Told

from rag_kit.evaluation import Example, Results, aevaluate, evaluate


def questions(count=12):
    """Some examples."""
    return [Example(f"q{number}", f"Question {number}?") for number in range(count)]


async def test_a_cancelled_run_lets_go_and_does_what_is_missing(tmp_path):
    """task.cancel() at several moments: no task is left, and no answer that was kept is asked for again."""
    asked = []

    async def pipeline(question):
        await asyncio.sleep(0.02)
        asked.append(question)
        return "0.5"

    def begin():
        return aevaluate(pipeline, questions(), [Told()], out=tmp_path, progress=False, max_concurrency=2)

    await cancel_at((-1, 0, 2, 5, 8), asked, begin, 0.03)
    stopped = Results.load(tmp_path)
    assert stopped.manifest["status"] == "interrupted" and 0 < len(stopped) < 12
    results = await begin()
    assert results.summary()["ours_told"].n == 12
    assert len(asked) <= 12 + 2 * 5, "at most what was under way is asked again"
    known = len(asked)
    await begin()
    assert len(asked) == known


async def test_a_run_killed_at_its_first_file_is_begun_anew(tmp_path):
    """A draft of the manifest is left, and the folder is not taken for another's."""
    (tmp_path / ".manifest.json.fec9e8745fa7.tmp").write_text('{"half":')

    async def pipeline(question):
        return "0.5"

    results = await aevaluate(pipeline, questions(), [Told()], out=tmp_path, progress=False)
    assert results.summary()["ours_told"].n == 12


@pytest.mark.parametrize("fatal", [SystemExit(3), KeyboardInterrupt(), GeneratorExit()])
@pytest.mark.parametrize("native", [False, True])
def test_what_ends_a_program_leaves_a_folder_to_go_on_with(fatal, native, tmp_path):
    """Earlier answers are kept, and the folder is free in the same process."""
    count = iter(range(1000))

    def pipeline(question):
        if next(count) == 8:
            raise fatal
        return "0.5"

    async def same(question):
        return pipeline(question)

    def run():
        asked = same if native else pipeline
        return evaluate(
            asked, questions(), [Told()], out=tmp_path, progress=False, max_concurrency=2, version="1"
        )

    with pytest.raises(type(fatal)):
        run()
    assert run().summary()["ours_told"].n == 12
    assert next(count) <= 12 + 4, "the one that failed, and what the other worker did meanwhile"


@pytest.mark.parametrize("where", ["pipeline", "metric"])
def test_a_cancellation_that_nobody_asked_for_is_an_error_of_its_cell(where):
    """A CancelledError of a pipeline's or a metric's own making ends neither the run nor its neighbours."""

    class Cancels(Told):
        async def score(self, example, output, judge):
            if where == "metric" and example.id == "q1":
                raise asyncio.CancelledError
            return await super().score(example, output, judge)

    def pipeline(question):
        if where == "pipeline" and "1" in question:
            raise asyncio.CancelledError
        return "0.5"

    results = evaluate(pipeline, questions(4), [Cancels()], progress=False)
    summary = results.summary()["ours_told"]
    assert (summary.n, summary.errors) == (3, 1)
    assert "CancelledError" in results.rows[1].cells["ours_told"].reason


async def test_a_cancel_during_a_metric_is_a_cancel():
    """The caller's own cancellation is never taken for an error of the metric."""
    begun = asyncio.Event()

    class Waits(Told):
        async def score(self, example, output, judge):
            begun.set()
            await asyncio.sleep(60)

    task = asyncio.ensure_future(aevaluate(lambda question: "0.5", questions(2), [Waits()], progress=False))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("kind", ["async generator", "generator", "iterator"])
def test_what_is_read_once_is_no_answer(kind):
    """A pipeline that gives a stream gets an error that names it; nothing is half read."""

    async def stream(question):
        yield "0.5"

    def pieces(question):
        yield "0.5"

    once = iter(["0.5"])
    given = {"async generator": stream, "generator": pieces, "iterator": lambda question: once}[kind]
    results = evaluate(given, questions(2), [Told()], progress=False)
    assert all(kind.split()[-1] in (row.output.error or "") for row in results.rows)
    assert list(once) == ["0.5"]


IDS = [
    "../../x",
    "a/b",
    "caf\u00e9",
    "cafe\u0301",
    "\x1b[31mred",
    "\u202eid",
    "x" * 1_000_000,
    "nul\0id",
    "line\nid",
]


def test_hostile_ids_stay_ids(tmp_path):
    """Nothing is written beside the folder, ids that only look alike are two, and no terminal gets their codes."""
    examples = [Example(name, f"Question {place}?") for place, name in enumerate(IDS)]
    folder = tmp_path / "inner" / "folder"
    results = evaluate(lambda question: "0.5", examples, [Told()], out=folder, progress=False)
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == [
        ".lock",
        "manifest.json",
        "rows.jsonl",
    ]
    loaded = Results.load(folder)
    assert [row.example.id for row in loaded.rows] == IDS
    for shown in (str(results), loaded._repr_html_()):
        assert "\x1b" not in shown and "\u202e" not in shown


@pytest.mark.parametrize("text", ["\ud800", "a\ud83d", "x" * 1_000_000, "\0", "\x1b]0;evil\x07", "\u202e"])
def test_hostile_texts_come_back_as_they_were(text, tmp_path):
    """Questions and answers of any kind are kept, read again, and shown without doing anything."""
    examples = [Example("a", text), Example("b", "Plain?")]
    evaluate(lambda question: text, examples, [Told()], out=tmp_path, progress=False)
    loaded = Results.load(tmp_path)
    assert loaded.rows[0].example.question == text and loaded.rows[0].output.answer == text
    shown = str(loaded) + loaded._repr_html_()
    shown.encode()
    assert not {"\x1b", "\u202e", "\0"} & set(shown)


DRIVER = Path(__file__).parents[2] / "support" / "evaluation_killed.py"


EXAMPLES = 60


def start(folder: Path, log: Path, delay: float = 0.02) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(DRIVER.parents[2])}
    return start_interruptible(
        [sys.executable, str(DRIVER), str(folder), str(log), str(delay)],
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
    )


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def wait_for_lines(process: subprocess.Popen[str], log: Path, count: int) -> None:
    until = time.monotonic() + 120
    while process.poll() is None and len(lines(log)) < count and time.monotonic() < until:
        time.sleep(0.002)


def kept(folder: Path) -> set[str]:
    """Return the calls that a killed run has kept, in the words of the log."""
    Results.load(folder) if (folder / "manifest.json").exists() else None  # it can always be read
    whole = [line for line in lines(folder / "log.jsonl") if line.endswith("}")]
    return {"{part} {id}".format(**json.loads(line)) for line in whole}


@pytest.mark.slow
def test_killed_at_random_moments_it_computes_nothing_twice(tmp_path: Path) -> None:
    """Nothing that is in the folder at a kill -9 is computed again, whether output or cell; in the end all is there."""
    log, folder = tmp_path / "log", tmp_path / "r"
    draw = random.Random(7)
    counts: dict[str, int] = {}
    kills = 0
    while kills < 25:
        process = start(folder, log)
        wait_for_lines(process, log, len(lines(log)) + draw.randint(1, 4))
        time.sleep(draw.random() * 0.02)
        process.kill()
        if process.wait() == 0:
            break
        kills += 1
        asked = Counter(lines(log))
        assert {what: asked[what] for what in counts} == counts
        counts = {what: asked[what] for what in kept(folder)}
    assert kills >= 20
    assert start(folder, log).wait(120) == 0
    results = Results.load(folder)
    assert results.complete and [row.example.id for row in results] == [f"q{i}" for i in range(EXAMPLES)]
    assert all(row.cells["ours_b"].value == i / EXAMPLES for i, row in enumerate(results))
    asked = Counter(lines(log))
    assert len(asked) == EXAMPLES * 3 and {what: asked[what] for what in counts} == counts
    assert start(folder, log).wait(120) == 0
    assert Counter(lines(log)) == asked


@pytest.mark.slow
def test_two_processes_on_one_folder(tmp_path: Path) -> None:
    """The second is refused with a clear message; when the first is killed the folder is free again."""
    log, folder = tmp_path / "log", tmp_path / "r"
    first = start(folder, log, 2.0)
    wait_for_lines(first, log, 5)
    second = start(folder, tmp_path / "second")
    _, told = second.communicate(timeout=120)
    assert first.poll() is None, "the first run ended before the second began"
    assert second.returncode != 0
    assert "another run is writing" in told
    assert lines(tmp_path / "second") == []
    first.kill()
    first.wait()
    third = start(folder, log)
    assert third.wait(120) == 0
    assert len(Results.load(folder)) == EXAMPLES


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGINT") or os.name == "nt", reason="POSIX signals")
def test_ctrl_c_ends_cleanly(tmp_path: Path) -> None:
    """SIGINT: the rows that are done are saved, the manifest says so, the folder is free."""
    log, folder = tmp_path / "log", tmp_path / "r"
    process = start(folder, log)
    wait_for_lines(process, log, 40)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=60)
    assert "KeyboardInterrupt" in told
    results = Results.load(folder)
    assert results.manifest["status"] == "interrupted"
    assert 0 < len(results) < EXAMPLES
    assert not results.complete
