"""A filter of the kit as Chroma's ``where``, which is stricter and lacks some operators."""

from __future__ import annotations

from typing import Any

from rag_kit.documents.filters import ORDER, Clause, Filter, cannot_ask, join_clauses, join_mongo, translate

_IMPOSSIBLE: dict[str, Any] = {"$and": [{"rag_kit": {"$eq": 0}}, {"rag_kit": {"$ne": 0}}]}
_MAX_INTEGER = 2**63


def to_chroma(where: Filter | None) -> dict[str, Any] | None:
    """Translate a filter for Chroma, so that both give the same rows.

    Returns:
        Chroma's ``where``, or ``None`` if everything passes.

    Raises:
        FilterError: If the filter is wrong, or asks for what Chroma lacks: ``$exists``, ``$startswith``, ordering
            of strings, the negation of an ordering (it would have to find rows without the key), integers
            beyond 64 bits, keys that Chroma keeps for itself.

    Example:
        >>> to_chroma({"lang": "en", "year": {"$gte": 2020}})
        {'$and': [{'lang': {'$eq': 'en'}}, {'year': {'$gte': 2020}}]}
    """
    clause = translate(where, _clause_of, join_mongo)
    return None if clause is True else dict(clause or _IMPOSSIBLE)


def _clause_of(key: str, operator: str, operand: Any, negated: bool) -> Clause:
    """One condition in Chroma's language."""
    values = operand if operator == "$in" else [operand]
    if (
        key.startswith(("#", "chroma:"))
        or operator in ("$startswith", "$exists")
        or (operator in ORDER and (negated or isinstance(operand, str)))
        or any(type(value) is int and abs(value) >= _MAX_INTEGER for value in values)
    ):
        raise cannot_ask("Chroma", key, f"{'the negation of ' * negated}{operator}")
    if operator in ORDER:
        return _comparison(key, operator, operand)
    if operator == "$contains":
        # in Chroma a list of integers does not contain 1.0, nor a list of floats 1
        whole = type(operand) in (int, float) and abs(operand) < _MAX_INTEGER and operand == int(operand)
        items = [float(operand), int(operand)] if whole else [operand]
        clauses = [{key: {"$not_contains" if negated else operator: item}} for item in items]
    elif len(values) > 1 and all(isinstance(value, str) for value in values):
        return {key: {"$nin" if negated else "$in": values}}
    else:  # Chroma's own $in takes values of one type
        clauses = [_comparison(key, "$ne" if negated else "$eq", value) for value in values]
    return join_clauses("and" if negated else "or", clauses, join_mongo)


def _comparison(key: str, operator: str, value: Any) -> Clause:
    """Chroma (1.5.9) cuts a number's fraction off before it compares it with a stored integer: mend that.

    ``{"a": {"$gte": 1.5}}`` would find the integer 1, and ``{"a": {"$lt": 1.5}}`` would not.
    """
    clause: Clause = {key: {operator: value}}
    if not isinstance(value, float) or value.is_integer():
        return clause
    whole = int(value)
    passes = operator == "$ne" or (operator in ORDER and ORDER[operator](whole, value))
    word, mending = ("or", "$eq") if passes else ("and", "$ne")
    return join_mongo(word, [clause, {key: {mending: whole}}])
