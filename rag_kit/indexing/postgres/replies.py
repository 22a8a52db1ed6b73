"""Replies of a chat model, kept in the database of an index."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from rag_kit.indexing.document_index.sql import Connection

Transaction = Callable[[], AbstractContextManager[Connection]]


class PostgresReplies:
    """Replies by key, as ``rag_kit.models.JsonCache`` in a file; of one tenant, and kept also when a write fails."""

    def __init__(self, reading: Transaction, writing: Transaction) -> None:
        self._reading, self._writing = reading, writing

    def get(self, keys: Sequence[str]) -> dict[str, Any]:
        """The replies there are, by key."""
        with self._reading() as connection:
            rows = connection.execute("SELECT key, answer FROM replies WHERE key = ANY(?)", (list(keys),))
            return {key: json.loads(answer) for key, answer in rows}

    def put(self, answers: Mapping[str, Any]) -> None:
        """Keep replies, which must be plain JSON."""
        rows = [(key, json.dumps(answer)) for key, answer in sorted(answers.items())]
        query = "INSERT INTO replies (key, answer) VALUES (?, ?) ON CONFLICT (key) DO NOTHING"
        with self._writing() as connection:
            connection.executemany(query, rows)

    def close(self) -> None:
        """Nothing to do: the connections are the index's."""
