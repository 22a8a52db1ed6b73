"""Each line of the guide's table of providers, set as it stands, with a loopback server at the provider's address."""

from __future__ import annotations

import json
import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from support.openai_server import OpenAIServer, Recorded, error, tokens

from rag_kit.cli import exits
from rag_kit.cli.main import main
from rag_kit.models import embedding_model, runnables

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide"
KEY = "sk-canary-0123456789abcdef"
#: What the documentation of a provider says that it lacks.
LACKING = {
    "DeepSeek": {"json_schema"},
    "Moonshot (Kimi)": {"logprobs"},
    "LM Studio": {"json_object", "logprobs"},
}


def lines(language: str) -> dict[str, dict[str, str]]:
    """Provider -> variables, out of the page's table."""
    text = (GUIDE / language / "model-providers.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([^|]+) \| (`.*`) \|$", text, re.MULTILINE)
    return {name: dict(one.split("=", 1) for one in re.findall(r"`([^`]+)`", cells)) for name, cells in rows}


def answer(request: Recorded) -> object:
    """A word where words are wanted, an object where an object is."""
    return tokens("yes", ", ", "it ", "is") if request.asks == "text" else {"city": "Paris"}


def test_both_languages_set_the_same() -> None:
    """The tables of the two pages differ in names only."""
    assert list(lines("en").values()) == list(lines("zh").values()) and len(lines("en")) == 9


@pytest.mark.parametrize("provider", list(lines("en")))
def test_the_line_is_enough(
    provider: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the line's variables `doctor --model` reaches the endpoint at its path and says what it has."""
    runnables._endpoints.clear()
    monkeypatch.setenv("RAG_KIT_EMBEDDING_MODEL", "none")
    lacking = LACKING.get(provider, set())
    with OpenAIServer([answer], refuse=lacking, key=KEY) as server:
        host = server.url.removesuffix("/v1")
        variables = lines("en")[provider]
        paths = set()
        for name, value in variables.items():
            if value.startswith("http"):
                paths.add(urlsplit(value).path)
                value = host + urlsplit(value).path
            monkeypatch.setenv(name, KEY if name.endswith("_KEY") else value)
        if provider == "OpenAI":  # which needs no address
            monkeypatch.setenv("RAG_KIT_BASE_URL", server.url)
            paths.add("/v1")
        code = main(["doctor", "--model", variables["RAG_KIT_CHAT_MODEL"], "--json"])
        out = capsys.readouterr().out
        states = {finding["name"]: finding["state"] for finding in json.loads(out)}
        assert code == exits.OK and KEY not in out
        assert states["text"] == states["structured call"] == states["streaming"] == "ok"
        assert (states["JSON schema"] == "ok") is ("json_schema" not in lacking)
        assert (states["JSON mode"] == "ok") is ("json_object" not in lacking)
        assert (states["log-probabilities"] == "ok") is ("logprobs" not in lacking)
        assert (states["embedding model"] == "ok") is ("RAG_KIT_EMBEDDING_MODEL" in variables)
        [path] = paths
        assert server.chats and all(chat.path.startswith(path) for chat in server.chats)


def test_a_batch_is_as_large_as_the_endpoint_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """RAG_KIT_EMBEDDING_BATCH bounds the texts of a request, which DashScope refuses beyond ten."""

    def at_most_ten(request: Recorded) -> object:
        return error(400, "batch size is invalid") if len(request.body["input"]) > 10 else None

    with OpenAIServer(embeddings=[at_most_ten], key=KEY) as server:
        for name, value in lines("en")["Qwen (DashScope)"].items():
            monkeypatch.setenv(name, {"OPENAI_API_KEY": KEY, "RAG_KIT_BASE_URL": server.url}.get(name, value))
        model = embedding_model()
        assert model is not None and len(model.embed_documents([f"text {n}" for n in range(25)])) == 25
        assert len(server.requests) == 3


@pytest.mark.slow
def test_a_model_that_does_not_answer_is_one_bad_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A refused key ends the examination, with the exit code of a failure and without the key."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-wrong-0123456789abcdef")
    with OpenAIServer(key=KEY) as server:
        code = main(["doctor", "--model", "openai:m", "--base-url", server.url, "--json"])
    out = capsys.readouterr().out
    assert code == exits.FAILED and "sk-wrong" not in out
    assert [finding["name"] for finding in json.loads(out)] == ["text", "embedding model"]
