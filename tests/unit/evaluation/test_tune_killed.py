"""A search that is killed goes on from its folder."""

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
from support.tuning import SPACE, Told, make, questions

from rag_kit.evaluation import tune
from rag_kit.evaluation.tuning.result import TuningResult

TESTS = Path(__file__).resolve().parents[2]
TRIALS = 5


def _start(out: Path, asked: Path, sleep: float) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-m", "support.tuning", str(out), str(asked), str(TRIALS)],
        env={**os.environ, "PYTHONPATH": str(TESTS), "TUNE_SLEEP": str(sleep)},
        stderr=subprocess.PIPE,
        text=True,
    )


def _finish(process: subprocess.Popen) -> None:
    _, error = process.communicate(timeout=240)
    assert process.returncode == 0, error


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_killed_search_goes_on_and_asks_nothing_twice(tmp_path):
    """kill -9 at any moment: the trials are those of a search that nobody killed, and scores are kept."""
    whole = tune(
        make, questions(), Told(), space=SPACE, out=tmp_path / "whole", n_trials=TRIALS, progress=False
    )
    out, asked = tmp_path / "killed", tmp_path / "killed.txt"
    draw, kills = random.Random(1), 0
    log = out / "study.log"
    for _ in range(3):
        size = log.stat().st_size if log.exists() else 0
        process = _start(out, asked, 0.01)
        deadline = time.monotonic() + 120
        while process.poll() is None and time.monotonic() < deadline:
            if log.exists() and log.stat().st_size > size:  # it has come on: kill it soon
                time.sleep(draw.uniform(0, 0.3))
                break
            time.sleep(0.005)
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            kills += 1
        process.communicate(timeout=60)
        if process.returncode == 0:
            break
    assert kills >= 2
    _finish(_start(out, asked, 0.0))
    result = TuningResult.load(out)
    assert [(t.settings, t.state, t.scores) for t in result.trials] == [
        (t.settings, t.state, t.scores) for t in whole.trials
    ]
    assert result.verdict == whole.verdict and result.stopped == whole.stopped
    lines = [json.loads(line) for line in asked.read_text().splitlines() if line.endswith("]")]
    times = Counter((json.dumps(settings), question) for settings, question in lines)
    # what a kill finds unwritten is asked again: at most a batch of 4 x 2 questions for each kill
    assert sum(count - 1 for count in times.values()) <= 8 * kills
