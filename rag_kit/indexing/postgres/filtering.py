"""Metadata filters in PostgreSQL: one meaning everywhere, since the kit's own function looks at the candidates."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rag_kit.documents import Filter, compile_filter

if TYPE_CHECKING:
    from psycopg import Connection


def filter_rows(native: Connection[Any], numbers: Sequence[int], where: Filter | None) -> dict[int, str]:
    """Of some rows those that are there and pass a filter: their ids by number."""
    columns = "n, id, metadata" if where else "n, id, NULL"
    query = f"SELECT {columns} FROM chunks WHERE n = ANY(%b::bigint[])"
    rows = native.execute(query, (list(numbers),))
    passes = compile_filter(where)
    return {n: key for n, key, metadata in rows if metadata is None or passes(json.loads(metadata))}
