"""A filter of the kit as Qdrant's ``Filter``."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

from rag_kit.documents.filters import ORDER, Clause, Filter, cannot_ask, translate
from rag_kit.errors import MissingExtraError

_PLAIN_KEY = re.compile(r"[^\W\d][\w-]*", re.ASCII)
_MAX_EXACT = 2**53
"""Qdrant compares numbers as doubles."""


def to_qdrant(where: Filter | None, *, metadata_key: str = "metadata") -> Any | None:
    """Translate a filter for Qdrant, so that both give the same rows.

    Qdrant looks into lists for plain conditions too, so a comparison here also asks that the value is no list;
    ``$contains`` asks for lists alone. Numbers are compared as ranges, for Qdrant keeps 1 and 1.0 apart.

    Returns:
        A ``qdrant_client.models.Filter``, or ``None`` if everything passes; ``metadata_key`` is the payload key that
        holds the metadata.

    Raises:
        FilterError: If the filter is wrong, or asks for what Qdrant lacks: ordering of strings, ``$startswith``,
            ``$exists`` (an empty list counts as missing there), whole numbers beyond 2**53, keys with quotes.
        MissingExtraError: If ``qdrant-client`` is not installed.

    Example:
        >>> to_qdrant(None) is None
        True
    """
    try:
        from qdrant_client import models
    except ImportError:
        raise MissingExtraError("qdrant", "A filter for Qdrant") from None
    clause = translate(where, partial(_clause_of, models, metadata_key), partial(_join, models))
    if clause is True:
        return None
    return clause or models.Filter(must=[models.HasIdCondition(has_id=[])])


def _join(models: Any, word: str, parts: list[Any]) -> Any:
    return models.Filter(must=parts) if word == "and" else models.Filter(should=parts)


def _clause_of(models: Any, prefix: str, key: str, operator: str, operand: Any, negated: bool) -> Clause:
    """One condition as a ``Filter``."""
    values = operand if operator == "$in" else [operand]
    if (
        operator in ("$exists", "$startswith")
        or (operator in ORDER and isinstance(operand, str))
        or any(not isinstance(value, str) and abs(value) > _MAX_EXACT for value in values)
        or '"' in key
        or "\\" in key
        or not key.isprintable()
    ):
        raise cannot_ask("Qdrant", key, operator)
    # dots and brackets in a key are no steps of a path
    name = key if _PLAIN_KEY.fullmatch(key) else f'"{key}"'
    path = f"{prefix}.{name}" if prefix else name
    item = f"{path}[]"
    tests = [_test(models, item if operator == "$contains" else path, operator, value) for value in values]
    clause = models.Filter(should=tests)
    if operator != "$contains":
        no_list = models.IsEmptyCondition(is_empty=models.PayloadField(key=item))
        clause = models.Filter(must=[clause, no_list])
    return models.Filter(must_not=[clause]) if negated else clause


def _test(models: Any, path: str, operator: str, value: Any) -> Any:
    """A condition on the value at a path."""
    if isinstance(value, (str, bool)):
        return models.FieldCondition(key=path, match=models.MatchValue(value=value))
    bounds = {operator[1:]: value} if operator in ORDER else {"gte": value, "lte": value}
    return models.FieldCondition(key=path, range=models.Range(**bounds))
