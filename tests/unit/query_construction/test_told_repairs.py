"""What a model or a question asks for and does not get is told, and never ends in an exception."""

from __future__ import annotations

import json
from datetime import date

import pytest
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from support.rewriters import both

from rag_kit.documents import get_provenance
from rag_kit.prompts.filter_schema import SelfQuery
from rag_kit.query_construction import SelfQueryRetriever
from rag_kit.query_construction.checking import check_answer
from rag_kit.query_construction.fields import Schema
from rag_kit.query_construction.rules.constructor import RuleConstructor

SCHEMA = Schema.of([{"name": "year", "type": "int"}])
TODAY = date(2026, 1, 1)


def nested(depth):
    where = {"year": 2010}
    for _ in range(depth):
        where = {"$and": [where]}
    return where


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ({"filter": "year > 2010"}, "'year > 2010': it is no form of a filter"),
        ({"filter": ["year > 2010", {"year": 2011}]}, "'year > 2010'"),
        ({"filter": 7}, "'7': it is no form of a filter"),
        ({"filter": nested(40)}, "nested deeper"),
        ({"filter": None, "limit": -4}, "limit -4"),
    ],
)
def test_what_a_model_says_in_vain_is_told(answer, told):
    """A filter that is no filter, or too large, does not vanish without a word."""
    form = SelfQuery.model_validate({"query": "x", **answer})
    made = check_answer(form, "x", SCHEMA, TODAY)
    assert [repair for repair in made.repairs if repair.startswith("dropped") and told in repair]
    reply = FakeListChatModel(responses=[json.dumps({"query": "fan", **answer})])
    documents = [Document("fan", metadata={"year": year}) for year in (2010, 2011)]
    found = SelfQueryRetriever.from_llm(reply, documents).invoke("fan")
    assert any(told in note for note in get_provenance(found[0])["notes"])


@pytest.mark.parametrize(
    "question", ["近三年" * 2000, "in the last three years or " * 2000, "not 2010, " * 2000]
)
def test_a_question_that_repeats_itself_has_a_filter(question):
    """A question cannot make a filter that is larger than filters may be."""
    made = RuleConstructor(today=TODAY).construct(question, SCHEMA)
    assert made.filter is None or len(str(made.filter)) < 100_000
    documents = [Document("fan 2025", metadata={"year": 2025}), Document("fan 2001", metadata={"year": 2001})]
    SelfQueryRetriever.from_rules(documents, schema=SCHEMA, today=TODAY).invoke(question)


@pytest.mark.parametrize(
    ("where", "years", "note"),
    [
        ({"field": "year", "op": "!=", "value": 2010}, [2001, 2020], 'filter, by model: {"year": {"$ne": 2010}}'),
        ({"logic": "or", "conditions": [{"year": 2010}, {"year": {"op": ">", "value": 2015}}]}, [2010, 2020], "$or"),
        ({"field": "year", "operator": "eq", "value": 2010, "unless": "x"}, [2001, 2010, 2020],
         "its key 'unless' is not understood"),
    ],
)  # fmt: skip
async def test_keys_that_models_make_up_reach_the_search_or_the_notes(where, years, note):
    """Other names of keys are searched with as they are meant; a key without a meaning is noted with its condition."""
    documents = [Document(f"fan {year}", metadata={"year": year}) for year in (2001, 2010, 2020)]
    reply = FakeListChatModel(responses=[json.dumps({"query": "fan", "filter": where})])
    found = await both(SelfQueryRetriever.from_llm(reply, documents, relax=False), "fan")
    assert sorted(doc.metadata["year"] for doc in found) == years
    assert any(note in told for told in get_provenance(found[0])["notes"])
