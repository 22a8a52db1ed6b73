"""kill -9 in the middle of a run: a new process goes on, and what was finished is not done again."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from support.graphs import run_driver

#: All work of an ambiguous run; the two branches run side by side, so their order may differ.
WORK = ["retrieve", "grade internal 2", "grade internal 2", "web_query", "web", "grade external 1", "answer"]
POINTS = ["retrieve", "grade internal 2", "web_query", "web", "grade external 1", "answer"]

pytestmark = pytest.mark.slow


def killed_and_resumed(saver: str, where: str, log: Path, point: str) -> None:
    """Kill at a piece of work, go on in a new process: the answer is there, nothing finished ran again."""
    dead = run_driver("crag_killed.py", saver, where, log, "START", point)
    assert dead.returncode == -signal.SIGKILL, dead.stderr
    before = log.read_text().splitlines() if log.exists() else []
    done = run_driver("crag_killed.py", saver, where, log, "GO")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["action"], found["status"]) == ("ambiguous", "grounded")
    work = log.read_text().splitlines()
    # what ran beside the killed node, in the same step, may have been cut off before its result was written
    beside = {"web_query": ["grade internal 2"], "grade internal 2": []}.get(point, [])
    again = list(work)
    for one in WORK:
        again.remove(one)
    assert all(one in beside for one in again), (before, work)
    assert found["usage"]["calls"] == 2
    assert len([note for note in found["notes"] if note.startswith("grade: ")]) == 1


@pytest.mark.parametrize("point", POINTS)
def test_sqlite(point: str, tmp_path: Path) -> None:
    """A thread in a file of SQLite."""
    pytest.importorskip("langgraph.checkpoint.sqlite")
    killed_and_resumed("sqlite", str(tmp_path / "threads.sqlite"), tmp_path / "log", point)


@pytest.mark.parametrize("point", POINTS)
def test_postgres(point: str, database: Callable[[str], str], tmp_path: Path) -> None:
    """A thread in PostgreSQL."""
    name = "crag_" + "".join(c for c in point if c.isalpha())
    killed_and_resumed("postgres", database(name), tmp_path / "log", point)
