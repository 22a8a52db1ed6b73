"""The command line on a real pseudo-terminal of 80 columns: colour, width, the status line, sessions."""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from support.command_line import ingest_pages
from support.openai_server import OpenAIServer, error, stall
from support.terminal import Terminal

from rag_kit.cli import exits
from rag_kit.cli.ask import finish_or_cancel
from rag_kit.cli.main import main

ENGLISH = (
    "The pump of the second circuit starts at 40 degrees, provided that neither the temperature sensor nor the "
    "pressure sensor reports an implausible value during the preliminary self-test."
)
CHINESE = (
    "二号回路的水泵在温度达到四十度时启动，前提是温度传感器和压力传感器在预先自检（约十秒）期间都没有报告异常的数值，"
    "并且控制柜的门已经关好。"
)


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A keyword index of two files with long sentences."""
    pages = {"pump.md": f"# Pump\n\n## Start\n\n{ENGLISH}\n", "水泵.md": f"# 水泵\n\n## 启动\n\n{CHINESE}\n"}
    return ingest_pages(tmp_path_factory.mktemp("terminal"), pages)


def terminal(*arguments: object, **environment: str) -> Terminal:
    names = {"RAG_KIT_CHAT_MODEL": "extractive", **environment}
    return Terminal(["-m", "rag_kit.cli", *map(str, arguments)], names)


@pytest.mark.parametrize(
    ("question", "sentence"),
    [
        pytest.param("When does the pump start?", ENGLISH, marks=pytest.mark.slow),
        ("水泵什么时候启动？", CHINESE),
    ],
)
def test_an_answer_is_coloured_and_explained(index: Path, question: str, sentence: str) -> None:
    """The passages come after the answer; it and its quotes stay whole for the terminal to wrap."""
    screen = terminal("ask", question, "--index", index, "--explain")
    assert screen.finish() == exits.OK, screen.text
    lines = screen.lines()
    assert sum(sentence in line for line in lines) >= 2  # answered and quoted
    assert "bm25 · rank 1" in screen.text
    assert "\x1b[" in screen.text
    # the status line came first, the hint about the model last
    assert screen.text.startswith("loading ...")
    assert lines[-2].startswith("extractive") and screen.text.count("(embedded; no language model") == 1


MORE_PLAIN: list[Any] = [("--json", {}), ("-k2", {"NO_COLOR": "1"})]


@pytest.mark.parametrize(
    ("flag", "variable"),
    [("--no-color", {}), *(pytest.param(*row, marks=pytest.mark.slow) for row in MORE_PLAIN)],
)
def test_plain_text_where_it_is_asked_for(index: Path, flag: str, variable: dict[str, str]) -> None:
    """Without colour there is no escape code, and a sentence stays on its line."""
    screen = terminal("ask", "When does the pump start?", "--index", index, flag, **variable)
    assert screen.finish() == exits.OK, screen.text
    assert "\x1b" not in screen.text
    assert any(ENGLISH in line for line in screen.lines())


def test_a_session_understands_follow_ups_and_survives_what_goes_wrong(index: Path) -> None:
    """One loop and one model for all turns, no thoughts; Ctrl-C and an error end an answer, Ctrl-D the session."""

    def reply(request: Any) -> Any:
        if "broke" in request.prompt:
            return {"query": "Which pump broke?"} if "condense" in request.prompt else error(401)
        if "condense" in request.prompt:
            noise = "What noise does the pump make?"
            return {"query": noise if "noise" in request.prompt else "When does circuit two's pump start?"}
        if "noise" in request.prompt:
            return stall("Half of an answer that never ends. [1]")
        return f"<think>Two pumps, hm.</think>{ENGLISH} [1]"

    with OpenAIServer([reply]) as server:
        keys = {"OPENAI_API_KEY": "sk-test", "RAG_KIT_BASE_URL": server.url, "RAG_KIT_CHAT_MODEL": "openai:m"}
        screen = terminal("ask", "--index", index, **keys)
        screen.expect("\r\n> ")
        screen.send("When does the pump start?\r")
        screen.expect("\r\n> ", times=2)
        screen.send("And of the second circuit?\r")
        screen.expect("\r\n> ", times=3)
        screen.send("What noise does the pump make?\r")
        screen.expect("Half of")
        time.sleep(0.3)
        screen.send("\x03")
        screen.expect("stopped")
        screen.send("Which sensor of the pump broke?\r")
        screen.expect("refused the key")
        screen.send("/sources\r/nothing\r")
        screen.expect("/quit     end; so does Ctrl-D\r\n\r\n> ")
        screen.send("\x04")
        assert screen.finish() == exits.OK
        prompts = [chat.prompt for chat in server.chats]
    assert "And of the second circuit?" in prompts[1] and "When does the pump start?" in prompts[1]
    assert "When does circuit two's pump start?" in prompts[2]
    said = "\n".join(screen.lines())
    assert said.count("\nSources") == 2 and said.count("keyword search only") == 1
    assert "[1] pump.md · Pump > Start" in said.partition("/sources")[2]
    assert "/nothing is unknown" in said and "Traceback" not in said and "Two pumps" not in screen.text


def test_a_session_of_the_adaptive_graph_takes_the_reply_to_a_question_back(index: Path) -> None:
    """A question of the graph is printed, and the next line is the reply to it."""
    screen = terminal("ask", "--index", index, "--graph", "adaptive")
    screen.expect("\r\n> ")
    screen.send("When does it start?\r")
    screen.expect("\r\n> ", times=2)
    screen.send("the pump of the second circuit\r")
    screen.expect("\r\n> ", times=3)
    screen.send("\x04")
    assert screen.finish() == exits.OK
    assert "40 degrees" in screen.text


@pytest.mark.parametrize(
    ("question", "said", "rows"),
    [("Hello, who are you?", "I am a program.", ""), ("你好，你是谁？", "我是一个程序。" * 7, "\x1b[1A")],
)
def test_an_answer_that_was_changed_at_the_end_stands_alone(
    index: Path, capsys: pytest.CaptureFixture[str], question: str, said: str, rows: str
) -> None:
    """A citation without a source goes: what was streamed is erased on a terminal, and never written to a pipe."""

    def reply(request: Any) -> Any:
        classification = {"intent": "chat", "complexity": "none", "reason": "talk"}
        return classification if "classify_question" in request.prompt else f"{said} [1]"

    with OpenAIServer([reply]) as server, pytest.MonkeyPatch.context() as patch:
        keys = {"OPENAI_API_KEY": "sk-test", "RAG_KIT_BASE_URL": server.url, "RAG_KIT_CHAT_MODEL": "openai:m"}
        ask = ["ask", question, "--index", str(index), "--graph", "adaptive"]
        screen = terminal(*ask, **keys)
        assert screen.finish() == exits.OK, screen.text
        for name, value in keys.items():
            patch.setenv(name, value)
        capsys.readouterr()
        assert main(ask) == exits.OK
    assert capsys.readouterr().out == f"{said}\n"
    streamed, code, settled = screen.text.partition(f"{rows}\r\x1b[J")
    assert code and f"{said} [1]" in streamed and settled.startswith(f"{said}\r\n"), screen.text
    assert said not in settled[len(said) :]


def test_a_cancellation_that_gets_lost_is_repeated() -> None:
    """A run that swallows its first cancellation, as Python 3.11's wait_for may, is ended by the same Ctrl-C."""

    async def deaf() -> dict[str, Any]:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(60)
        await asyncio.sleep(60)
        return {}

    async def interrupted() -> None:
        run = asyncio.ensure_future(finish_or_cancel(deaf()))
        await asyncio.sleep(0)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(run, 20)

    asyncio.run(interrupted())


@pytest.mark.parametrize("form", ["text", pytest.param("json", marks=pytest.mark.slow)])
def test_questions_from_a_pipe_are_answered_one_by_one(index: Path, form: str) -> None:
    """Each line is a question by itself; with --json each answer is a line; an empty pipe says what to do."""
    ask = [sys.executable, "-X", "utf8", "-m", "rag_kit.cli", "ask", "--index", str(index)]
    asked = "When does the pump start?\n\n水泵什么时候启动？\n"
    json_too = ["--json"] if form == "json" else []
    done = subprocess.run([*ask, *json_too], input=asked, capture_output=True, encoding="utf-8", timeout=120)
    assert done.returncode == exits.OK, done.stderr
    if form == "json":
        first, second = map(json.loads, done.stdout.splitlines())
        assert "40 degrees" in first["answer"] and "四十度" in second["answer"]
    else:
        assert (
            f"> 水泵什么时候启动？\n### 启动\n{CHINESE}" in done.stdout
            and done.stderr.count("(embedded; no language model") == 1
        )
        empty = subprocess.run(ask, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
        assert empty.returncode == exits.USAGE and "standard input is empty" in empty.stderr
