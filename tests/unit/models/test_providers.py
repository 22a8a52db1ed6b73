"""Naming chat and embedding models: settings, keys, packages, addresses, identities."""

from __future__ import annotations

import socket
import sys
from pathlib import Path
from typing import Any

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models import FakeListChatModel
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from support.openai_server import OpenAIServer

from rag_kit.errors import ConfigurationError, InvalidInputError
from rag_kit.models import chat_model, embedding_model
from rag_kit.models.chat import describe_model
from rag_kit.models.embedding import embedding_name
from rag_kit.models.model_call import is_extractive
from rag_kit.models.providers import split_name
from rag_kit.models.wheels import files
from rag_kit.models.wheels.files import EMBEDDINGS, wheel_model

KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE")


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*KEYS, "RAG_KIT_CHAT_MODEL", "RAG_KIT_EMBEDDING_MODEL", "RAG_KIT_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def only_loopback(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Every address that is connected to; anything but loopback fails."""
    seen: list[Any] = []
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: Any) -> None:
        seen.append(address)
        assert not isinstance(address, tuple) or address[0] in ("127.0.0.1", "::1"), address
        connect(self, address)

    def resolve(host: Any, *args: Any, **kwargs: Any) -> Any:
        assert host in ("127.0.0.1", "::1", "localhost", None), host
        return real(host, *args, **kwargs)

    real = socket.getaddrinfo
    monkeypatch.setattr(socket.socket, "connect", guarded)
    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    return seen


def test_extractive_is_the_default_and_is_described() -> None:
    """Without any setting the embedded model answers, and says how to name a real one."""
    model = chat_model()
    assert type(model).__name__ == "ExtractiveChatModel"
    line = describe_model(model)
    assert "no language model" in line and "RAG_KIT_CHAT_MODEL=openai:" in line and "\n" not in line
    assert is_extractive(model.with_retry())
    assert describe_model(FakeListChatModel(responses=["x"])) == "FakeListChatModel"
    openai = chat_model("openai:m-a", api_key="sk-a")
    for wrapped in (openai.with_retry(), openai.bind(stop=["x"]), openai.with_fallbacks([model])):
        assert describe_model(wrapped) == describe_model(openai)


def test_name_key_and_address_from_the_environment(
    monkeypatch: pytest.MonkeyPatch, only_loopback: list[Any]
) -> None:
    """Three variables are enough for a compatible endpoint; nothing else is connected to."""
    with OpenAIServer(["Hello."], key="sk-env-0123456789") as server:
        monkeypatch.setenv("RAG_KIT_CHAT_MODEL", "openai:some/model:free")
        monkeypatch.setenv("RAG_KIT_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-env-0123456789")
        model = chat_model()
        assert model.invoke("Hi").content == "Hello."
        assert "".join(chunk.text for chunk in model.stream("Hi")) == "Hello."
        assert server.chats[0].body["model"] == "some/model:free"
        assert "stream_options" not in server.chats[1].body
    assert describe_model(model) == "some/model:free (ChatOpenAI at 127.0.0.1)"
    assert only_loopback


def test_embeddings_send_plain_strings_and_download_nothing(
    monkeypatch: pytest.MonkeyPatch, only_loopback: list[Any]
) -> None:
    """The server takes strings only; no token table is fetched; batches keep their order."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-x")
    with OpenAIServer() as server:
        embeddings: Any = embedding_model("openai:some-embedding", base_url=server.url, chunk_size=2)
        texts = ["red fox", "blue whale", "green tree", "red fox", "x"]
        vectors = embeddings.embed_documents(texts)
        assert len(vectors) == 5 and vectors[0] == vectors[3] != vectors[1]
        assert embedding_name(embeddings) == "openai:some-embedding@127.0.0.1"
        assert vars(embeddings)["max_retries"] == 2  # as of chat models


def test_settings_win_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arguments come first: address, key, time-out."""
    monkeypatch.setenv("RAG_KIT_BASE_URL", "http://127.0.0.1:1/v1")
    model = chat_model(
        "openai:m", base_url="http://127.0.0.1:2/v1", api_key="sk-arg", timeout=5, temperature=0
    )
    assert isinstance(model, ChatOpenAI)
    assert model.openai_api_base == "http://127.0.0.1:2/v1"
    assert (model.request_timeout, model.max_retries, model.temperature) == (5, 2, 0)
    assert "sk-arg" not in repr(model) + describe_model(model)


@pytest.mark.parametrize(
    ("name", "variable"), [("openai:gpt-5.5", "OPENAI_API_KEY"), ("gpt-5.5", "OPENAI_API_KEY")]
)
def test_a_missing_key_names_its_variable(name: str, variable: str) -> None:
    """The message says which environment variable to set."""
    with pytest.raises(ConfigurationError, match=f"needs a key: set {variable}") as caught:
        chat_model(name)
    assert "PROVIDER:MODEL" not in str(caught.value)
    with pytest.raises(ConfigurationError, match=variable):
        embedding_model("openai:text-embedding-3-small")


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A provider whose package is not installed says what to install."""
    monkeypatch.setitem(sys.modules, "langchain_anthropic", None)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-0123456789")
    with pytest.raises(ConfigurationError, match="pip install langchain-anthropic") as caught:
        chat_model("anthropic:claude-x")
    assert caught.value.__cause__ is None
    monkeypatch.setitem(sys.modules, "langchain_cohere", None)
    monkeypatch.setenv("COHERE_API_KEY", "0123456789")
    with pytest.raises(ConfigurationError, match="pip install langchain-cohere"):
        embedding_model("cohere:embed")


@pytest.mark.parametrize("name", ["nosuch:model", "my-own-model", "openai:", ":x", "https://x"])
def test_unknown_names_say_what_is_allowed(name: str) -> None:
    """A name that means nothing gives the form of one that does."""
    with pytest.raises(ConfigurationError, match="PROVIDER:MODEL"):
        chat_model(name, api_key="x")
    with pytest.raises(ConfigurationError, match="PROVIDER:MODEL"):
        embedding_model(name, api_key="x")


@pytest.mark.parametrize("name", ["", "  ", 7, FakeListChatModel(responses=["x"])])
def test_what_is_no_name_is_refused(name: Any) -> None:
    """Objects and empty strings are no names."""
    with pytest.raises(InvalidInputError):
        chat_model(name)
    with pytest.raises(InvalidInputError):
        embedding_model(name)


@pytest.mark.parametrize("url", ["127.0.0.1:8000/v1", "ftp://x/v1", "http://"])
def test_a_wrong_address_is_refused(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An address without http:// would fail much later; the variable is named."""
    monkeypatch.setenv("RAG_KIT_BASE_URL", url)
    with pytest.raises(ConfigurationError, match="RAG_KIT_BASE_URL"):
        chat_model("openai:m", api_key="x")


def test_a_wrong_setting_is_told_without_its_values() -> None:
    """The provider's complaint is passed on, but never the key beside it."""
    with pytest.raises(ConfigurationError, match="temperature") as caught:
        chat_model("openai:m", api_key="sk-canary-0123456789", temperature="hot sk-canary-0123456789")
    assert "canary" not in str(caught.value) and caught.value.__context__ is None


def test_no_embeddings_where_nothing_is_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without a name and without weights there is no model: keyword search only."""
    monkeypatch.setenv("RAG_KIT_CACHE", str(tmp_path))
    assert embedding_model() is None
    assert embedding_model("none") is None
    monkeypatch.setattr(files, "find_spec", lambda name: True)  # the extra is there, the weights are not
    with pytest.raises(ConfigurationError, match="rag-kit models install minilm"):
        embedding_model("minilm")


def test_the_first_installed_model_is_the_default(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """e5, which reads Chinese too, is taken before minilm and bge-small-en; an index keeps the one that it recorded."""
    monkeypatch.setenv("RAG_KIT_CACHE", str(tmp_path))
    monkeypatch.setattr(files, "find_spec", lambda name: True)
    for name in reversed(EMBEDDINGS):
        folder = files.model_folder(name)
        folder.mkdir(parents=True)
        for file in wheel_model(name).files:
            (folder / file).touch()
        assert embedding_name(embedding_model()) == name
    assert EMBEDDINGS == ("e5", "minilm", "bge-small-en")


def test_names_of_embeddings_are_stable() -> None:
    """Model, dimensions and host make the name; port, path, user and key don't."""
    one, two = (
        OpenAIEmbeddings(model="e", base_url=url, api_key=key, dimensions=256)
        for url, key in (("http://u:pw@127.0.0.1:1/v1", "sk-one"), ("http://127.0.0.1:2/v2", "sk-two"))
    )
    assert embedding_name(one) == embedding_name(two) == "openai:e[256]@127.0.0.1"
    assert embedding_name(OpenAIEmbeddings(model="e", api_key="k")) == "openai:e@api.openai.com"
    assert embedding_name(DeterministicFakeEmbedding(size=8)) != embedding_name(
        DeterministicFakeEmbedding(size=9)
    )
    assert embedding_name(None) == "none"


def test_a_name_is_split_at_its_first_colon() -> None:
    """Into provider and model; some names tell their provider."""
    names = ("openai:org/model:free", "gpt-5.5", "my-model")
    assert [split_name(name) for name in names] == [
        ("openai", "org/model:free"),
        ("openai", "gpt-5.5"),
        (None, "my-model"),
    ]
