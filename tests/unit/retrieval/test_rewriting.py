"""Rewriting retrievers alike: fall back, keep to budgets, pass k, filter and config to each leaf."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.runnables import RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore
from support.blocking import blockbuster_ctx
from support.rewriters import Scripted, Words, both, both_raise, corpus, ids, notes, sent

from rag_kit.concurrency import Budget, use_budget
from rag_kit.concurrency.notes import use_notes
from rag_kit.errors import (
    BranchError,
    BudgetExceededError,
    InvalidInputError,
    ModelError,
)
from rag_kit.models import JsonCache, chat_model
from rag_kit.prompts import load_prompt
from rag_kit.retrieval import (
    ConversationalRetriever,
    DecompositionRetriever,
    ExpansionRetriever,
    HyDERetriever,
    MultiQueryRetriever,
    Query2DocRetriever,
    StepBackRetriever,
    explain,
)
from rag_kit.retrieval.rewriting import RewritingRetriever

QUESTION = "Which fan is loud?"
DOCS = [
    *corpus(a="fan one", b="loud two", c="noise three", d="fan loud four", e="noise five"),
    *corpus(f="fan noise six"),
]

Make = Callable[..., RewritingRetriever]


def maker(cls: type[RewritingRetriever], answer: Any, **fixed: Any) -> Make:
    """How a technique is made: with a model that gives a script, and a retriever inside."""

    def make(script: Any = None, words: Any = None, **settings: Any) -> RewritingRetriever:
        reply = (answer if callable(answer) else json.dumps(answer)) if script is None else script
        model = reply if isinstance(reply, Scripted) else Scripted(script=reply)
        return cls.from_llm(model, words or Words(docs=DOCS), **fixed, **settings)

    return make


def _steps(prompt: str) -> str:
    if "<task>answer</task>" in prompt:
        return "Noise six [1]."
    return json.dumps({"queries": [] if "Noise six" in prompt else ["noise"]})


class Talking(ConversationalRetriever):
    """As if each call were made in the midst of a conversation."""

    async def _rewrite(self, question: str, call: Any) -> Any:
        call.arguments = {"history": [("user", "What is a fan?")]}
        return await super()._rewrite(question, call)


QUERIES, PASSAGES = {"queries": ["noise", "loud noise"]}, {"passages": ["noise of loud things"]}
GENERAL = {"query": "What is noise?"}
TECHNIQUES: dict[str, Make] = {
    "multi_query": maker(MultiQueryRetriever, QUERIES),
    "hyde": maker(HyDERetriever, PASSAGES),
    "step_back": maker(StepBackRetriever, GENERAL),
    "expansion": maker(ExpansionRetriever, {"queries": ["noise", "racket"]}),
    "query2doc": maker(Query2DocRetriever, PASSAGES),
    "parallel": maker(DecompositionRetriever, QUERIES),
    "serial": maker(DecompositionRetriever, _steps, mode="serial"),
    "conversation": maker(Talking, GENERAL),
}
each = pytest.mark.parametrize("make", TECHNIQUES.values(), ids=TECHNIQUES)


@each
async def test_differs_from_its_inner_retriever(make: Make) -> None:
    """The technique finds what its inner retriever alone does not."""
    words = Words(docs=corpus(n="noise", o="other"))
    assert words.invoke(QUESTION) == []
    assert ids(await both(make(words=words), QUESTION)) == ["n"]


@each
async def test_a_failing_model_leads_to_the_plain_search(make: Make) -> None:
    """By default a model that fails is noted, without keys, and the question alone is searched for."""
    retriever = make(ConnectionError("no route, api_key=sk-canary12345"))
    found = await both(retriever, QUESTION)
    assert ids(found) == ids(retriever.retriever.invoke(QUESTION))[:4] and sent(found) == [QUESTION]
    told = " ".join(notes(found))
    assert "degraded:" in told and "question alone" in told and "canary" not in told


@each
async def test_raise_policy(make: Make) -> None:
    """on_error="raise" raises the model's own error, and a search's."""
    failing = make(ConnectionError("no route"), on_error="raise")
    await both_raise(ModelError, "no route", failing, QUESTION)
    with pytest.raises(BranchError, match="the search is down"):
        make(words=Words(docs=DOCS, fail_on="noise"), on_error="raise").invoke(QUESTION)


@each
async def test_all_searches_failing_raises(make: Make) -> None:
    """When no search answers there is an error, not an empty list."""
    retriever = make(words=Words(docs=DOCS, fail_on="o"))
    await both_raise(BranchError, "the search is down", retriever, QUESTION)


@each
async def test_k_and_filter_reach_every_leaf(make: Make) -> None:
    """The call's k and filter, ANDed with the retriever's own, go to each search, and hold in the result."""
    words = Words(docs=DOCS, filter={"tenant": "t"})
    retriever = make(words=words, filter={"name": {"$ne": "a"}})
    retriever.invoke(QUESTION, None, k=2, filter={"year": 2000})
    await retriever.ainvoke(QUESTION, None, k=2, filter={"year": 2000})
    assert {request.k for _, request in words.asked} == {2}
    wanted = {"$and": [{"tenant": "t"}, {"name": {"$ne": "a"}}, {"year": 2000}]}
    flat = [json.dumps(request.filter) for _, request in words.asked]
    assert len(flat) >= 2 and all(all(json.dumps(part) in one for part in wanted["$and"]) for one in flat)


@each
async def test_fetch_k_and_k(make: Make) -> None:
    """fetch_k is what each search is asked for; k documents come back."""
    words = Words(docs=DOCS)
    assert len(await both(make(words=words, k=2, fetch_k=5), QUESTION)) == 2
    assert {request.k for _, request in words.asked} == {5}


@each
async def test_budgets_lead_to_the_plain_search(make: Make) -> None:
    """A cap on calls or tokens, or a deadline, ends the rewriting and is told; the search is still made."""
    for caps in ({"max_calls": 0}, {"max_tokens": 0}):
        retriever = make(**caps)
        found = await both(retriever, QUESTION)
        assert sent(found) == [QUESTION] and retriever.llm.prompts == []  # type: ignore[attr-defined]
        assert any("budget" in note for note in notes(found))
    slow = make(Scripted(script="{}", delay=3), deadline=0.3)
    for call in (lambda: slow.invoke(QUESTION), lambda: asyncio.run(slow.ainvoke(QUESTION))):
        begun = time.monotonic()
        found = await asyncio.to_thread(call)
        assert time.monotonic() - begun < 2.5 and sent(found) == [QUESTION]
    with pytest.raises(BudgetExceededError):
        make(max_calls=0, on_error="raise").invoke(QUESTION)
    with use_budget(Budget(max_calls=0)):
        assert sent(await both(make(), QUESTION)) == [QUESTION]


@each
async def test_the_cost_is_told(make: Make) -> None:
    """Active budgets are charged, and the provenance names calls and tokens."""
    with use_budget(Budget()) as budget:
        found = make().invoke(QUESTION)
    assert budget.calls >= 1 and budget.tokens > 0
    plural = "" if budget.calls == 1 else "s"
    assert f"model: {budget.calls} call{plural}, {budget.tokens} tokens" in notes(found)


@each
async def test_cached_answers_cost_no_call(make: Make, tmp_path: Path) -> None:
    """A second call takes the model's reply from the cache, sync and async; calls are 0 and explain says why."""
    path = tmp_path / "cache.sqlite"
    first = make(cache=path)
    found = first.invoke(QUESTION)
    asked = len(first.llm.prompts)  # type: ignore[attr-defined]
    assert asked >= 1 and first.cache is not None and len(first.cache) == asked
    second = make(cache=path)
    with use_budget(Budget()) as budget, blockbuster_ctx():
        again = await second.ainvoke(QUESTION)
    assert budget.calls == 0 and second.llm.prompts == []  # type: ignore[attr-defined]
    assert ids(again) == ids(found) and sent(again) == sent(found)
    plural = "" if asked == 1 else "s"
    assert f"model: 0 calls, 0 tokens, {asked} answer{plural} from the cache" in str(explain(again))
    assert ids(make(cache=path, max_calls=0).invoke(QUESTION)) == ids(found)
    make(cache=path).invoke("Which other fan is loud?")
    assert len(first.cache) > asked


@each
async def test_useless_answers_are_not_cached(make: Make, tmp_path: Path) -> None:
    """An answer that could not be used is asked for again."""
    useless = (
        "!" if make is TECHNIQUES["conversation"] else "嗡"
    )  # a complete question may be in another language
    script = json.dumps({"query": useless, "queries": [useless], "passages": [useless]}, ensure_ascii=False)
    retriever = make(Scripted(script=script), cache=tmp_path / "c")
    retriever.invoke(QUESTION)
    await retriever.ainvoke(QUESTION)
    assert retriever.cache is not None and len(retriever.cache) == 0


@each
async def test_a_broken_cache_is_no_failure(make: Make, tmp_path: Path) -> None:
    """A cache that breaks while it is in use is told, and the model is asked."""
    retriever = make(cache=tmp_path / "cache.sqlite", on_error="raise")
    (tmp_path / "cache.sqlite").write_bytes(b"\xff" * 100_000)
    found = await both(retriever, QUESTION)
    assert ids(found) == ids(make().invoke(QUESTION))
    assert any("cache failed" in note for note in notes(found))
    with pytest.raises(InvalidInputError, match="No cache of this version"):
        make(cache=tmp_path / "cache.sqlite")
    with pytest.raises(InvalidInputError, match="no identity of its own"):
        type(make()).from_llm(RunnableLambda(lambda messages: ""), Words(docs=[]), cache=tmp_path / "new")


@each
async def test_timeouts(make: Make) -> None:
    """A model or a search that hangs costs its time-out."""
    begun = time.monotonic()
    found = make(Scripted(script="{}", delay=3), timeout=0.2).invoke(QUESTION)
    assert sent(found) == [QUESTION]
    with pytest.raises(BranchError, match=r"in time|took longer"):
        make(words=Words(docs=DOCS, delay=3), timeout=0.2).invoke(QUESTION)
    assert time.monotonic() - begun < 2.9


@each
def test_wrong_parts(make: Make) -> None:
    """Wrong models, retrievers and values are refused at construction, by name."""
    for settings, says in (
        ({"words": "bm25"}, "retriever is str"),
        ({"weights": []}, "weights"),
        ({"weights": "12"}, "weights"),
        ({"language": "fr"}, "language"),
    ):
        with pytest.raises(InvalidInputError, match=says):
            make(**settings)
    with pytest.raises(InvalidInputError, match="llm is str"):
        type(make()).from_llm("gpt", Words(docs=[]))
    with pytest.raises(InvalidInputError, match="VectorRetriever"):
        TECHNIQUES["multi_query"](words=InMemoryVectorStore(DeterministicFakeEmbedding(size=4)))
    with pytest.raises(InvalidInputError, match="takes it first"):
        type(make()).from_llm(Words(docs=[]), Scripted(script=""))


@each
def test_a_mistake_in_the_prompt_is_not_hidden(make: Make) -> None:
    """A prompt that wants values the technique does not give raises, rather than degrade for ever."""
    from langchain_core.prompts import ChatPromptTemplate

    from rag_kit.prompts.library import prompt_from_text

    text = (
        '---\nname: own\ndescription: d\nversion: "1"\ninput:\n  question: q\n  colour: c\n---\n'
        '{{role "user"}}\n<question>{{question}}</question> {{colour}}\n'
    )
    with pytest.raises(InvalidInputError, match="colour"):
        make(prompt=prompt_from_text(text, name="own")).invoke(QUESTION)
    with pytest.raises(InvalidInputError, match="question"):
        make(prompt=ChatPromptTemplate([("user", "{other}")]))


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize(("name", "count"), [("step_back", 3), ("query2doc", 2)])
def test_examples_in_prompts_are_turns(name: str, count: int, language: str) -> None:
    """The prompt files show worked examples as user and model messages, whose replies fit the schema."""
    prompt = load_prompt(name, language=language)
    messages = prompt.format_messages(question="Q?")
    assert [message.type for message in messages] == ["system", *["human", "ai"] * count, "human"]
    assert "<question>Q?</question>" in str(messages[-1].content)
    for message in messages[2:-1:2]:
        assert prompt.output_schema.model_validate_json(str(message.content))  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("name", "answer", "word"),
    [
        ("hyde", {"passages": ["植物靠昆虫传粉繁殖。"]}, "百科条目"),
        ("query2doc", {"passages": ["植物靠昆虫传粉繁殖。"]}, "调压塔"),
        ("step_back", {"query": "昆虫传粉是什么？"}, "钱学森"),
    ],
)
async def test_chinese(name: str, answer: Any, word: str) -> None:
    """A Chinese question is put into the Chinese prompt, and what the model writes in Chinese is searched for."""
    words = Words(docs=corpus(a="昆虫传粉", b="下雨"))
    retriever = TECHNIQUES[name](json.dumps(answer, ensure_ascii=False), words, k=1)
    assert ids(await both(retriever, "花儿何以繁衍？")) == ["a"]
    assert word in retriever.llm.prompts[0]  # type: ignore[attr-defined]


@pytest.mark.parametrize("cls", [MultiQueryRetriever, StepBackRetriever, HyDERetriever, Query2DocRetriever])
async def test_the_embedded_model_rewrites_nothing(cls: Any, tmp_path: Path) -> None:
    """It is no language model: the question alone is searched for; where it stands in for one, that counts."""

    def unreachable(messages: Any) -> Any:
        raise ConnectionError("no route to host")

    embedded = chat_model("extractive")
    down = Scripted(script=unreachable)
    for model, unsearched in ((embedded, 0), (down.with_fallbacks([embedded]), 1)):
        cache = JsonCache(tmp_path / f"{unsearched}.db")
        retriever = cls.from_llm(model, Words(docs=DOCS), cache=cache)
        with use_notes() as collected:
            found = await both(retriever, QUESTION)
        assert sent(found) == [QUESTION] and len(collected.unsearched) == unsearched
        assert f"degraded: {retriever.task}: searched with the question alone" in notes(found)


async def test_what_the_embedded_model_does_by_a_rule_is_used_and_noted(tmp_path: Path) -> None:
    """The searches of the model that it stands in for count as not made; its answers are not kept for later."""
    question = "Compare the fan and the noise in terms of loudness."
    working = [False]

    def answer(messages: Any) -> Any:
        if not working[0]:
            raise ConnectionError("no route to host")
        return json.dumps({"queries": ["fan loudness", "loud noise"]})

    model = Scripted(script=answer).with_fallbacks([chat_model("extractive")])
    retriever = DecompositionRetriever.from_llm(
        model, Words(docs=DOCS), cache=JsonCache(tmp_path / "kept.db"), fusion="rrf"
    )
    with use_notes() as collected:
        found = await both(retriever, question)
    assert (
        len(sent(found)) > 1
        and len(collected.unsearched) == 1
        and "extractive was asked" in collected.unsearched[0]
    )
    working[0] = True
    with use_notes() as collected:
        assert "loud noise" in sent(await retriever.ainvoke(question))
    assert not collected.unsearched
