"""What a question was turned into: a text to search for, a filter, an order, a limit, and what was repaired."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from langchain_core.structured_query import StructuredQuery

from rag_kit.retrieval.stores import to_directive


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
        filter: The conditions, as a filter of the kit.
        sort: The order asked for ("the latest").
        limit: The number of documents asked for ("the three latest").
        constructor: ``"rules"`` or ``"model"``.
        repairs: What was changed or dropped on the way from the model's answer.
    """

    question: str
    query: str = ""
    filter: dict[str, Any] | None = None
    sort: Sort | None = None
    limit: int | None = None
    constructor: str = "rules"
    repairs: tuple[str, ...] = ()

    @property
    def structured_query(self) -> StructuredQuery:
        """The same in LangChain's form, for its translators."""
        return StructuredQuery(query=self.query, filter=to_directive(self.filter), limit=self.limit)

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON, as it stands in the provenance."""
        plain = asdict(self)
        del plain["question"]
        return {**plain, "repairs": list(self.repairs)}
