"""The command line as a process: signals, closed and full outputs, other locales, hostile names."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from support.interrupted import start_interruptible
from support.openai_server import OpenAIServer, hang, stall

from rag_kit.cli import exits
from rag_kit.cli.main import main

pytestmark = pytest.mark.slow
KEY = "sk-canary-0123456789abcdef"


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "rag_kit.cli", *map(str, arguments)]


def environment(**changes: str) -> dict[str, str]:
    return {**os.environ, "RAG_KIT_CHAT_MODEL": "extractive", **changes}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_while_the_answer_streams_is_one_line(index: Path, number: signal.Signals) -> None:
    """Text that had arrived stays on the terminal; then one line, exit code 130, no traceback, at once."""
    master, terminal = pty.openpty()
    with OpenAIServer([stall("The pump starts at 40 degrees. [1]")]) as server:
        ask = command("ask", "When does the pump start?", "--index", index, "--model", "openai:m")
        process = start_interruptible(
            [*ask, "--base-url", server.url],
            stdout=terminal,
            stderr=subprocess.PIPE,
            env=environment(OPENAI_API_KEY=KEY),
        )
        try:
            first = os.read(master, 100)  # the first tokens
            assert first
            time.sleep(0.3)
            started = time.monotonic()
            process.send_signal(number)
            _, err = process.communicate(timeout=30)
        finally:
            process.kill()
            os.close(terminal)
    with open(master, "rb", buffering=0) as stream, contextlib.suppress(OSError):  # the other end is closed
        while piece := stream.read(100):
            first += piece
    assert process.returncode == exits.INTERRUPTED
    assert time.monotonic() - started < 10
    said = err.decode()
    assert said.rstrip().endswith("rag-kit: interrupted") and "Traceback" not in said
    assert first.decode().startswith("The pump")
    assert KEY not in said


@pytest.mark.parametrize("form", [["ask", "--json"], ["retrieve"], ["retrieve", "--pipeline", "dense"]])
def test_an_interrupt_while_an_endpoint_says_nothing_is_one_line(tmp_path: Path, form: list[str]) -> None:
    """Waiting for a chat or an embedding endpoint ends at once, too."""
    hung = Event()

    def silent(handler: Any, request: Any) -> None:
        hung.set()
        handler.server.owner.closing.wait(60)

    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "pump.md").write_text("The pump starts at 40 degrees.\n", encoding="utf-8")
    with OpenAIServer([hang()]) as server, pytest.MonkeyPatch.context() as patch:
        keys = {"OPENAI_API_KEY": KEY, "RAG_KIT_BASE_URL": server.url, "RAG_KIT_CHAT_MODEL": "openai:m"}
        for name, value in keys.items():
            patch.setenv(name, value)
        ingest = ["ingest", tmp_path / "docs", "--index", tmp_path / "index", "--embedding-model", "openai:e"]
        assert main([str(argument) for argument in ingest]) == exits.OK
        if form[0] == "ask":
            server.script = [lambda request: (hung.set(), hang())[1]]
        else:
            patch.setattr("support.openai_server._Handler._embed", silent)
        process = start_interruptible(
            command(form[0], "When does the pump start?", "--index", tmp_path / "index", *form[1:]),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(**keys),
        )
        try:
            assert hung.wait(90)
            time.sleep(0.3)
            started = time.monotonic()
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=30)
        finally:
            process.kill()
    assert time.monotonic() - started < 10
    assert process.returncode == exits.INTERRUPTED
    assert err.decode().rstrip().endswith("rag-kit: interrupted") and "Traceback" not in err.decode()


@pytest.mark.parametrize(
    "arguments", [("ask", "When does the pump start?"), ("retrieve", "pump"), ("retrieve", "pump", "--json")]
)
def test_outputs_that_are_closed_or_full(index: Path, arguments: tuple[str, ...]) -> None:
    """A reader that goes away ends the command in silence; a full disk is one line; a closed output is no crash."""
    line = " ".join(f"'{part}'" for part in command(*arguments, "--index", index))
    for redirect, code, says in (
        ("| head -c 1", 0, ""),
        (">&-", 0, ""),
        (">/dev/full", 1, "rag-kit: No space left on device"),
    ):
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", f"{line} {redirect}"],
            capture_output=True,
            text=True,
            env=environment(),
            timeout=120,
        )
        assert done.returncode == code, (redirect, done.stderr)
        lines = [each for each in done.stderr.splitlines() if each.startswith("rag-kit: ")]
        assert "".join(lines) == says, (redirect, done.stderr)
        assert "Traceback" not in done.stderr and "Exception ignored" not in done.stderr


@pytest.mark.parametrize("locale", [{"LC_ALL": "C"}, {"PYTHONIOENCODING": "ascii"}])
def test_chinese_on_a_terminal_that_knows_ascii_only(index: Path, locale: dict[str, str]) -> None:
    """The question is understood, what the terminal cannot show is escaped, and JSON stays JSON."""
    for form in (["--json"], []):
        done = subprocess.run(
            command("ask", "风扇什么时候启动？", "--index", index, *form),
            capture_output=True,
            env=environment(PYTHONCOERCECLOCALE="0", **locale),
            timeout=120,
        )
        assert done.returncode == exits.OK, done.stderr.decode()
        text = done.stdout.decode()
        if form:
            result = json.loads(text)
            assert "六十度" in result["answer"] and "🔥 é" in result["documents"][0]["text"]
        else:
            assert "六十度" in text or r"\u516d\u5341\u5ea6" in text


def test_a_file_name_cannot_write_a_line_of_its_own(tmp_path: Path) -> None:
    """Line breaks in a file's name are blanks, escapes are shown, and the name stands there once."""
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "bad\nrag-kit: all well\x1b[31m.xyz").write_text("x")
    (docs / "a\nb: c.md").write_text("The valve opens at noon.")
    ingest = command("ingest", docs, "--index", tmp_path / "index", "--embedding-model", "none")
    done = subprocess.run(ingest, capture_output=True, text=True, env=environment(), timeout=120)
    assert done.returncode == exits.PARTIAL
    [line] = [each for each in done.stderr.splitlines() if each.startswith("rag-kit: ")]
    assert line.startswith(r"rag-kit: not read: bad rag-kit: all well\x1b[31m.xyz: .xyz is not among")
    ask = command("ask", "When does the valve open?", "--index", tmp_path / "index")
    done = subprocess.run(ask, capture_output=True, text=True, env=environment(), timeout=120)
    assert "[1] a b: c.md" in done.stdout
