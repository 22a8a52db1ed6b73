"""What a question was turned into: a text to search for, a filter, an order, a limit, and what was repaired."""

from __future__ import annotations

import html
import json
from dataclasses import dataclass
from typing import Any

from langchain_core.structured_query import FilterDirective, StructuredQuery

from rag_kit.documents import clean_text
from rag_kit.query_construction.ir import to_filter


@dataclass(frozen=True)
class Sort:
    """An order by a field."""

    field: str
    descending: bool = True


@dataclass(frozen=True)
class ConstructedQuery:
    """A question as text and filter.

    Attributes:
        question: The question.
        query: The text to search for; empty where the question asks for documents by their metadata alone.
        directive: The conditions, in LangChain's IR.
        sort: The order asked for ("the latest").
        limit: The number of documents asked for ("the three latest").
        constructor: ``"rules"`` or ``"model"``, or ``"none"`` if neither gave anything.
        repairs: What was changed or dropped on the way from the model's answer.
    """

    question: str
    query: str = ""
    directive: FilterDirective | None = None
    sort: Sort | None = None
    limit: int | None = None
    constructor: str = "rules"
    repairs: tuple[str, ...] = ()

    @property
    def filter(self) -> dict[str, Any] | None:
        """The conditions as a filter of the kit."""
        return to_filter(self.directive)

    @property
    def structured_query(self) -> StructuredQuery:
        """The same in LangChain's form, for its translators."""
        return StructuredQuery(query=self.query, filter=self.directive, limit=self.limit)

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON, as it stands in the provenance."""
        sort = None if self.sort is None else {"field": self.sort.field, "descending": self.sort.descending}
        return {
            "query": self.query,
            "filter": self.filter,
            "sort": sort,
            "limit": self.limit,
            "constructor": self.constructor,
            "repairs": list(self.repairs),
        }

    def _repr_html_(self) -> str:
        rows = {"question": self.question, **self.as_dict()}
        cells = "".join(
            f"<tr><th>{name}</th><td style='text-align:left'><bdi>{html.escape(_cell(value))}</bdi></td></tr>"
            for name, value in rows.items()
            if value not in (None, "", [])
        )
        return f'<div class="tex2jax_ignore mathjax_ignore"><table>{cells}</table></div>'


def _cell(value: Any) -> str:
    if isinstance(value, list):
        return clean_text("; ".join(map(str, value)))
    return clean_text(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
