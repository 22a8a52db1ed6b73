"""The form in which a model states a search text, a metadata filter, an order and a limit.

The form is lenient on purpose: a filter is taken in any shape, and read and checked condition by condition afterwards,
so that one wrong field or value does not lose the others.
"""

import re
from collections.abc import Mapping
from typing import Any, ClassVar, Union

from pydantic import SkipValidation, model_validator

from rag_kit.prompts.fields import Form, ask_for

_JOIN_WORDS = {
    "and": "and all both every must match_all filter intersection && & 且 并且 而且 和 与 以及 同时 都 全部",
    "or": "or any either one at_least_one || | 或 或者 或是 任一 任意 至少一个",
    "not": "not nor none neither not_any 非 不 都不 均不 全不 皆不 都不是",
}
_JOIN_OF_WORD = {word: join for join, words in _JOIN_WORDS.items() for word in words.split()}
#: Names that models give to the keys that join or negate conditions.
LOGIC = ("join", "logic", "logical_operator", "combinator", "connector", "conjunction")
NOT = ("not", "$not", "negate", "negated", "exclude")
_FILTER_KEYS = ("filter", "filters", "where", "conditions", "metadata_filter")

Scalar = str | int | float | bool
Value = Union[str, int, float, bool, list[Scalar], None]  # noqa: UP007 - read at run time


class FilterCondition(Form):
    """One comparison of a metadata field with a value."""

    field: str = ask_for(
        "The name of a metadata field, exactly as listed.", "元数据字段的名称，与列出的完全一致。"
    )
    operator: str = ask_for(
        "eq, ne, gt, gte, lt, lte, in, nin or contain.", "eq、ne、gt、gte、lt、lte、in、nin 或 contain 之一。"
    )
    value: Value = ask_for(
        "The value; a list for in and nin; null asks for documents without the field.",
        "用来比较的值；in 和 nin 用列表；null 表示要找没有该字段的文档。",
    )


class FilterGroup(Form):
    """Conditions joined by and, or, not."""

    join: str = ask_for(
        '"and": all hold; "or": at least one holds; "not": none holds.',
        '"and"：全部成立；"or"：至少一个成立；"not"：一个都不成立。',
    )
    conditions: list["FilterCondition | FilterGroup"] = ask_for(
        "Conditions, or further groups.", "若干条件，或者嵌套的条件组。"
    )


class SelfQuery(Form):
    """A question as a text to search for and a filter."""

    reads_other_fields: ClassVar[bool] = True

    query: str = ask_for(
        "What to look for in the texts, without what the filter says; may be empty.",
        "要在正文中查找的内容，不含过滤条件已经表达的部分；可以为空。",
    )
    filter: SkipValidation[FilterCondition | FilterGroup | None] = ask_for(
        "The filter; null where none is asked for.", "过滤条件；问题没有提出条件时为 null。"
    )
    sort_by: str | None = ask_for(
        "The field to sort by, for the latest or largest; else null.",
        "要求最新、最大等时用来排序的字段；否则为 null。",
    )
    descending: bool = ask_for("True for the latest or largest first.", "最新或最大的排在最前时为 true。")
    limit: int | None = ask_for(
        "How many documents are asked for; null where not said.", "要求返回多少篇文档；没有说明时为 null。"
    )

    @model_validator(mode="before")
    @classmethod
    def _accept_loose_fields(cls, data: Any) -> Any:
        """Accept what models write instead: fields left out or of another type, the filter under another name."""
        if not isinstance(data, Mapping):
            return data
        if data and data.keys().isdisjoint((*cls.model_fields, *_FILTER_KEYS)):
            raise ValueError(f"it has none of the fields {', '.join(cls.model_fields)}")
        query, sort_by, limit = data.get("query"), data.get("sort_by"), data.get("limit")
        if isinstance(limit, str) and limit.strip().isdecimal():
            limit = int(limit)
        where = next((data[name] for name in _FILTER_KEYS if data.get(name)), None)
        if beside_filter := {name: data[name] for name in (*LOGIC, *NOT) if data.get(name)}:
            where = {**beside_filter, "conditions": where}  # a join beside the filter makes it a group
        return {
            "query": query if isinstance(query, str) else "",
            "filter": where,
            "sort_by": sort_by if isinstance(sort_by, str) and sort_by.strip() else None,
            "descending": str(data.get("descending", True)).lower() not in ("false", "asc", "0", "no"),
            "limit": limit if isinstance(limit, int) and not isinstance(limit, bool) else None,
        }


def join_of(word: Any) -> str | None:
    """Return the join that a word means: "and", "or" or "not" (``"None of" -> "not"``); None for another word."""
    if not isinstance(word, str):
        return None
    normal_form = re.sub(r"[\s_-]+", "_", word.strip().lower().lstrip("$")).removesuffix("_of")
    return _JOIN_OF_WORD.get(normal_form)
