"""Self-query: question to filter to rows, with model and by rule."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from datetime import date
from typing import Any

import pytest
from langchain_chroma import Chroma
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore
from support.chroma import memory_client
from support.rewriters import Scripted, Words, both, ids, notes

from rag_kit.concurrency import Budget, use_budget
from rag_kit.documents import explain, get_provenance
from rag_kit.errors import BranchError, BudgetExceededError, InvalidInputError, ModelError
from rag_kit.indexing import BM25Index, DocumentIndex
from rag_kit.models import chat_model
from rag_kit.prompts.library import prompt_from_text
from rag_kit.query_construction import SelfQueryRetriever, calling
from rag_kit.retrieval import BM25Retriever, EnsembleRetriever, VectorRetriever

DOCS = [
    Document("salt and pressure", id="a", metadata={"year": 2008, "mesh": ["Stroke", "Humans"], "tenant": "t1"}),
    Document("salt and sleep", id="b", metadata={"year": 2012, "mesh": ["Stroke"], "tenant": "t1"}),
    Document("sugar and sleep", id="c", metadata={"year": 2012, "mesh": ["Obesity", "Humans"], "tenant": "t2"}),
    Document("salt and sugar", id="d", metadata={"year": 2016, "mesh": ["Obesity"], "tenant": "t2"}),
    Document("tea", id="e", metadata={"mesh": ["Humans"], "tenant": "t1"}),
]  # fmt: skip
SCHEMA = [
    {"name": "year", "type": "int"},
    {"name": "mesh", "type": "list[str]", "allowed": ["Stroke", "Obesity", "Humans"]},
]
QUESTION = "salt in Stroke since 2010"
ANSWER = {
    "query": "salt",
    "filter": {
        "join": "and",
        "conditions": [
            {"field": "mesh", "operator": "contain", "value": "Stroke"},
            {"field": "year", "operator": "gte", "value": 2010},
        ],
    },
    "sort_by": None,
    "descending": True,
    "limit": None,
}


def by_model(script: Any = None, words: Any = None, **settings: Any) -> SelfQueryRetriever:
    script = json.dumps(ANSWER) if script is None else script
    script = json.dumps(script) if isinstance(script, dict) else script
    model = script if isinstance(script, Scripted) else Scripted(script=script)
    inner = BM25Retriever.from_documents(DOCS) if words is None else words
    return SelfQueryRetriever.from_llm(model, inner, **{"schema": SCHEMA, **settings})


def by_rules(words: Any = None, **settings: Any) -> SelfQueryRetriever:
    inner = BM25Retriever.from_documents(DOCS) if words is None else words
    return SelfQueryRetriever.from_rules(inner, **{"schema": SCHEMA, **settings})


each = pytest.mark.parametrize("make", [by_model, by_rules], ids=["model", "rules"])
Make = Callable[..., SelfQueryRetriever]


@each
async def test_provenance_goes_from_question_to_filter_to_rows(make: Make) -> None:
    """The last stage holds question, text, filter; notes and explain show it; all of it is JSON."""
    (found,) = await both(make(), QUESTION)
    stage = get_provenance(found)["stages"][-1]
    assert stage["query"] == QUESTION and stage["stage"] == "self_query" and "salt" in stage["searched"]
    assert stage["filter"] == {"$and": [{"mesh": {"$contains": "Stroke"}}, {"year": {"$gte": 2010}}]}
    assert [stage["stage"] for stage in get_provenance(found)["stages"]] == ["bm25", "self_query"]
    json.dumps(found.metadata["rag_kit"])
    shown = explain([found])
    assert '"$gte": 2010' in str(shown) and "$gte" in shown._repr_html_()


@each
async def test_row_1_the_callers_filter_is_anded_and_reaches_the_leaf(make: Make) -> None:
    """Row 1: static and per-call filters hold beside the question's, and when conditions are dropped."""
    words = Words(docs=DOCS)
    retriever = make(words=words, filter={"tenant": "t2"})
    assert ids(await both(retriever, QUESTION)) == ["d"]  # relaxed, but never out of t2
    assert any(note.startswith("relaxed:") for note in notes(retriever.invoke(QUESTION)))
    for _, request in words.asked:
        assert json.dumps(request.filter).count('"tenant": "t2"') == 1
    assert retriever.invoke(QUESTION, None, filter={"tenant": "t1"}) == []
    plain = make(words=RunnableLambda(lambda query: DOCS), filter={"tenant": "t1"})
    assert ids(await both(plain, QUESTION)) == ["b"]


def test_values_of_other_tenants_are_not_offered() -> None:
    """Fields and values are found out from rows that pass the caller's filter, static and per call."""
    docs = [
        Document("x", metadata={"tenant": "t1", "project": "Apple"}),
        Document("y", metadata={"tenant": "t2", "project": "Secret"}),
    ]
    model = Scripted(script=json.dumps({"query": "x", "filter": None}))
    retriever = SelfQueryRetriever.from_llm(model, docs, filter={"tenant": "t1"})
    retriever.invoke("x")
    assert "Apple" in model.prompts[0] and "Secret" not in model.prompts[0]
    model = Scripted(script=json.dumps({"query": "x", "filter": None}))
    open_ = SelfQueryRetriever.from_llm(model, docs)
    open_.invoke("x", None, filter={"tenant": "t1"})
    asyncio.run(open_.ainvoke("x", None, filter={"tenant": "t1"}))
    assert all("Apple" in prompt and "Secret" not in prompt for prompt in model.prompts)


@pytest.mark.parametrize(
    "reply",
    [
        "I cannot help with that.",
        "",
        "<think>year > 2000</think>",
        {"query": "salt", "filter": "year > 2000"},
        {"query": "salt", "filter": 'and(gt("year", 2000))'},
        {"query": "salt", "filter": [1, 2]},
        {"query": "salt", "filter": {"field": "colour", "operator": "eq", "value": "red"}},
        {"query": "salt", "filter": {"field": "year", "operator": "near", "value": 2010}},
        {"query": "salt", "filter": {"field": "year", "operator": "gt", "value": "soon"}},
        {"query": "salt", "filter": {"operator": "not", "arguments": [{"operator": "and", "arguments": []}]}},
        {"query": "salt", "filter": {"comparator": "in", "attribute": "year", "value": []}},
        {"query": 3, "filter": {"a": {"b": {"c": {"d": 1}}}}},
        {"query": "salt", "filter": {"$where": "1==1"}, "limit": -5, "sort_by": "__proto__"},
    ],
)
async def test_row_10_no_model_output_raises(reply: Any) -> None:
    """Row 10: whatever the model writes, documents come back and nothing raises."""
    assert await both(by_model(reply), "salt")


async def test_a_failing_model_hands_over_to_the_rules() -> None:
    """A model that fails is noted, without keys; the rules make the filter. on_error="raise" raises."""
    failing = ConnectionError("no route, api_key=sk-canary12345")
    found = await both(by_model(failing), QUESTION)
    assert ids(found) == ["b"]
    told = " ".join(notes(found))
    assert "degraded:" in told and "rules" in told and "canary" not in told
    with pytest.raises(ModelError, match="no route"):
        by_model(failing, on_error="raise").invoke(QUESTION)
    with pytest.raises(ModelError):
        await by_model(failing, on_error="raise").ainvoke(QUESTION)


async def test_budgets() -> None:
    """Caps on calls, tokens and time end the asking; the rules take over, and it is told."""
    for caps in ({"max_calls": 0}, {"max_tokens": 0}):
        retriever = by_model(**caps)
        found = await both(retriever, QUESTION)
        assert ids(found) == ["b"] and retriever.llm.prompts == []  # type: ignore[union-attr]
        assert any("budget" in note for note in notes(found))
    slow = by_model(Scripted(script="{}", delay=3), deadline=0.4)
    for call in (lambda: slow.invoke(QUESTION), lambda: asyncio.run(slow.ainvoke(QUESTION))):
        begun = time.monotonic()
        found = await asyncio.to_thread(call)
        assert time.monotonic() - begun < 2 and ids(found) == ["b"]
    with pytest.raises(BudgetExceededError):
        by_model(max_calls=0, on_error="raise").invoke(QUESTION)
    with use_budget(Budget()) as budget:
        found = by_model().invoke(QUESTION)
    assert f"model: {budget.calls} call, {budget.tokens} tokens" in notes(found)


def test_the_extractive_model_means_rules() -> None:
    """The model that is no language model is not asked; the rules make the filter."""
    retriever = SelfQueryRetriever.from_llm(chat_model("extractive"), DOCS, schema=SCHEMA)
    (found,) = retriever.invoke(QUESTION)
    assert get_provenance(found)["stages"][-1]["constructor"] == "rules"
    assert not any("degraded" in note for note in notes([found]))


async def test_relaxation_when_nothing_matches() -> None:
    """Conditions go from the last named to the first; the notes say which; relax=False forbids it."""
    question = "salt in Stroke since 2014"
    found = await both(by_rules(), question)
    assert ids(found) == ["b", "a"] or set(map(str, ids(found))) == {"a", "b"}
    assert any('dropped {"year": {"$gte": 2014}}' in note for note in notes(found))
    assert get_provenance(found[0])["stages"][-1]["applied"] == {"mesh": {"$contains": "Stroke"}}
    assert await both(by_rules(relax=False), question) == []


async def test_the_three_latest() -> None:
    """An order and a number in the question: all that pass are sorted by the field, and cut."""
    found = await both(by_rules(), "the two latest papers with Humans")
    assert ids(found) == ["c", "a"]
    assert ids(await both(by_rules(), "the oldest paper about Stroke")) == ["a"]
    assert ids(await both(by_rules(), "最新的一篇关于Obesity的文章")) == ["d"]
    answer = {"query": "", "filter": None, "sort_by": "year", "descending": True, "limit": 3}
    for words in (None, RunnableLambda(lambda query: DOCS)):
        found = await both(by_model(answer, words=words), "three latest")
        assert [doc.metadata["year"] for doc in found] == [2016, 2012, 2012]
    found = await both(by_model({**answer, "limit": 9}, k=2), "nine latest")
    assert len(found) == 2 and any("k=2 holds" in note for note in notes(found))


def test_an_order_over_too_many_rows_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The latest of the first rows is not the latest of all."""
    monkeypatch.setattr(calling, "_MAX_SORTED", 4)
    found = by_rules().invoke("the latest paper")
    assert "sorted by year among the first 4 that pass, in the order of the collection" in notes(found)
    monkeypatch.setattr(calling, "_MAX_SORTED", 5)
    assert "sorted by year among all 5 that pass" in notes(by_rules().invoke("the latest paper"))


async def test_a_question_that_is_all_filter_lists_what_passes() -> None:
    """Documents that share no word with the question are found by their metadata, up to k."""
    found = await both(by_rules(), "papers tagged Humans")
    assert set(map(str, ids(found))) == {"a", "c", "e"}
    assert {get_provenance(doc)["stages"][-1]["how"] for doc in found} == {"listed"}


def of_tenant(name: str | None = None, **settings: Any) -> BM25Retriever:
    return BM25Retriever.from_documents(DOCS, filter=name and {"tenant": name}, **settings)


@pytest.mark.parametrize("given", [{}, {"documents": DOCS}, {"schema": SCHEMA}])
@pytest.mark.parametrize(
    ("make", "found"),
    [
        (lambda: EnsembleRetriever(retrievers=[of_tenant("t1"), of_tenant("t2")]), "ace"),
        (lambda: EnsembleRetriever(retrievers=[of_tenant("t1"), of_tenant()]), "ace"),
        (lambda: EnsembleRetriever(retrievers=[of_tenant(), of_tenant("t2")]), "ace"),
        (lambda: EnsembleRetriever(retrievers=[of_tenant("t1"), of_tenant("t2")], filter={"tenant": "t1"}), "ae"),
        (lambda: of_tenant("t1").with_fallbacks([of_tenant("t2")]), "ae"),
    ],
)  # fmt: skip
def test_rows_of_each_member_of_an_ensemble_are_listed(make: Any, found: str, given: dict[str, Any]) -> None:
    """Each under its own filter, and each row once; of a fallback those of the first."""
    retriever = SelfQueryRetriever.from_rules(make(), **given)
    assert "mesh" in {field.name for field in retriever.schema_in_use}
    assert sorted(map(str, ids(retriever.invoke("papers tagged Humans")))) == [*found]


def hiding(**kwargs: Any) -> Any:
    """A store's retriever whose rows may be hidden by a filter in the store's own words."""
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
    store.add_documents(DOCS)
    return store.as_retriever(search_kwargs={"k": 1, **kwargs})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("search_params", {"hnsw_ef": 64}), ("ef", 5), ("num_candidates", 9), ("include", ["x"]),
        ("with_payload", True), ("with_vectors", True), ("alpha", 0.5), ("param", {"ef": 1}), ("fields", ["x"]),
        ("score_threshold", 0.1), ("fetch_k", 9), ("lambda_mult", 1), ("where", None),
    ],
)  # fmt: skip
def test_rows_are_listed_whatever_else_a_store_is_told(name: str, value: Any) -> None:
    """Further words for a search of a store hide no rows."""
    assert SelfQueryRetriever.from_rules(hiding(**{name: value})).schema_in_use


@pytest.mark.parametrize(
    "name",
    [
        "where", "where_document", "expr", "pre_filter", "post_filter", "namespace", "tenant", "query_filter",
        "search_filter", "filters", "filter_expression", "partition_names", "post_filter_pipeline",
    ],
)  # fmt: skip
@pytest.mark.parametrize("nested", [False, True])
def test_no_rows_are_listed_of_a_store_that_hides_some_in_its_own_words(name: str, nested: bool) -> None:
    """Also not in an ensemble, where those of other members are listed."""
    hidden = hiding(**({"param": {name: "x"}} if nested else {name: "x"}))
    with pytest.raises(InvalidInputError, match="cannot be read"):
        SelfQueryRetriever.from_rules(hidden)
    both_of_them = EnsembleRetriever(retrievers=[hidden, of_tenant("t1")])
    fields = SelfQueryRetriever.from_rules(both_of_them).schema_in_use
    assert {field.name: field.values for field in fields}["tenant"] == ("t1",)


def shortened(query: str) -> list[Document]:
    return [Document(doc.page_content.split()[0], id=doc.id, metadata=doc.metadata) for doc in DOCS[:1]]


@pytest.mark.parametrize("ensemble", [False, True])
def test_a_document_that_was_shortened_is_not_listed_again(ensemble: bool) -> None:
    """An id tells that it is the same, or its words where several stores may have numbered their documents."""
    inner: Any = RunnableLambda(shortened)
    inner = EnsembleRetriever(retrievers=[inner, RunnableLambda(lambda query: [])]) if ensemble else inner
    found = SelfQueryRetriever.from_rules(inner, documents=DOCS).invoke("papers tagged Humans")
    assert sorted(map(str, ids(found))) == ["a", "c", "e"]


async def test_dates_of_every_form_reach_a_field_of_dates() -> None:
    """A field of ISO dates is found out; month, day and relative dates become ranges."""
    docs = [
        Document(f"note {day}", id=day, metadata={"day": day})
        for day in ("2019-12-31", "2020-05-03", "2020-06-01")
    ]
    retriever = SelfQueryRetriever.from_rules(docs, today=date(2020, 6, 15), relax=False)
    for question, expected in (
        ("notes from May 2020", ["2020-05-03"]),
        ("2020年5月的note", ["2020-05-03"]),
        ("notes before 2020-05-03", ["2019-12-31"]),
        ("notes of last month", ["2020-05-03"]),
        ("notes of last year", ["2019-12-31"]),
        ("notes since 3 May 2020", ["2020-05-03", "2020-06-01"]),
        ("notes after May 2020", ["2020-06-01"]),
        ("notes not in May 2020", ["2019-12-31", "2020-06-01"]),
    ):
        assert sorted(map(str, ids(await both(retriever, question)))) == expected, question


@pytest.mark.parametrize(
    ("question", "found"),
    [
        ("notes of the end of 2015", {"2015-01-01"}), ("notes of mid-2015", {"2015-01-01"}),
        ("2015年底的notes", {"2015-01-01"}), ("notes of early 2015", {"2015-01-01"}),
        ("notes since late 2015", {"2015-01-01", "2016-01-01"}),
        ("notes before late 2015", {"2014-01-01", "2015-01-01"}),
        ("notes after early 2015", {"2015-01-01", "2016-01-01"}),
        ("notes after the end of 2015", {"2016-01-01"}),
        ("notes from mid-2015 to early 2016", {"2015-01-01", "2016-01-01"}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("as_number", [False, True])
def test_rows_dated_by_year_are_in_any_part_of_it(question: str, found: set[str], as_number: bool) -> None:
    """Dates that are all the first of a year tell no more than the year."""
    docs = [
        Document(
            f"note {number}", id=day, metadata={"day_date": int(day.replace("-", "")) if as_number else day}
        )
        for number, day in enumerate(("2014-01-01", "2015-01-01", "2016-01-01"))
    ]
    retriever = SelfQueryRetriever.from_rules(docs, today=date(2020, 6, 15), relax=False)
    assert set(map(str, ids(retriever.invoke(question)))) == found


def test_sources(tmp_path: Any) -> None:
    """Fields are found out from documents, BM25Index, DocumentIndex, in-memory store, ensembles; refresh sees more."""
    index = DocumentIndex.create(tmp_path / "index")
    index.upsert(DOCS)
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
    store.add_documents(DOCS)
    bm25 = BM25Index.from_documents(DOCS)
    parts: list[Any] = [DOCS, bm25, index, store, store.as_retriever()]
    parts.append(EnsembleRetriever(retrievers=[BM25Retriever(index=bm25), store.as_retriever()]).with_retry())
    for part in parts:
        retriever = SelfQueryRetriever.from_rules(part)
        assert {"year", "mesh"} <= set(retriever.schema_in_use.names)
        assert ids(retriever.invoke("Stroke since 2010")) == ["b"], part
    index.close()
    chroma = Chroma("sources", DeterministicFakeEmbedding(size=8), client=memory_client())
    chroma.add_documents([Document(doc.page_content, id=doc.id, metadata=doc.metadata) for doc in DOCS])
    for part in (chroma, VectorRetriever(vectorstore=chroma)):
        assert "year" in SelfQueryRetriever.from_rules(part).schema_in_use.names
    retriever = SelfQueryRetriever.from_rules(bm25)
    assert retriever.construct_query("about Asthma").filter is None
    bm25.add([Document("new", metadata={"mesh": ["Asthma"]})])
    retriever.refresh()
    assert retriever.construct_query("about Asthma").filter == {"mesh": {"$contains": "Asthma"}}
    with pytest.raises(InvalidInputError, match="schema="):
        SelfQueryRetriever.from_rules(RunnableLambda(lambda query: DOCS))


async def test_a_failing_search_raises_and_a_slow_one_times_out() -> None:
    """There is one search: when it fails or hangs, that is an error."""
    with pytest.raises(BranchError, match="the search is down"):
        by_rules(words=Words(docs=DOCS, fail_on="s")).invoke(QUESTION)
    with pytest.raises(BranchError, match=r"in time|took longer"):
        await by_rules(words=Words(docs=DOCS, delay=3), timeout=0.2).ainvoke(QUESTION)


def test_wrong_arguments() -> None:
    """Wrong models, retrievers, schemas and values are refused at construction, by name."""
    for settings, says in (
        ({"words": "bm25"}, "retriever is str"),
        ({"relax": 3}, "relax"),
        ({"schema": "year"}, "schema is str"),
        ({"schema": [{"name": "$and"}]}, r"\$and"),
        ({"schema": [{"name": "a", "type": "blob"}]}, "blob"),
    ):
        with pytest.raises(InvalidInputError, match=says):
            by_rules(**settings)
    with pytest.raises(InvalidInputError, match="takes it first"):
        SelfQueryRetriever.from_llm(Words(docs=[]), Scripted(script=""), schema=SCHEMA)
    with pytest.raises(InvalidInputError, match="fields"):
        by_model(prompt=ChatPromptTemplate([("user", "{question}")]))
    text = (
        '---\nname: own\ndescription: d\nversion: "1"\ninput:\n  question: q\n  fields: f\n  colour: c\n---\n'
        '{{role "user"}}\n<question>{{question}}</question> {{fields}} {{colour}}\n'
    )
    with pytest.raises(InvalidInputError, match="colour"):
        by_model(prompt=prompt_from_text(text, name="own")).invoke(QUESTION)


def test_prompt_in_the_language_of_the_question() -> None:
    """Chinese questions get the Chinese prompt; language= fixes it."""
    model = Scripted(script=json.dumps(ANSWER))
    by_model(model).invoke("2010年以来关于Stroke的研究")
    by_model(model).invoke(QUESTION)
    by_model(model, language="zh").invoke(QUESTION)
    assert ["请把问题" in prompt for prompt in model.prompts] == [True, False, True]
