"""A filter of the kit as Qdrant's ``Filter``."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

from rag_kit.documents.filters import Clause, Filter, joined, refused, translate
from rag_kit.errors import FilterError, MissingExtraError

_PLAIN_KEY = re.compile(r"[^\W\d][\w-]*")
_EXACT = 2**53


def to_qdrant(where: Filter | None, *, metadata_key: str = "metadata") -> Any | None:
    """Translate a filter for Qdrant, so that both give the same rows.

    Qdrant looks into lists for plain conditions too, so a comparison here also asks that the value is no list;
    ``$contains`` asks for lists alone. Numbers are compared as ranges, for Qdrant keeps 1 and 1.0 apart.

    Returns:
        A ``qdrant_client.models.Filter``, or ``None`` if everything passes; ``metadata_key`` is the payload key that
        holds the metadata.

    Raises:
        FilterError: If the filter is wrong, or asks for what Qdrant lacks: ordering of strings, ``$exists`` (an
            empty list counts as missing there), whole numbers beyond 2**53, keys with quotes.
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
    if isinstance(clause, bool):
        return models.Filter(must=[models.HasIdCondition(has_id=[])])
    return clause if isinstance(clause, models.Filter) else models.Filter(must=[clause])


def _join(models: Any, word: str, parts: list[Any]) -> Any:
    return models.Filter(must=parts) if word == "and" else models.Filter(should=parts)


def _clause_of(models: Any, prefix: str, key: str, operator: str, operand: Any, negated: bool) -> Clause:
    clause = _condition(models, _path(prefix, key), key, operator, operand)
    return models.Filter(must_not=[clause]) if negated else clause


def _condition(models: Any, path: str, key: str, operator: str, operand: Any) -> Any:
    if operator in ("$exists", "$startswith"):  # an empty list counts as missing there
        raise refused("Qdrant", key, operator)
    if operator == "$contains":
        return _equal(models, f"{path}[]", key, operand)
    if operator in ("$eq", "$in"):
        values = operand if operator == "$in" else [operand]
        found = joined("or", [_equal(models, path, key, each) for each in values], partial(_join, models))
    elif isinstance(operand, str):
        raise FilterError(
            f"Qdrant compares only numbers with {operator}; {key!r} was compared with {operand[:40]!r}. Store the "
            "value as a number (a date as a timestamp or as 20260131)."
        )
    else:
        bounds = models.Range(**{operator[1:]: _exact(key, operand)})
        found = models.FieldCondition(key=path, range=bounds)
    no_list = models.IsEmptyCondition(is_empty=models.PayloadField(key=f"{path}[]"))
    return models.Filter(must=[found, no_list])


def _equal(models: Any, path: str, key: str, value: Any) -> Any:
    if isinstance(value, (str, bool)):
        return models.FieldCondition(key=path, match=models.MatchValue(value=value))
    number = _exact(key, value)
    return models.FieldCondition(key=path, range=models.Range(gte=number, lte=number))


def _exact(key: str, value: Any) -> Any:
    if abs(value) > _EXACT:
        raise FilterError(
            f"Qdrant compares numbers as doubles; {key!r} was compared with {value}, beyond 2**53."
        )
    return value


def _path(prefix: str, key: str) -> str:
    """The payload path of a metadata key; dots and brackets in a key are no steps."""
    if '"' in key or "\\" in key or not key.isprintable():
        raise FilterError(f"Qdrant cannot address the key {key!r}. Filter by another metadata key.")
    name = key if _PLAIN_KEY.fullmatch(key) and key.isascii() else f'"{key}"'
    return f"{prefix}.{name}" if prefix else name
