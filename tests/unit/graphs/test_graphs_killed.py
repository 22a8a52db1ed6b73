"""kill -9 in the middle of any graph: a new process goes on, and no finished node is run again."""

from __future__ import annotations

import json
import signal
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from support.graphs import run_driver

GRAPHS = ["plain", "conversational", "paper", "reflect", "adaptive"]

pytestmark = pytest.mark.slow


@cache
def undisturbed(graph: str) -> tuple[dict[str, Any], list[str]]:
    """Return the state of a run that nobody kills, and its actions."""
    pytest.importorskip("langgraph.checkpoint.sqlite")
    with TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        done = run_driver(
            "graph_killed.py", graph, "sqlite", str(Path(folder) / "threads.sqlite"), log, "START"
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout), log.read_text().splitlines()


def killed_and_resumed(graph: str, saver: str, where: str, log: Path, share: float) -> None:
    """Kill at a piece of work, go on in a new process: the same result, nothing finished ran again."""
    found, lines = undisturbed(graph)
    pieces = Counter(line for line in lines if line.startswith("work "))
    point = max(1, round(share * pieces.total()))
    dead = run_driver("graph_killed.py", graph, saver, where, log, "START", point)
    assert dead.returncode == -signal.SIGKILL, dead.stderr
    before = log.read_text().splitlines()
    assert before  # the first turns are behind it, and it died in the one that counts
    done = run_driver("graph_killed.py", graph, saver, where, log, "GO")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == found
    after = log.read_text().splitlines()
    assert [line for line in after if line.startswith("node ")] == [
        line for line in lines if line.startswith("node ")
    ]
    last = max((place for place, line in enumerate(before) if line.startswith("node ")), default=-1)
    cut_off = Counter(before[last + 1 :])
    assert Counter(line for line in after if line.startswith("work ")) == pieces + cut_off


@pytest.mark.parametrize("share", [0.5, 1.0])
@pytest.mark.parametrize("graph", GRAPHS)
def test_sqlite(graph: str, share: float, tmp_path: Path) -> None:
    """A thread in a file of SQLite, killed in the middle and at the last piece of work."""
    killed_and_resumed(graph, "sqlite", str(tmp_path / "threads.sqlite"), tmp_path / "log", share)


@pytest.mark.parametrize("graph", GRAPHS)
def test_postgres(graph: str, database: Callable[[str], str], tmp_path: Path) -> None:
    """A thread in PostgreSQL."""
    killed_and_resumed(graph, "postgres", database(f"killed_{graph}"), tmp_path / "log", 0.7)


#: All work of an ambiguous run; the two branches run side by side, so their order may differ.
WORK = ["retrieve", "grade internal 2", "grade internal 2", "web_query", "web", "grade external 1", "answer"]
POINTS = ["retrieve", "grade internal 2", "web_query", "web", "grade external 1", "answer"]


def crag_killed_and_resumed(saver: str, where: str, log: Path, point: str) -> None:
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
def test_crag_sqlite(point: str, tmp_path: Path) -> None:
    """Corrective RAG, whose branches run side by side, with a thread in a file of SQLite."""
    pytest.importorskip("langgraph.checkpoint.sqlite")
    crag_killed_and_resumed("sqlite", str(tmp_path / "threads.sqlite"), tmp_path / "log", point)


@pytest.mark.parametrize("point", POINTS)
def test_crag_postgres(point: str, database: Callable[[str], str], tmp_path: Path) -> None:
    """Corrective RAG with a thread in PostgreSQL."""
    name = "crag_" + "".join(c for c in point if c.isalpha())
    crag_killed_and_resumed("postgres", database(name), tmp_path / "log", point)
