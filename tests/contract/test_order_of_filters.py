"""A year in the question holds, whether the question is rewritten before it is read for filters or after."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from langchain_core.documents import Document
from support.outages import ask
from support.rewriters import Scripted

from rag_kit.documents import get_provenance
from rag_kit.query_construction import SelfQueryRetriever
from rag_kit.retrieval import (
    BM25Retriever,
    HyDERetriever,
    MultiQueryRetriever,
    Query2DocRetriever,
    StepBackRetriever,
)


class Language(NamedTuple):
    """A question with a year, rewrites without it, and a text of each year."""

    question: str
    rewrites: tuple[str, str]
    text: str


LANGUAGES = {
    "en": Language("What is the hotel limit in 2025?", ("maximum hotel price", "hotel limit"), "Hotel limit: {}."),
    "zh": Language("2025年酒店限额是多少？", ("酒店最高价格", "酒店限额"), "酒店限额：{}。"),
}  # fmt: skip
REWRITERS: dict[str, tuple[Any, str]] = {
    "multi-query": (MultiQueryRetriever, "queries"),
    "step-back": (StepBackRetriever, "query"),
    "HyDE": (HyDERetriever, "passages"),
    "Query2Doc": (Query2DocRetriever, "passages"),
}
FILTER = {"join": "and", "conditions": [{"field": "year", "operator": "eq", "value": 2025}]}
NO_FILTER = {"join": "and", "conditions": []}


def documents(language: Language) -> list[Document]:
    """Two of each year, and one without a year that fits the rewrites best."""
    dated = [
        Document(language.text.format(f"{year} {number}"), metadata={"year": year})
        for year in (2023, 2024, 2025)
        for number in (1, 2)
    ]
    return [*dated, Document(" ".join(language.rewrites))]


def read_by_model(inner: Any) -> SelfQueryRetriever:
    """A model that sees a year only where there is one."""

    def reply(prompt: str) -> str:
        question = prompt.rpartition("[human]")[2]
        where = FILTER if "2025" in question else NO_FILTER
        return json.dumps({"query": question[:40], "filter": where})

    schema = [{"name": "year", "type": "int"}]
    return SelfQueryRetriever.from_llm(Scripted(script=reply), inner, schema=schema, k=4)


def read_by_rules(inner: Any) -> SelfQueryRetriever:
    return SelfQueryRetriever.from_rules(inner, schema=[{"name": "year", "type": "int"}], k=4)


#: What reads the question for filters inside what rewrites it, and around it.
ORDERS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "inside": lambda read, rewrite, base: rewrite(read(base)),
    "outside": lambda read, rewrite, base: read(rewrite(base)),
}


@pytest.mark.parametrize(
    ("language", "way"),
    [("en", "sync"), ("zh", "async"), pytest.param("en", "async", marks=pytest.mark.slow),
     pytest.param("zh", "sync", marks=pytest.mark.slow)],
)  # fmt: skip
@pytest.mark.parametrize("name", REWRITERS)
@pytest.mark.parametrize("read", [read_by_rules, read_by_model])
@pytest.mark.parametrize("order", ORDERS)
def test_the_order_does_not_matter(order: str, read: Any, name: str, language: str, way: str) -> None:
    """The passages are those of the year, and no note says that there was no filter."""
    words, (cls, field) = LANGUAGES[language], REWRITERS[name]
    answer = words.rewrites[0] if field == "query" else list(words.rewrites)
    model = Scripted(script=json.dumps({field: answer}))
    base = BM25Retriever.from_documents(documents(words), k=4)
    retriever = ORDERS[order](read, lambda inner: cls.from_llm(model, inner, k=4), base)
    found, notes = ask(retriever, words.question, way)
    assert sorted(doc.page_content for doc in found) == [words.text.format(f"2025 {n}") for n in (1, 2)]
    for said in (notes.texts, get_provenance(found[0])["notes"]):
        assert any("2025" in note for note in said), said
        assert not any(note.startswith("no filter") for note in said), said
