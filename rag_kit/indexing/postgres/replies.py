"""The replies of a chat model, kept beside the index so that no process pays for one twice."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from rag_kit.indexing.postgres.store import PostgresStore


class PostgresReplies:
    """Replies by key, as ``rag_kit.models.JsonCache`` in a file; of one tenant, and kept also when a write fails.

    Args:
        store: The store of the index.
    """

    def __init__(self, store: PostgresStore) -> None:
        self._store = store

    def get(self, keys: Sequence[str]) -> dict[str, Any]:
        """The replies there are, by key."""
        with self._store.reading() as connection:
            query = "SELECT key, answer FROM replies WHERE key = ANY(?)"
            rows = connection.execute(query, (list(keys),))
            return {key: json.loads(answer) for key, answer in rows}

    def put(self, answers: Mapping[str, Any]) -> None:
        """Keep replies, which must be plain JSON."""
        rows = [(key, json.dumps(answer)) for key, answer in sorted(answers.items())]
        with self._store.separate_transaction() as connection:
            connection.executemany(
                "INSERT INTO replies (key, answer) VALUES (?, ?) ON CONFLICT (key) DO NOTHING", rows
            )

    def close(self) -> None:
        """Nothing to do: the store is the index's."""
