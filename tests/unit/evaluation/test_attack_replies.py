"""Endless and broken replies of a judge: refused before a parser sees them, over text and tool calls."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from langchain_openai import ChatOpenAI
from support.openai_server import OpenAIServer, text, tool

from rag_kit.errors import ModelOutputError
from rag_kit.evaluation import Judge
from rag_kit.models.reply_size import MAX_CHARS, chars_in

HERE = Path(__file__)
PROMPTS = Path(__file__).resolve().parents[2] / "support" / "prompts"
VALUES = {"question": "Who?", "answer": "She came."}
SIZE = 5_000_000
ENDLESS = {
    "brackets": "[" * SIZE,
    "braces": "{" * SIZE,
    "objects": '{"a":' * (SIZE // 5),
    "extra key": '{"statements": ["a"], "more": "' + "y" * SIZE + '"}',
    "one string": '{"statements": ["' + "y" * SIZE + '"]}',
    "no end": '{"statements": ["' + "y" * SIZE,
    "surrogates": '{"statements": ["' + "\\ud800" * (SIZE // 4) + '"]}',
}


def judge_of(server: OpenAIServer) -> Judge:
    """A judge with a real client on that server."""
    model = ChatOpenAI(model="test", base_url=server.url, api_key="sk-test", max_retries=0)
    return Judge(model, "none", max_retries=0, prompts=PROMPTS)


async def ask(reply: Any, refuse: set[str]) -> tuple[Any, int]:
    """What comes of asking, and how many requests it took."""
    with OpenAIServer([reply], refuse=refuse) as server:
        try:
            found = await judge_of(server).ask("judge_statements", VALUES)
        except ModelOutputError as error:
            found = error
        return found, len([each for each in server.chats if each.asks not in refuse])


def in_a_process(code: str) -> str:
    """Run code beside this file, with a bound that only what grows with the square of 5 MB can break."""
    path = f"import sys; sys.path[:0] = {[str(HERE.parent), str(HERE.parents[2])]!r}\n"
    done = subprocess.run(
        [sys.executable, "-c", path + code], capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_endless_replies_are_refused_at_once() -> None:
    """5 MB of any kind end with one request and an error that names size and limit, on both paths."""
    out = in_a_process(
        "import asyncio\n"
        "from test_attack_replies import ENDLESS, ask, text, tool\n"
        "for name, reply in ENDLESS.items():\n"
        "    for make, refuse in ((text, set()), (tool, {'json_schema'})):\n"
        "        found, requests = asyncio.run(ask(make(reply), refuse))\n"
        "        print(make.__name__, name, type(found).__name__, requests, str(found)[:90], sep='|')\n"
    )
    lines = [line.split("|") for line in out.splitlines()]
    assert len(lines) == 2 * len(ENDLESS)
    for path, name, kind, requests, message in lines:
        assert (kind, requests) == ("ModelOutputError", "1"), (path, name, kind)
        assert "at most 1,000,000 are read" in message
        assert "answer has " in message and ",000" in message


@pytest.mark.parametrize("path", ["json_schema", "json_object"])
async def test_langchains_parser_sees_no_reply(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its time grows with the square of a broken answer; the kit reads the message itself."""
    from langchain_core.output_parsers import JsonOutputParser, PydanticOutputParser

    seen: list[Any] = []
    for parser in (JsonOutputParser, PydanticOutputParser):
        monkeypatch.setattr(parser, "parse_result", lambda self, result, **more: seen.append(result))
    refuse = set() if path == "json_schema" else {"json_schema", "tools"}
    found, _ = await ask(text('{"statements": ["She came."]}'), refuse)
    assert found.statements == ["She came."] if hasattr(found, "statements") else found["statements"]
    broken, requests = await ask(text("{" * 1_000), refuse)
    assert isinstance(broken, ModelOutputError) and requests == 3
    assert seen == []


def test_a_fence_that_is_never_closed_is_read_once() -> None:
    """100,000 characters behind an open fence are no work that grows with their square, or their cube."""
    out = in_a_process(
        "from rag_kit.models.parsing import parse_text, UnreadableError\n"
        "from rag_kit.models.schema import Target\n"
        "from rag_kit.prompts.schemas import Queries\n"
        "for body in ('a' * 100_000, ' ' * 100_000 + 'x', '\\t' * 50_000 + 'b' * 40_000 + ' ' * 9_000 + 'x'):\n"
        "    try:\n"
        "        parse_text('```' + body, Target(Queries))\n"
        "    except UnreadableError:\n"
        "        print('refused')\n"
        'print(parse_text(\'```json\\n{"queries": ["cats"]}\\n```\', Target(Queries)).queries)\n'
    )
    assert out.splitlines()[-1] == "['cats']"


@pytest.mark.parametrize("depth", [50, 300, 700, 900, 20_000])
@pytest.mark.parametrize("make", [text, tool])
async def test_deep_nesting_is_an_unreadable_answer(depth: int, make: Any) -> None:
    """However deep, also where a client's own parser gives up: an error of ours, or the value beside it."""
    deep = '{"statements": ["a"], "more": ' + "[" * depth + "]" * depth + "}"
    found, _ = await ask(make(deep), set() if make is text else {"json_schema"})
    assert isinstance(found, ModelOutputError) or "a" in str(found)


def test_size_is_counted_to_any_depth() -> None:
    """What is nested deeper than Python's own stack is counted too."""
    deep: Any = "x" * 100
    for _ in range(50_000):
        deep = [deep]
    assert 100_000 <= chars_in(deep) <= 100_200
    assert chars_in({"k": "v" * MAX_CHARS}) > MAX_CHARS
