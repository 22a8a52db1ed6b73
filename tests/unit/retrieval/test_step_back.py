"""StepBackRetriever: the more general question beside the question."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.rewriters import Scripted, Words, both, corpus, ids, notes, sent

from rag_kit.documents import get_provenance
from rag_kit.prompts import load_prompt
from rag_kit.retrieval import StepBackRetriever

QUESTION = "Why does my bottle bulge?"
GENERAL = "How are pressure and volume related?"
DOCS = corpus(law="Pressure times volume is constant.", bottle="A bottle may bulge.", tea="Tea is hot.")


def reply(query: str) -> str:
    return json.dumps({"query": query}, ensure_ascii=False)


def made(script: Any, docs: Any = DOCS, **settings: Any) -> StepBackRetriever:
    return StepBackRetriever.from_llm(Scripted(script=script), Words(docs=docs), **settings)


async def test_finds_the_background() -> None:
    """What only the general question finds is found beside what the question finds; both stand in the provenance."""
    retriever = made(reply(GENERAL))
    assert ids(retriever.retriever.invoke(QUESTION)) == ["bottle"]
    found = await both(retriever, QUESTION)
    assert ids(found) == ["bottle", "law"] and sent(found) == [QUESTION, GENERAL]
    stage = get_provenance(found[1])["stages"][0]
    assert (stage["query"], stage["role"], stage["rank"]) == (GENERAL, "step_back", 1)
    assert ids(await both(made(reply(GENERAL), weights=[1, 2]), QUESTION)) == ["law", "bottle"]
    assert sent(await both(made(reply(GENERAL), include_original=False), QUESTION)) == [GENERAL]


@pytest.mark.parametrize(
    "written", [GENERAL, f"<think>hm</think>{GENERAL}", f"<query>{GENERAL}</query>", f'Query: "{GENERAL}"']
)
async def test_forms_of_answers(written: str) -> None:
    """Plain text, reasoning before it, tags and labels give the same question."""
    assert sent(await both(made(written), QUESTION)) == [QUESTION, GENERAL]


@pytest.mark.parametrize(
    "written", ["", reply(QUESTION.upper()), reply("压强与体积有什么关系？"), reply("x" * 600)]
)
async def test_useless_answers(written: str) -> None:
    """Nothing, the question again, another language or an endless text: the plain search, and a note."""
    found = await both(made(written), QUESTION)
    assert ids(found) == ["bottle"] and sent(found) == [QUESTION]
    assert "degraded: step_back: searched with the question alone" in notes(found)


@pytest.mark.parametrize(("language", "word"), [("en", "Estella Leopold"), ("zh", "钱学森")])
def test_the_examples_are_turns(language: str, word: str) -> None:
    """The prompt file shows worked examples as user and model messages, whose replies fit the schema."""
    prompt = load_prompt("step_back", language=language)
    messages = prompt.format_messages(question="Q?")
    assert [message.type for message in messages] == ["system", *["human", "ai"] * 3, "human"]
    assert word in str(messages[1].content) and "<question>Q?</question>" in str(messages[-1].content)
    for message in messages[2:-1:2]:
        assert prompt.output_schema.model_validate_json(str(message.content)).query  # type: ignore[union-attr]


async def test_chinese() -> None:
    """A Chinese question is put into the Chinese prompt with its examples."""
    retriever = made(reply("电池的保修规定是什么？"), corpus(a="保修规定：两年", b="下雨"))
    assert ids(await both(retriever, "刚买的电瓶坏了？")) == ["a"]
    assert "钱学森" in retriever.llm.prompts[0]  # type: ignore[attr-defined]
