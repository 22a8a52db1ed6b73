"""LangChain's SelfQueryRetriever beside ours.

Each test first shows LangChain's behaviour, and so fails when LangChain mends it; then that ours is right.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import re
import uuid
import warnings
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models import FakeListChatModel
from langchain_core.runnables import RunnableLambda
from langchain_core.structured_query import Comparator, Comparison, StructuredQuery
from support.chroma import memory_client
from support.rewriters import Scripted

from rag_kit.documents import get_provenance
from rag_kit.query_construction import SelfQueryRetriever

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pytest.importorskip("lark", reason="LangChain parses filters with lark, which it does not declare")
    theirs = pytest.importorskip(
        "langchain_classic.retrievers.self_query.base",
        reason="LangChain's self-query is in langchain-classic",
    )
    constructing = pytest.importorskip("langchain_classic.chains.query_constructor.base")
    community = pytest.importorskip("langchain_community.query_constructors.chroma")
    from langchain_chroma import Chroma
    from langchain_classic.chains.query_constructor.schema import AttributeInfo

DOCS = [
    Document("old words", metadata={"year": 1999, "tenant": "a"}),
    Document("new words", metadata={"year": 2010, "tenant": "b"}),
]
FIELDS = [{"name": "year", "type": "integer", "description": "year of publication"}]


@pytest.fixture
def store() -> Any:
    """An embedded Chroma collection of its own."""
    chroma = Chroma(f"c{uuid.uuid4().hex}", DeterministicFakeEmbedding(size=8), client=memory_client())
    chroma.add_documents(DOCS)
    yield chroma
    chroma.delete_collection()


def their_retriever(store: Any, answer: StructuredQuery, **settings: Any) -> Any:
    return theirs.SelfQueryRetriever(
        vectorstore=store,
        query_constructor=RunnableLambda(lambda _: answer),
        structured_query_translator=community.ChromaTranslator(),
        **settings,
    )


def test_row_1_the_models_filter_overwrites_the_callers_own(store: Any) -> None:
    """Row 1. LangChain: the caller's filter is lost. Ours: the two are ANDed."""
    answer = StructuredQuery("words", Comparison(Comparator.EQ, "year", 2010))
    lost = their_retriever(store, answer, search_kwargs={"filter": {"tenant": "a"}}).invoke("words of 2010")
    assert [doc.metadata["tenant"] for doc in lost] == ["b"]
    model = Scripted(script=json.dumps({"query": "words", "filter": {"year": 2010}}))
    ours = SelfQueryRetriever.from_llm(model, store, schema=FIELDS, filter={"tenant": "a"}, relax=False)
    assert ours.invoke("words of 2010") == []
    kept = SelfQueryRetriever.from_llm(model, store, schema=FIELDS, filter={"tenant": "a"})
    assert [doc.metadata["tenant"] for doc in kept.invoke("words of 2010")] == ["a"]


@pytest.mark.parametrize(
    ("their_filter", "our_filter"),
    [
        ('eq("colour", "red")', {"field": "colour", "operator": "eq", "value": "red"}),
        ('in("year", [1999, 2010])', {"field": "year", "operator": "in", "value": [1999, 2010]}),
        ('contain("year", 1999)', {"field": "year", "operator": "contain", "value": 1999}),
        ('not(eq("year", 1999))', {"operator": "not", "arguments": [{"field": "year", "value": 1999}]}),
        ("year > 2000", "year > 2000"),
    ],
)
def test_row_10_any_unexpected_model_output_raises(store: Any, their_filter: str, our_filter: Any) -> None:
    """Row 10. LangChain: an exception. Ours: documents, and the repair told."""
    text = f"```json\n{json.dumps({'query': 'words', 'filter': their_filter})}\n```"
    info = [AttributeInfo(**field) for field in FIELDS]
    retriever = theirs.SelfQueryRetriever.from_llm(FakeListChatModel(responses=[text]), store, "texts", info)
    with pytest.raises(Exception, match=r"(?s).+"):
        retriever.invoke("words")
    model = Scripted(script=json.dumps({"query": "words", "filter": our_filter}))
    found = SelfQueryRetriever.from_llm(model, store, schema=info).invoke("words")
    assert found
    told = get_provenance(found[0])["stages"][-1]
    assert told["filter"] is not None or told["repairs"] or not isinstance(our_filter, dict)


def test_row_10_prose_raises(store: Any) -> None:
    """Row 10. LangChain: prose raises. Ours: the rules read the question."""
    info = [AttributeInfo(**field) for field in FIELDS]
    retriever = theirs.SelfQueryRetriever.from_llm(
        FakeListChatModel(responses=["Sure!"]), store, "texts", info
    )
    with pytest.raises(Exception, match=r"(?s).+"):
        retriever.invoke("words after 2000")
    found = SelfQueryRetriever.from_llm(Scripted(script="Sure!"), store, schema=info).invoke(
        "words after 2000"
    )
    assert [doc.metadata["year"] for doc in found] == [2010]


def test_row_11_fix_invalid_crashes_on_nested_filters(store: Any) -> None:
    """Row 11. LangChain: the repair of a nested filter raises. Ours: only the wrong condition goes."""
    text = 'and(eq("colour", "red"), or(eq("year", 2010), and(gt("size", 3), lt("year", 2011))))'
    parser = constructing.StructuredQueryOutputParser.from_components(
        allowed_attributes=["year"], allowed_comparators=list(Comparator), fix_invalid=True
    )
    with pytest.raises(Exception, match=r"(?s).+"):
        parser.parse(json.dumps({"query": "words", "filter": text}))
    nested = {
        "$and": [
            {"colour": "red"},
            {"$or": [{"year": 2010}, {"$and": [{"size": {"$gt": 3}}, {"year": {"$lt": 2011}}]}]},
        ]
    }
    model = Scripted(script=json.dumps({"query": "words", "filter": nested}))
    made = SelfQueryRetriever.from_llm(model, store, schema=FIELDS).construct_query("words")
    assert (
        made.filter == {"$or": [{"year": {"$eq": 2010}}, {"year": {"$lt": 2011}}]} and len(made.repairs) == 2
    )


def test_row_12_dates_fail_on_chroma(store: Any) -> None:
    """Row 12. LangChain: a date reaches Chroma as an object, and raises. Ours: as what the field holds."""
    date = {"date": "2005-01-01", "type": "date"}
    with pytest.raises(Exception, match=r"(?s).+"):
        their_retriever(store, StructuredQuery("words", Comparison(Comparator.GT, "year", date))).invoke(
            "words"
        )
    model = Scripted(
        script=json.dumps({"query": "words", "filter": {"field": "year", "operator": "gt", "value": date}})
    )
    found = SelfQueryRetriever.from_llm(model, store, schema=FIELDS).invoke("words")
    assert [doc.metadata["year"] for doc in found] == [2010]


def test_row_12_a_string_for_an_int_field_silently_returns_nothing(store: Any) -> None:
    """Row 12. LangChain: no document and no word. Ours: the text is read as a number, and it is told."""
    assert (
        their_retriever(store, StructuredQuery("words", Comparison(Comparator.EQ, "year", "2010"))).invoke(
            "words"
        )
        == []
    )
    model = Scripted(script=json.dumps({"query": "words", "filter": {"year": "2010"}}))
    (found,) = SelfQueryRetriever.from_llm(model, store, schema=FIELDS).invoke("words")
    assert found.metadata["year"] == 2010
    assert "repaired: year: '2010' was read as 2010" in get_provenance(found)["notes"]


def test_row_25_self_query_needs_packages_that_are_not_declared() -> None:
    """Row 25. LangChain 1.x has no retrievers; classic does not declare lark. Ours is whole."""
    assert importlib.util.find_spec("langchain") and importlib.util.find_spec("langchain.retrievers") is None
    names = [re.split(r"[ <>=!;\[]", line)[0].lower() for line in importlib.metadata.requires("langchain-classic") or []
             if "extra" not in line]  # fmt: skip
    assert "lark" not in names and "langchain-community" not in names
    source = importlib.util.find_spec("rag_kit.query_construction.self_query")
    assert source is not None and isinstance(SelfQueryRetriever, Callable)  # type: ignore[arg-type]
