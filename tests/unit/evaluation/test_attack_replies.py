"""Endless and broken replies of a judge: refused before a parser sees them, over text and tool calls."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain_openai import ChatOpenAI
from support.openai_server import OpenAIServer, text, tool

from rag_kit.errors import ModelOutputError
from rag_kit.evaluation import Judge

PROMPTS = Path(__file__).resolve().parents[2] / "support" / "prompts"
VALUES = {"question": "Who?", "answer": "She came."}
SIZE = 1_100_000
ENDLESS = {
    "brackets": "[" * SIZE,
    "extra key": '{"statements": ["a"], "more": "' + "y" * SIZE + '"}',
    "one string": '{"statements": ["' + "y" * SIZE + '"]}',
}


@pytest.fixture(autouse=True)
def _prompts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Prompt files of the tests' own, beside the packaged ones."""
    monkeypatch.setenv("RAG_KIT_PROMPTS", str(PROMPTS))


def judge_of(server: OpenAIServer) -> Judge:
    """A judge with a real client on that server."""
    model = ChatOpenAI(model="test", base_url=server.url, api_key="sk-test", max_retries=0)
    return Judge(model, "none", max_retries=0)


async def ask(reply: Any, refuse: set[str]) -> tuple[Any, int]:
    """What comes of asking, and how many requests it took."""
    with OpenAIServer([reply], refuse=refuse) as server:
        try:
            found = await judge_of(server).ask("judge_statements", VALUES)
        except ModelOutputError as error:
            found = error
        return found, len([each for each in server.chats if each.asks not in refuse])


@pytest.mark.parametrize("make", [text, tool])
@pytest.mark.parametrize("name", ENDLESS)
async def test_endless_replies_are_refused_at_once(name: str, make: Any) -> None:
    """Megabytes of any kind end with one request and an error that names size and limit, on both paths."""
    found, requests = await ask(make(ENDLESS[name]), set() if make is text else {"json_schema"})
    assert isinstance(found, ModelOutputError) and requests == 1
    assert "at most 1,000,000 are read" in str(found) and "answer has " in str(found)


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


@pytest.mark.parametrize("depth", [300, 20_000])
@pytest.mark.parametrize("make", [text, tool])
async def test_deep_nesting_is_an_unreadable_answer(depth: int, make: Any) -> None:
    """However deep, also where a client's own parser gives up: an error of ours, or the value beside it."""
    deep = '{"statements": ["a"], "more": ' + "[" * depth + "]" * depth + "}"
    found, _ = await ask(make(deep), set() if make is text else {"json_schema"})
    assert isinstance(found, ModelOutputError) or "a" in str(found)
