"""The cache of the kit: JSON values by key in one SQLite file, and keys of calls, which give nothing of them away."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from langchain_core.language_models import BaseLanguageModel
from langchain_core.runnables import RunnableConfig

from rag_kit.errors import ConfigurationError, InvalidInputError
from rag_kit.models.runnables import base_url, model_name, routes_to

_MAX_CHARS = 200_000
_APPLICATION = 0x52574331  # "RWC1", SQLite's application_id in the file; another layout gets another one
_BUSY_SECONDS = 10


class JsonCache:
    """JSON values in one SQLite file; nothing in it is ever executed.

    Replies and vectors are kept under hashes of prompt, model, endpoint and values, so the file holds no key to an
    endpoint and no question; they themselves can be read, by its owner alone (mode 0600). Threads, asyncio and
    processes may share it: each call opens it for itself. Hand it, or its path, to a retriever as ``cache=``.

    Args:
        path: The file; made if missing. One that is something else, damaged or of another version is left alone.
        max_entries: Most values; beyond that those go that were written first.

    Raises:
        InvalidInputError: The file is something else, damaged or cannot be made, or ``max_entries`` is not allowed.
        ConfigurationError: By its methods, where the file cannot be read or written any more.

    Example:
        >>> import tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> cache = JsonCache(Path(folder.name) / "replies.sqlite", max_entries=2)
        >>> cache.put({"a": {"query": "x"}, "b": ["y"], "c": "z"})
        >>> cache.get(["a", "b", "c"]), len(cache)
        ({'b': ['y'], 'c': 'z'}, 2)
        >>> folder.cleanup()
    """

    def __init__(self, path: str | os.PathLike[str], *, max_entries: int = 10_000) -> None:
        if type(max_entries) is not int or max_entries < 1:
            raise InvalidInputError(f"max_entries={max_entries!r} was given; it must be a whole number >= 1.")
        if not isinstance(path, (str, os.PathLike)):
            raise InvalidInputError(f"path is {type(path).__name__}; give the path of a file as str or Path.")
        self.path = Path(path).absolute()
        self.max_entries = max_entries
        try:
            _make_file(self.path)
        except (sqlite3.Error, ValueError, OSError) as error:
            raise InvalidInputError(
                f"cache={self.path.name!r} cannot be opened: {error}. Name a file (no link) in a folder that can be "
                "written to. No cache of this version of rag_kit wrote one that is something else or damaged: it is "
                "left alone; name another, or delete it."
            ) from error

    def get(self, keys: Sequence[str]) -> dict[str, Any]:
        """Return the stored values, by key."""
        with self._transaction("read") as connection:
            rows = connection.execute(
                "SELECT key, answer FROM answers WHERE key IN (SELECT value FROM json_each(?))",
                [json.dumps(list(keys))],
            ).fetchall()  # an open cursor would hold the file's lock beyond an error
            return {key: json.loads(text) for key, text in rows}

    def put(self, values: Mapping[str, Any]) -> None:
        """Keep values, which must be plain JSON; those over 200,000 characters are left out."""
        rows = [(key, json.dumps(value)) for key, value in values.items()]
        with self._transaction("written") as connection:
            connection.executemany(  # `used` numbers the values in the order in which they were written
                "INSERT OR REPLACE INTO answers (key, answer, used) "
                "SELECT ?, ?, coalesce(max(used), 0) + 1 FROM answers",
                [(key, text) for key, text in rows if len(text) <= _MAX_CHARS],
            )
            connection.execute(  # all but the newest `max_entries`
                "DELETE FROM answers WHERE key IN (SELECT key FROM answers ORDER BY used DESC LIMIT -1 OFFSET ?)",
                (self.max_entries,),
            )

    def __len__(self) -> int:
        with self._transaction("read") as connection:
            return int(connection.execute("SELECT count(*) FROM answers").fetchone()[0])

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"JsonCache({self.path.name!r}, max_entries={self.max_entries})"

    @contextmanager
    def _transaction(self, done: str) -> Iterator[sqlite3.Connection]:
        """Open a transaction on a new connection; ``done`` says in errors what failed ("read" or "written")."""
        try:
            with _connection(self.path) as connection:
                yield connection
        except (sqlite3.Error, ValueError, RecursionError) as error:
            raise ConfigurationError(
                f"The cache {self.path.name!r} could not be {done}: {error}. If it is damaged, delete it."
            ) from error


@contextmanager
def _connection(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a connection and a transaction; the file must exist."""
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=rw", uri=True, timeout=_BUSY_SECONDS)) as connection:
        # A crash of the machine may damage the file. Waiting for the disk is not worth it.
        connection.execute("PRAGMA synchronous=OFF")
        connection.execute("PRAGMA trusted_schema=OFF")
        with connection:
            yield connection


def _make_file(path: Path) -> None:
    """Make the file and its table if missing; raise an error if it is something else."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600))
    with _connection(path) as connection:
        connection.execute("BEGIN IMMEDIATE")
        if not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            connection.execute(f"PRAGMA application_id={_APPLICATION}")
            connection.execute(
                "CREATE TABLE answers (key TEXT PRIMARY KEY, answer TEXT NOT NULL, used INTEGER NOT NULL) "
                "WITHOUT ROWID"
            )
            connection.execute("CREATE INDEX by_use ON answers (used)")
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        if application != _APPLICATION:
            raise sqlite3.DatabaseError(f"its application_id is {application}, not {_APPLICATION}")
        connection.execute("SELECT key, answer, used FROM answers LIMIT 1")
    path.chmod(0o600)  # not before: somebody else's file keeps its mode


# Raise it when an entry of the same key would be read in another way.
_VERSION = 2
_SAMPLING = (
    "temperature", "top_p", "top_k", "max_tokens", "max_completion_tokens", "seed", "stop", "reasoning_effort",
    "reasoning", "thinking", "frequency_penalty", "presence_penalty", "model_kwargs", "extra_body",
)  # fmt: skip


def call_key(
    model: Any, prompt: Any, values: Mapping[str, Any], schema: Any, config: RunnableConfig | None = None
) -> str | None:
    """Return the key of a call's answer, 64 hexadecimal digits; None if the model cannot be told from others.

    The key covers the hash of the prompt file and the messages that the prompt gives. The schema is a Pydantic class, a
    JSON schema, or ``str`` for text; the config's ``configurable`` may choose the model.
    """
    identity = model_identity(model, config)
    if identity is None:
        return None
    messages = [[message.type, message.content] for message in prompt.format_prompt(**values).to_messages()]
    metadata = getattr(prompt, "metadata", None) or {}
    form = f"{schema.__module__}.{schema.__qualname__}" if isinstance(schema, type) else schema
    parts = [_VERSION, metadata.get("hash"), identity, messages, form]
    # other objects count by their type, so that no secret or address gets in
    text = json.dumps(parts, sort_keys=True, ensure_ascii=False, default=lambda part: type(part).__qualname__)
    return hashlib.sha256(text.encode("utf-8", errors="backslashreplace")).hexdigest()


def model_identity(model: Any, config: RunnableConfig | None = None) -> Any:
    """Describe a model, wrapped or not, as JSON to hash: class, name, endpoint, sampling; None for other objects."""
    if isinstance(model, BaseLanguageModel):
        return _identity(model)
    described = [[_identity(route.model), dict(route.arguments)] for route in routes_to(model, config)]
    return None if any(identity is None for identity, _ in described) else described


def _identity(model: Any) -> dict[str, Any] | None:
    """Describe a bare model by what changes its answers, without keys; None for other objects."""
    if not isinstance(model, BaseLanguageModel):
        return None
    settings = {name: getattr(model, name, None) for name in _SAMPLING}
    return {
        "class": f"{type(model).__module__}.{type(model).__qualname__}",
        "name": model_name(model),
        "endpoint": plain_endpoint(base_url(model)),
        "settings": {name: value for name, value in settings.items() if value is not None},
        "parameters": dict(getattr(model, "_identifying_params", None) or {}),
    }


def plain_endpoint(url: str | None) -> str | None:
    """Return host, port and path of an address, without user and password."""
    if not url:
        return None
    parts = urlsplit(url if "//" in url else f"//{url}")
    return f"{parts.netloc.rpartition('@')[2]}{parts.path.rstrip('/')}"
