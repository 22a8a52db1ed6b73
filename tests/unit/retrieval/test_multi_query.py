"""MultiQueryRetriever and StepBackRetriever: other questions beside a question, their checks, their fusion."""

from __future__ import annotations

import json
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.prompts import ChatPromptTemplate
from support.rewriters import Scripted, Words, both, corpus, ids, notes, sent

from rag_kit.documents import get_provenance
from rag_kit.errors import InvalidInputError
from rag_kit.prompts import load_prompt
from rag_kit.retrieval import MultiQueryRetriever, StepBackRetriever, explain
from rag_kit.text.complexity import entity_queries

QUESTION = "Why is the blower loud?"
DOCS = corpus(
    fan="A worn ventilator hums at night.",
    blower="The blower moves air through the case.",
    disk="A disk may click before it fails.",
)


def reply(*queries: str) -> str:
    return json.dumps({"queries": list(queries)}, ensure_ascii=False)


def made(script: Any, docs: list[Document] = DOCS, **settings: Any) -> MultiQueryRetriever:
    return MultiQueryRetriever.from_llm(Scripted(script=script), Words(docs=docs), **settings)


async def test_every_query_is_in_the_provenance() -> None:
    """Each document tells the question, all queries sent, and which of them found it at which rank."""
    found = await both(made(reply("ventilator hums", "worn blower")), QUESTION)
    assert sent(found) == [QUESTION, "ventilator hums", "worn blower"]
    by_id = {doc.id: get_provenance(doc) for doc in found}
    assert [(stage["query"], stage["rank"], stage["role"]) for stage in by_id["fan"]["stages"][:-1]] == [
        ("ventilator hums", 1, "variant"),
        ("worn blower", 1, "variant"),
    ]
    last = by_id["fan"]["stages"][-1]
    assert (last["stage"], last["query"], last["technique"]) == ("fusion:rrf", QUESTION, "multi_query")
    assert any(note.startswith("model: 1 call, ") for note in by_id["fan"]["notes"])
    json.dumps(by_id, allow_nan=False)
    assert '"worn blower"' in str(explain(found))


async def test_row_19_fused_by_rank_with_weights() -> None:
    """Scores are sums of weight / (60 + rank); the first weight is the question's, the last holds for the rest."""
    docs = corpus(a="alpha", b="beta", c="beta gamma")
    found = await both(made(reply("beta", "gamma"), docs), "alpha")
    scores = {doc.id: get_provenance(doc)["score"] for doc in found}
    assert scores == pytest.approx({"c": 1 / 62 + 1 / 61, "a": 1 / 61, "b": 1 / 61})
    assert ids(await both(made(reply("beta", "gamma"), docs, weights=[5, 1]), "alpha"))[0] == "a"
    assert sent(await both(made(reply("beta", "gamma"), docs, weights=[0, 1]), "alpha")) == ["beta", "gamma"]


@pytest.mark.parametrize(
    "written",
    [
        "1. ventilator hums\n2) fan noise",
        "Sure! Here are the queries:\n- ventilator hums\n- fan noise",
        "<think>The user wants\n1. something</think>\n* ventilator hums\n* fan noise",
        '```json\n{"queries": ["ventilator hums", "fan noise"]}\n```',
        "<queries><query>ventilator hums</query><query>fan noise</query></queries>",
        reply("  ventilator hums ", "", "Ventilator Hums!", "fan noise", QUESTION, "why is the BLOWER loud"),
        reply("ventilator hums", "风扇噪音", "x" * 600, "fan noise"),
    ],
)
async def test_row_18_junk_is_kept_out(written: str) -> None:
    """Numbering, bullets, preambles, reasoning, repeats, another language and endless texts never become queries."""
    assert sent(await both(made(written), QUESTION)) == [QUESTION, "ventilator hums", "fan noise"]


async def test_what_was_dropped_is_told() -> None:
    """The provenance says how much of the model's output was dropped, and why."""
    found = await both(made(reply("fan", QUESTION, "风扇噪音", "?!"), DOCS), QUESTION)
    told = "dropped 3 that the model wrote: 1 repeats the question, 1 another language, 1 empty"
    assert told in notes(found)


async def test_no_more_than_n() -> None:
    """n is what the prompt asks for, and the most that is used."""
    retriever = made(reply("one", "two", "three", "four"), n=2)
    assert sent(await both(retriever, QUESTION)) == [QUESTION, "one", "two"]
    assert "<count>2</count>" in retriever.llm.prompts[0]  # type: ignore[attr-defined]


async def test_without_the_original() -> None:
    """include_original=False searches for the versions alone, and for the question if there are none."""
    assert sent(await both(made(reply("disk"), include_original=False), QUESTION)) == ["disk"]
    assert sent(await both(made("", include_original=False), QUESTION)) == [QUESTION]


async def test_chinese_questions_get_chinese_versions() -> None:
    """A Chinese question is put into the Chinese prompt, and a version in another language is dropped."""
    docs = corpus(a="电池保修两年", b="battery warranty")
    retriever = made(reply("电池保修期", "battery warranty"), docs)
    assert sent(await both(retriever, "电瓶能保多久？")) == ["电瓶能保多久？", "电池保修期"]
    assert "你负责编写检索用的查询" in retriever.llm.prompts[0]  # type: ignore[attr-defined]
    fixed = made(reply("电池保修期"), docs, language="en")
    await both(fixed, "电瓶能保多久？")
    assert "You write search queries" in fixed.llm.prompts[0]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("question", "entities"),
    [
        ("Compare A, B and C", ["A", "B", "C"]),
        ("compare the price of tea, coffee and cocoa in 2020", ["tea", "coffee", "cocoa"]),
        ("What is the difference between TCP and UDP?", ["TCP", "UDP"]),
        ("BM25 vs. TF-IDF", ["BM25", "TF-IDF"]),
        ("How does Chroma differ from Qdrant?", ["Chroma", "Qdrant"]),
        ("Which is faster, Rust or Go?", ["Rust", "Go"]),
        ("比较 A、B 和 C", ["A", "B", "C"]),
        ("请比较一下北京、上海以及广州的房价。", ["北京", "上海", "广州"]),
        ("苹果和三星有什么区别？", ["苹果", "三星"]),
        ("Chroma 与 Qdrant 哪个更快？", ["Chroma", "Qdrant"]),
        ("苹果和三星哪个好？", ["苹果", "三星"]),
        ("2007年，佩特里奇加盟哪个球队？", []),
        ("Who wrote Emma?", []),
        ("What happened in Rome and Paris?", []),
        ("Compare prices", []),
        ("谁写了《战争与和平》？", []),
        ("请问你和谁一起去？", []),
    ],
)
def test_the_things_compared(question: str, entities: list[str]) -> None:
    """The compared things are told by rule, in both languages; other questions have none."""
    assert [name for name, _ in entity_queries(question)] == entities


async def test_each_thing_compared_is_searched_for() -> None:
    """A comparison gets one search for each thing that no version is about alone, even if the model fails."""
    docs = corpus(tea="tea costs 2", coffee="coffee costs 3", cocoa="cocoa costs 4")
    question = "Compare tea, coffee and cocoa in terms of price"
    wanted = ["what tea costs", "tea or coffee", "coffee price", "cocoa price"]
    assert sent(await both(made(reply(*wanted[:2]), docs), question)) == [question, *wanted]
    found = await both(made(ConnectionError("down"), docs), question)
    assert sent(found) == [question, "tea price", "coffee price", "cocoa price"]
    assert any(note.startswith("degraded: multi_query failed") for note in notes(found))
    chinese = corpus(a="甲的价格", b="乙的价格")
    assert sent(await both(made(reply("甲多少钱"), chinese), "比较甲和乙的价格")) == [
        "比较甲和乙的价格",
        "甲多少钱",
        "乙的价格",
    ]


async def test_own_prompts() -> None:
    """Any chat prompt that takes the question will do; one that does not is refused at construction."""
    prompt = ChatPromptTemplate([("user", "Other words for {question}, please")])
    retriever = made("- fan noise\n- ventilator hums", prompt=prompt)
    assert sent(await both(retriever, QUESTION)) == [QUESTION, "fan noise", "ventilator hums"]
    assert f"Other words for {QUESTION}, please" in retriever.llm.prompts[0]  # type: ignore[attr-defined]
    english = {"en": load_prompt("multi_query")}
    await both(made(reply("风扇"), prompt=english), "风扇为什么响？")
    with pytest.raises(InvalidInputError, match="takes question"):
        made("", prompt=ChatPromptTemplate([("user", "{topic}")]))
    with pytest.raises(InvalidInputError, match="str"):
        made("", prompt="multi_query")


@pytest.mark.parametrize("kwargs", [{"n": 0}, {"n": 33}, {"n": True}, {"fusion": "no"}, {"weights": [-1]}])
def test_wrong_arguments(kwargs: dict[str, Any]) -> None:
    """A wrong argument is refused at construction, by name."""
    with pytest.raises(InvalidInputError, match=next(iter(kwargs)) + "|-1"):
        made("", **kwargs)


async def test_the_more_general_question_finds_the_background() -> None:
    """Results of the general question stand beside those of the question; both are in the provenance."""
    question, general = "Why does my bottle bulge?", "How are pressure and volume related?"
    docs = corpus(law="Pressure times volume is constant.", bottle="A bottle may bulge.", tea="Tea is hot.")

    def step_back(**settings: Any) -> StepBackRetriever:
        model = Scripted(script=json.dumps({"query": general}))
        return StepBackRetriever.from_llm(model, Words(docs=docs), **settings)

    retriever = step_back()
    assert ids(retriever.retriever.invoke(question)) == ["bottle"]
    found = await both(retriever, question)
    assert ids(found) == ["bottle", "law"] and sent(found) == [question, general]
    stage = get_provenance(found[1])["stages"][0]
    assert (stage["query"], stage["role"], stage["rank"]) == (general, "step_back", 1)
    assert ids(await both(step_back(weights=[1, 2]), question)) == ["law", "bottle"]
    assert sent(await both(step_back(include_original=False), question)) == [general]
    for nothing in ("None", "N/A", '{"query": "none"}'):
        written = StepBackRetriever.from_llm(Scripted(script=nothing), Words(docs=docs))
        found = await both(written, question)
        assert sent(found) == [question] and "does not fit Query" in str(notes(found))
