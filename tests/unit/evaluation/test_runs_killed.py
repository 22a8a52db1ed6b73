"""A run that is killed at random moments, and two processes on one folder."""

from __future__ import annotations

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
from support.interrupted import start_interruptible

from rag_kit.evaluation import Results

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
    """What a killed run has kept, in the words of the log of calls."""
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
