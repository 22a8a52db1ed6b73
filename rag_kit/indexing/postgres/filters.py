"""Metadata filters as SQL: a condition on ``chunks AS c`` with the meaning of ``compile_filter``.

``c.fields`` is the metadata as jsonb. What jsonb lacks (NUL in texts, floats that are no decimal) the schema's function
``fields_of`` writes in another way, and so does this file with what a filter asks for.
"""

from __future__ import annotations

import json
from typing import Any

from rag_kit.documents import Filter
from rag_kit.documents.filters import translate
from rag_kit.errors import FilterError

_FIELD = "(c.fields -> %s::text)"
_ORDER = {"$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}
_WHOLE = 2**53  # from here on every float is a whole number
_MOST = 10**4300  # Python writes no whole number with more digits, so none is stored

Condition = tuple[str, list[Any]]


def where_sql(where: Filter | None) -> Condition:
    """A filter as a condition in SQL.

    Args:
        where: The filter; ``None`` and ``{}`` let everything pass.

    Returns:
        The condition, true or false for every row and never null, and what stands for its placeholders ``%s``: neither
        keys nor values are part of the SQL.

    Raises:
        FilterError: As ``validate_filter``; or the filter holds half a surrogate pair, which is no text.

    Example:
        >>> where_sql({"lang": "en"})
        ('((c.fields -> %s::text) IS NOT DISTINCT FROM %s::jsonb)', ['lang', '"en"'])
    """
    clause = translate(where, _leaf, _joined)
    return (str(clause).lower(), []) if isinstance(clause, bool) else clause


def _joined(word: str, parts: list[Condition]) -> Condition:
    sql = f" {word.upper()} ".join(sql for sql, _ in parts)
    return f"({sql})", [value for _, values in parts for value in values]


def _leaf(key: str, operator: str, operand: Any, negated: bool) -> Condition:
    sql, values = _condition(operator, operand)
    return f"NOT ({sql})" if negated else f"({sql})", [_text(key), *values]


def _condition(operator: str, operand: Any) -> Condition:
    """The condition on a field, whose key comes before the values."""
    if operator == "$exists":
        return f"coalesce(jsonb_typeof({_FIELD}), 'null') {'<>' if operand else '='} 'null'", []
    if operator == "$in":
        return f"coalesce({_FIELD} = ANY (%s::jsonb[]), false)", [[_json(item) for item in operand]]
    if operator == "$startswith":
        return f"coalesce(starts_with(typed({_FIELD}, 'string') #>> '{{}}', %s), false)", [_text(operand)]
    value = _json(operand)
    if operator == "$contains":
        return f"coalesce({_FIELD} @> %s::jsonb, false)", [f"[{value}]"]
    if operator == "$eq":
        return f"{_FIELD} IS NOT DISTINCT FROM %s::jsonb", [value]
    order = _ORDER[operator]
    if value.startswith('"'):  # jsonb has the database's order of texts, Python that of code points
        text = f"typed({_FIELD}, 'string') #>> '{{}}' COLLATE \"C\""
        return f"coalesce(({text}) {order} %s, false)", [json.loads(value)]
    return f"coalesce(typed({_FIELD}, 'number') {order} %s::jsonb, false)", [value]


def _json(value: Any) -> str:
    """A value as JSON, as the schema's ``fields_of`` writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return json.dumps(_text(value), ensure_ascii=False)
    if abs(value) < _WHOLE:
        return repr(int(value) if isinstance(value, int) else float(value))
    value = int(value)
    return str(value) if abs(value) < _MOST else f"{'-' * (value < 0)}1e5000"


def _text(value: str) -> str:
    text = str.__str__(value).replace("\1", "\1\2").replace("\0", "\1\1")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise FilterError(
            f"The filter holds half a surrogate pair, which is no text ({error.reason}): {text!a}."
        ) from None
    return text
