"""The main job opens no socket beyond this machine, in any of its processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

#: Put on the path of every Python process of the run, the reader's worker included; tells what is connected to.
_SPY = """
import os, sys

def _spy(event, arguments):
    if event == "socket.connect":
        address = arguments[1]
    elif event == "socket.getaddrinfo":
        address = arguments[0]
    else:
        return
    with open(os.environ["SPY_LOG"], "a") as log:
        log.write(repr(address) + "\\n")

sys.addaudithook(_spy)
"""

#: A page that would make a careless converter fetch something.
_PAGE = """<html><head><title>Pump</title><link rel="stylesheet" href="http://192.0.2.1/a.css"></head>
<body><h1>Pump</h1><p>The pump starts at 40 degrees.</p><img src="http://192.0.2.1/x.png">
<iframe src="http://192.0.2.1/frame"></iframe><script src="http://192.0.2.1/s.js"></script></body></html>"""


@pytest.fixture
def spied(tmp_path: Path) -> dict[str, str]:
    """An environment in which every Python process writes down what it connects to."""
    (tmp_path / "spy").mkdir()
    (tmp_path / "spy" / "sitecustomize.py").write_text(_SPY)
    return {**os.environ, "PYTHONPATH": str(tmp_path / "spy"), "SPY_LOG": str(tmp_path / "spy.log")}


def connections(tmp_path: Path) -> list[str]:
    log = tmp_path / "spy.log"
    return log.read_text().splitlines() if log.exists() else []


def test_the_spy_sees(tmp_path: Path, spied: dict[str, str]) -> None:
    """A connection is noticed, so that the test below cannot pass by blindness."""
    program = (
        "import socket\ntry:\n    socket.create_connection(('127.0.0.1', 9), 1)\nexcept OSError:\n    pass"
    )
    subprocess.run([sys.executable, "-c", program], env=spied, check=True)
    assert any("127.0.0.1" in line for line in connections(tmp_path))


@pytest.mark.slow
def test_ingest_ask_and_verify_connect_to_nothing(tmp_path: Path, spied: dict[str, str]) -> None:
    """Reading a page full of links, indexing, asking, verifying and doctor: no connection, no name looked up."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "pump.html").write_text(_PAGE)
    (tmp_path / "docs" / "fan.md").write_text("# Fan\n\n![x](http://192.0.2.1/y.png) The fan is loud.\n")
    command = [sys.executable, "-m", "rag_kit.cli"]
    index = ["--index", str(tmp_path / "index")]
    for arguments in (
        ["ingest", str(tmp_path / "docs"), *index, "--quiet"],
        ["ask", "When does the pump start?", *index],
        ["verify", *index],
        ["doctor", *index],
    ):
        done = subprocess.run([*command, *arguments], env=spied, capture_output=True, text=True, timeout=240)
        assert done.returncode == 0, f"{arguments}: {done.stderr}"
    assert connections(tmp_path) == []
