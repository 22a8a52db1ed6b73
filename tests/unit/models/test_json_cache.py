"""JsonCache: JSON in SQLite, for its owner alone, bounded, shared, refused when damaged."""

from __future__ import annotations

import copy
import json
import os
import pickle
import sqlite3
import stat
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import FakeListChatModel
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import ConfigurableField, RunnableLambda
from langchain_openai import ChatOpenAI
from support.forked import exit_codes, needs_fork

from rag_kit.errors import ConfigurationError, InvalidInputError
from rag_kit.models import JsonCache
from rag_kit.models.json_cache import call_key, model_identity
from rag_kit.prompts import load_prompt
from rag_kit.prompts.schemas import Queries, Query


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cache.sqlite"


def test_what_is_put_is_got_by_another_one_too(path: Path) -> None:
    """Answers survive closing and opening; unknown keys are left out."""
    cache = JsonCache(path)
    cache.put({"a": {"queries": ["x", "问"]}, "b": "text\ud800"})
    assert cache.get(["b", "none", "a"]) == {"b": "text\ud800", "a": {"queries": ["x", "问"]}}
    assert cache.get(["a"]) and JsonCache(path).get(["a"]) and len(cache) == 2
    empty = JsonCache(path.with_name("empty.sqlite"))
    assert empty.get(["a"]) == {} and len(empty) == 0 and bool(empty)


def test_only_the_owner_may_read_it(path: Path) -> None:
    """The file is made with mode 0600, whatever the umask, and one that was opened up is closed again."""
    old = os.umask(0)
    try:
        cache = JsonCache(path)
        cache.put({"a": 1})
        assert {stat.S_IMODE(each.stat().st_mode) for each in path.parent.iterdir()} == {0o600}
        path.chmod(0o644)
        JsonCache(path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    finally:
        os.umask(old)


def test_the_oldest_go_first(path: Path) -> None:
    """Beyond max_entries the entry goes that was written first; one that is written again is new."""
    cache = JsonCache(path, max_entries=3)
    for name in "abca":
        cache.put({name: name})
    cache.put({"d": "d"})
    assert set(cache.get(list("abcd"))) == {"a", "c", "d"} and len(cache) == 3
    cache.put({str(n): n for n in range(50)})
    assert len(cache) == 3 and set(cache.get([str(n) for n in range(50)])) == {"47", "48", "49"}


def test_endless_answers_are_not_kept(path: Path) -> None:
    """An answer over 200,000 characters is left out."""
    cache = JsonCache(path)
    cache.put({"a": "x" * 200_001, "b": "y"})
    assert cache.get(["a", "b"]) == {"b": "y"}


def test_a_file_of_something_else_is_left_alone(path: Path) -> None:
    """Notes, another program's database, a folder and a link are refused by name, unchanged."""
    path.write_text("my notes\n" * 100)
    path.chmod(0o644)
    with pytest.raises(InvalidInputError, match="No cache of this version of rag_kit wrote"):
        JsonCache(path)
    assert path.read_text().startswith("my notes")
    other = path.with_name("other.db")
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE mine (x)")
    other.chmod(0o640)
    with pytest.raises(InvalidInputError, match=r"other\.db"):
        JsonCache(other)
    if os.name == "posix":
        assert [stat.S_IMODE(file.stat().st_mode) for file in (path, other)] == [0o644, 0o640]
    with pytest.raises(InvalidInputError, match="cannot be opened"):
        JsonCache(path.parent)
    link = path.with_name("link")
    link.symlink_to(path.with_name("target"))
    with pytest.raises(InvalidInputError, match="no link"):
        JsonCache(link)
    for wrong in (0, -1, True, 2.5):
        with pytest.raises(InvalidInputError, match="max_entries"):
            JsonCache(path.with_name("new"), max_entries=wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="path is NoneType"):
        JsonCache(None)  # type: ignore[arg-type]


@pytest.mark.parametrize("damage", ["middle", "cut", "version"])
def test_a_damaged_cache_is_refused(path: Path, damage: str) -> None:
    """A damaged cache, or one of another version, is refused by name and left alone."""
    cache = JsonCache(path)
    cache.put({str(n): "x" * 500 for n in range(200)})
    data = bytearray(path.read_bytes())
    if damage == "middle":
        data[100:60_000] = b"\xff" * 59_900
    elif damage == "cut":
        data = data[:5000]
    if damage in ("middle", "cut"):
        path.write_bytes(data)
    else:
        with sqlite3.connect(path) as connection:
            connection.execute("PRAGMA application_id=99")
    before = path.read_bytes()
    with pytest.raises((InvalidInputError, ConfigurationError), match=r"cache\.sqlite.*delete"):
        JsonCache(path).get(["1"])
    assert path.read_bytes() == before


def test_what_is_in_it_is_never_executed(path: Path) -> None:
    """An entry that is no JSON is an error that names the file."""
    cache = JsonCache(path)
    cache.put({"a": 1})
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE answers SET answer = ?", ("cos\nsystem\n(S'true'\ntR.",))
        connection.execute("INSERT INTO answers VALUES ('deep', ?, 1)", ("[" * 200_000,))
    for key in ("a", "deep"):
        with pytest.raises(ConfigurationError, match=r"cache\.sqlite"):
            cache.get([key])


@needs_fork
def test_processes_share_one(path: Path) -> None:
    """Two processes make and fill one file at the same time; nothing is lost."""

    def fill(name: str) -> None:
        cache = JsonCache(path)
        for n in range(150):
            cache.put({f"{name}-{n}": n})
            assert cache.get([f"{name}-{n}"])

    assert exit_codes(partial(fill, "one"), partial(fill, "two")) == [0, 0]
    assert len(JsonCache(path)) == 300


def test_copies_are_the_same_cache(path: Path) -> None:
    """A deep copy and what comes out of a pickle open the file again."""
    cache = JsonCache(path)
    cache.put({"a": 1})
    for copied in (copy.deepcopy(cache), pickle.loads(pickle.dumps(cache))):
        assert copied.get(["a"]) == {"a": 1}


PROMPT = ChatPromptTemplate([("user", "{question}")])


def gpt(**settings: Any) -> ChatOpenAI:
    return ChatOpenAI(
        **{"model": "m", "api_key": "sk-canary-1234567", "base_url": "http://u:pw-canary@h/v1", **settings}
    )


def test_keys_tell_calls_apart() -> None:
    """Prompt, values, model, endpoint, sampling and form each make another key; the API key does not."""
    step_back = load_prompt("step_back")
    base = (gpt(), step_back, {"question": "q"}, Query)
    keys = [
        call_key(*base),
        call_key(gpt(model="n"), *base[1:]),
        call_key(gpt(base_url="http://other/v1"), *base[1:]),
        call_key(gpt(temperature=0.7), *base[1:]),
        call_key(gpt().bind(stop=["x"]), *base[1:]),
        call_key(FakeListChatModel(responses=["a"]), *base[1:]),
        call_key(FakeListChatModel(responses=["b"]), *base[1:]),
        call_key(base[0], load_prompt("step_back", language="zh"), *base[2:]),
        call_key(base[0], PROMPT, *base[2:]),
        call_key(*base[:2], {"question": "r"}, Query),
        call_key(*base[:3], Queries),
        call_key(*base[:3], {"type": "object"}),
        call_key(*base[:3], str),
    ]
    assert None not in keys and len(set(keys)) == len(keys)
    same = gpt(api_key="sk-other-7654321", base_url="http://h/v1/")
    assert call_key(same, *base[1:]) == keys[0] == call_key(*base)
    assert call_key(gpt().with_retry(), *base[1:]) is not None


def test_the_model_is_found_inside_wrappers() -> None:
    """Fallbacks and configurable fields are told by what is inside; a function is not told at all."""
    flexible = gpt().configurable_fields(model_name=ConfigurableField(id="name"))
    one, two = (model_identity(flexible, {"configurable": {"name": name}}) for name in "ab")
    assert one != two and one[0][0]["name"] == "a"
    assert len(model_identity(gpt().with_fallbacks([gpt(model="n")]))) == 2
    function = RunnableLambda(lambda messages: "x")
    assert model_identity(function) is None and call_key(function, PROMPT, {"question": "q"}, str) is None
    assert model_identity(gpt().with_fallbacks([function])) is None


def test_an_identity_holds_no_key() -> None:
    """No API key or password is in the hashed text."""
    told = json.dumps(model_identity(gpt()), default=lambda other: type(other).__name__)
    assert "canary" not in told and "h/v1" in told
