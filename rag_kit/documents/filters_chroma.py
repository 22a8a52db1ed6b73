"""A filter of the kit as Chroma's ``where``, which is stricter and lacks some operators."""

from __future__ import annotations

from typing import Any

from rag_kit.documents.filters import Clause, Filter, joined, refused, translate
from rag_kit.errors import FilterError

_IMPOSSIBLE: dict[str, Any] = {"$and": [{"rag_kit": {"$eq": 0}}, {"rag_kit": {"$ne": 0}}]}


def to_chroma(where: Filter | None) -> dict[str, Any] | None:
    """Translate a filter for Chroma, so that both give the same rows.

    Returns:
        Chroma's ``where``, or ``None`` if everything passes.

    Raises:
        FilterError: If the filter is wrong, or asks for what Chroma lacks: ``$exists``, ``$startswith``, ordering
            of strings, the negation of an ordering (it would have to find rows without the key), integers
            beyond 64 bits.

    Example:
        >>> to_chroma({"lang": "en", "year": {"$gte": 2020}})
        {'$and': [{'lang': {'$eq': 'en'}}, {'year': {'$gte': 2020}}]}
    """
    clause = translate(where, _clause_of, _join)
    if clause is True:
        return None
    return dict(clause or _IMPOSSIBLE)


def _join(word: str, parts: list[Any]) -> dict[str, Any]:
    return {f"${word}": parts}


def _clause_of(key: str, operator: str, operand: Any, negated: bool) -> Clause:
    """One condition in Chroma's language; True or False where it holds for every row or none."""
    if key.startswith(("#", "chroma:")):
        raise FilterError(f"Chroma keeps the key {key!r} for itself. Filter by another metadata key.")
    if operator in ("$startswith", "$exists"):
        raise refused("Chroma", key, operator)
    values = operand if operator == "$in" else [operand]
    if any(type(value) is int and not -(2**63) <= value < 2**63 for value in values):
        raise FilterError(f"Chroma holds integers of 64 bits; {key!r} was compared with {operand}.")
    word = "and" if negated else "or"
    if operator in ("$eq", "$in"):
        return joined(word, _memberships(key, values, negated), _join)
    if operator == "$contains":
        operator = "$not_contains" if negated else operator
        # in Chroma a list of integers does not contain 1.0, nor a list of floats 1
        number = type(operand) in (int, float) and abs(operand) < 2**63 and operand == int(operand)
        items = [float(operand), int(operand)] if number else [operand]
        return joined(word, [{key: {operator: item}} for item in items], _join)
    if isinstance(operand, str):
        raise FilterError(
            f"Chroma compares only numbers with {operator}; {key!r} was compared with {operand[:40]!r}. "
            "Store the value as a number (a date as a timestamp or as 20260131)."
        )
    if negated:  # rows without the key would have to pass, too
        raise refused("Chroma", key, f"the negation of {operator}")
    return _comparison(key, operator, operand)


def _comparison(key: str, operator: str, value: Any) -> Clause:
    """Chroma (1.5.9) cuts a number's fraction off before it compares it with a stored integer: mend that.

    ``{"a": {"$gte": 1.5}}`` would find the integer 1, and ``{"a": {"$lt": 1.5}}`` would not.
    """
    clause: Clause = {key: {operator: value}}
    if not isinstance(value, float) or value.is_integer():
        return clause
    whole = int(value)
    if operator in ("$ne", "$lt" if value > 0 else "$gt"):
        return {"$or": [clause, {key: {"$eq": whole}}]}
    if operator in ("$eq", "$gte" if value > 0 else "$lte"):
        return {"$and": [clause, {key: {"$ne": whole}}]}
    return clause


def _memberships(key: str, values: list[Any], negated: bool) -> list[Clause]:
    """One condition for all texts, since Chroma wants one type a list, and one for each other value."""
    texts = [value for value in values if isinstance(value, str)]
    if len(texts) < 2:
        return [_comparison(key, "$ne" if negated else "$eq", value) for value in values]
    others = [value for value in values if not isinstance(value, str)]
    return [{key: {"$nin" if negated else "$in": texts}}, *_memberships(key, others, negated)]
