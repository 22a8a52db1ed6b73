"""A filter of the kit in the languages of Chroma and of Qdrant, so that the store gives the same rows, or refused."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from rag_kit.documents.filters import ORDER, Clause, Filter, compile_filter, join_clauses, translate
from rag_kit.errors import FilterError, MissingExtraError

if TYPE_CHECKING:
    from langchain_core.vectorstores import VectorStore

#: A filter for Chroma that no row passes.
_IMPOSSIBLE: dict[str, Any] = {"$and": [{"rag_kit": {"$eq": 0}}, {"rag_kit": {"$ne": 0}}]}
_MAX_CHROMA_INTEGER = 2**63  # Chroma keeps whole numbers in 64 bits
_MAX_QDRANT_INTEGER = 2**53  # Qdrant compares numbers as doubles, which are exact up to here
_UNQUOTED_KEY = re.compile(r"[^\W\d][\w-]*", re.ASCII)  # needs no quotes in a path, as in metadata.year


def to_chroma(where: Filter | None) -> dict[str, Any] | None:
    """Translate a filter into Chroma's ``where``; ``None`` if everything passes.

    Raises:
        FilterError: If the filter is wrong, or asks for what Chroma lacks: ``$exists``, ``$startswith``, ordering
            of strings, the negation of an ordering (it would have to find rows without the key), integers
            beyond 64 bits, keys that Chroma keeps for itself.

    Example:
        >>> to_chroma({"lang": "en", "year": {"$gte": 2020}})
        {'$and': [{'lang': {'$eq': 'en'}}, {'year': {'$gte': 2020}}]}
    """
    clause = translate(where, _chroma_clause, _join_in_chroma)
    return None if clause is True else dict(clause or _IMPOSSIBLE)


def _chroma_clause(key: str, operator: str, operand: Any, negated: bool) -> Clause:
    """Translate a condition into Chroma's language; raise FilterError for one that Chroma lacks."""
    values = operand if operator == "$in" else [operand]
    is_reserved = key.startswith(("#", "chroma:"))  # for Chroma's own keys
    # strings have no order there, and the negation of an order would miss rows without the key
    lacks_order = operator in ORDER and (negated or isinstance(operand, str))
    is_too_large = any(type(value) is int and abs(value) >= _MAX_CHROMA_INTEGER for value in values)
    if is_reserved or lacks_order or is_too_large or operator in ("$startswith", "$exists"):
        raise _cannot_ask("Chroma", key, f"the negation of {operator}" if negated else operator)
    if operator in ORDER:
        return _chroma_comparison(key, operator, operand)
    if operator == "$contains":
        items = [operand]
        if type(operand) in (int, float) and abs(operand) < _MAX_CHROMA_INTEGER and operand == int(operand):
            items = [
                float(operand),
                int(operand),
            ]  # for Chroma a list with 1 does not contain 1.0, nor the reverse
        clauses = [{key: {"$not_contains" if negated else "$contains": item}} for item in items]
    elif len(values) > 1 and all(isinstance(value, str) for value in values):
        return {key: {"$nin" if negated else "$in": values}}
    else:  # Chroma's own $in takes values of one type
        clauses = [_chroma_comparison(key, "$ne" if negated else "$eq", value) for value in values]
    return join_clauses("and" if negated else "or", clauses, _join_in_chroma)


def _chroma_comparison(key: str, operator: str, value: Any) -> Clause:
    """Make a comparison that also holds for stored integers.

    Chroma (1.5.9) cuts the fraction off before it compares with an integer: ``{"a": {"$gte": 1.5}}`` would find 1, and
    ``{"a": {"$lt": 1.5}}`` would not.
    """
    clause: Clause = {key: {operator: value}}
    if not isinstance(value, float) or value.is_integer():
        return clause
    # the integer that Chroma takes for the value is let in or kept out by a condition of its own
    integer = int(value)
    passes = operator == "$ne" or (operator in ORDER and ORDER[operator](integer, value))
    if passes:
        return _join_in_chroma("or", [clause, {key: {"$eq": integer}}])
    return _join_in_chroma("and", [clause, {key: {"$ne": integer}}])


def _join_in_chroma(word: str, clauses: list[Any]) -> dict[str, Any]:
    return {f"${word}": clauses}


def to_qdrant(where: Filter | None, *, metadata_key: str = "metadata") -> Any | None:
    """Translate a filter into a ``qdrant_client.models.Filter``; ``None`` if everything passes.

    Qdrant looks into lists for plain conditions too, so a comparison here also asks that the value is not a list;
    ``$contains`` asks for lists alone. Numbers are compared as ranges, for Qdrant keeps 1 and 1.0 apart. The payload
    holds the metadata under ``metadata_key``.

    Raises:
        FilterError: If the filter is wrong, or asks for what Qdrant lacks: ordering of strings, ``$startswith``,
            ``$exists`` (an empty list counts as missing there), whole numbers beyond 2**53, keys with quotes.
        MissingExtraError: If ``qdrant-client`` is not installed.
    """
    try:
        from qdrant_client import models
    except ImportError:
        raise MissingExtraError("qdrant", "A filter for Qdrant") from None
    clause = translate(where, partial(_qdrant_clause, models, metadata_key), partial(_join_in_qdrant, models))
    if clause is True:
        return None
    return clause or models.Filter(must=[models.HasIdCondition(has_id=[])])  # no document passes


def _join_in_qdrant(models: Any, word: str, clauses: list[Any]) -> Any:
    return models.Filter(must=clauses) if word == "and" else models.Filter(should=clauses)


def _qdrant_clause(models: Any, prefix: str, key: str, operator: str, operand: Any, negated: bool) -> Clause:
    """Translate a condition into Qdrant's ``models``; ``prefix`` is the path of the metadata in the payload."""
    values = operand if operator == "$in" else [operand]
    lacks_operator = operator in ("$exists", "$startswith")
    lacks_order = operator in ORDER and isinstance(operand, str)
    is_too_large = any(not isinstance(value, str) and abs(value) > _MAX_QDRANT_INTEGER for value in values)
    fits_no_path = '"' in key or "\\" in key or not key.isprintable()
    if lacks_operator or lacks_order or is_too_large or fits_no_path:
        raise _cannot_ask("Qdrant", key, operator)
    # in quotes, dots and brackets in a key are not read as steps of a path
    name = key if _UNQUOTED_KEY.fullmatch(key) else f'"{key}"'
    path = f"{prefix}.{name}" if prefix else name
    items_path = f"{path}[]"  # of the items, if the value is a list
    tested_path = items_path if operator == "$contains" else path
    clause = models.Filter(should=[_qdrant_test(models, tested_path, operator, value) for value in values])
    if operator != "$contains":  # Qdrant looks into lists too, these operators do not
        no_list = models.IsEmptyCondition(is_empty=models.PayloadField(key=items_path))
        clause = models.Filter(must=[clause, no_list])
    return models.Filter(must_not=[clause]) if negated else clause


def _qdrant_test(models: Any, path: str, operator: str, value: Any) -> Any:
    """Make Qdrant's condition that the value at a path, or an item of a list there, passes a comparison."""
    if isinstance(value, (str, bool)):
        return models.FieldCondition(key=path, match=models.MatchValue(value=value))
    # equal numbers as a range too: MatchValue takes no floats, and tells 1 from 1.0
    bounds = {operator.removeprefix("$"): value} if operator in ORDER else {"gte": value, "lte": value}
    return models.FieldCondition(key=path, range=models.Range(**bounds))


def _cannot_ask(store: str, key: str, operator: str) -> FilterError:
    return FilterError(f"{store} cannot ask {operator} of {key!r}. Leave it out, or filter the results.")


def made_by(store: VectorStore, package: str) -> bool:
    """Tell whether a store's class, or one of its base classes, comes from a package; the package is not imported."""
    return any(base.__module__.split(".")[0] == package for base in type(store).__mro__)


def translator_of(store: VectorStore) -> Callable[[Filter], Any] | None:
    """Return a function from the kit's filters to the ``filter`` argument of a store; ``None`` for an unknown store."""
    from langchain_core.vectorstores import InMemoryVectorStore

    if isinstance(store, InMemoryVectorStore):
        return _to_predicate
    if made_by(store, "langchain_chroma"):
        return to_chroma
    if made_by(store, "langchain_qdrant"):
        return partial(to_qdrant, metadata_key=str(getattr(store, "metadata_payload_key", "metadata")))
    return None


def _to_predicate(where: Filter) -> Callable[[Any], bool]:
    passes = compile_filter(where)
    return lambda document: passes(document.metadata)
