"""ExpansionRetriever: more terms for the search, by a model, a thesaurus, or templates."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document
from support.blocking import blockbuster_ctx
from support.rewriters import Scripted, Words, both, corpus, ids, notes, sent

from rag_kit.documents import get_provenance
from rag_kit.errors import InvalidInputError
from rag_kit.indexing import BM25Index, DocumentIndex
from rag_kit.retrieval import BM25Retriever, ExpansionRetriever, index_retriever
from rag_kit.retrieval.expansion.retriever import key_phrases
from rag_kit.retrieval.expansion.thesaurus import Thesaurus

TEXTS = {
    "infarction": "Myocardial infarction: signs and treatment",
    "heart": "The heart of the matter",
    "tea": "Tea is hot",
    "computer": "计算机的保修期为两年",
    "rain": "今天下雨",
}
DOCS = corpus(**TEXTS)
THESAURUS = {"heart attack": ["myocardial infarction", "MI"], "电脑": "计算机"}


def bm25(docs: Any = DOCS, **settings: Any) -> BM25Retriever:
    return BM25Retriever.from_documents(docs, **settings)


def reply(*terms: str) -> str:
    return json.dumps({"queries": list(terms)}, ensure_ascii=False)


def by_model(script: Any, retriever: Any = None, **settings: Any) -> ExpansionRetriever:
    return ExpansionRetriever.from_llm(Scripted(script=script), retriever or bm25(), **settings)


def terms(found: list[Document]) -> list[dict[str, Any]]:
    return list(get_provenance(found[0])["stages"][-1]["terms"])


# Thesaurus


async def test_a_thesaurus_finds_what_bm25_does_not() -> None:
    """A document that holds only the synonym is found, in one search; the provenance names the term."""
    question = "heart attacks"
    assert ids(bm25().invoke(question)) == ["heart"]
    found = await both(ExpansionRetriever.from_thesaurus(THESAURUS, bm25()), question)
    assert ids(found) == ["heart", "infarction"]
    assert terms(found) == [
        {"term": "myocardial infarction", "weight": 0.5, "source": "thesaurus"},
        {"term": "MI", "weight": 0.5, "source": "thesaurus"},
    ]
    assert sent(found) == ["heart attacks myocardial infarction MI"]
    json.dumps([doc.metadata for doc in found])
    heavy = ExpansionRetriever.from_thesaurus(THESAURUS, bm25(), term_weight=2)
    assert ids(await both(heavy, question)) == ["infarction", "heart"]


async def test_chinese() -> None:
    """Chinese terms match inside a sentence, in either script."""
    retriever = ExpansionRetriever.from_thesaurus(THESAURUS, bm25(), k=1)
    for question in ("电脑坏了怎么办", "電腦壞了怎麼辦"):
        assert bm25().invoke(question) == []
        assert ids(await both(retriever, question)) == ["computer"]


async def test_another_retriever_is_asked_both() -> None:
    """A retriever without weights gets the question, and the question with the terms behind it."""
    words = Words(docs=DOCS)
    retriever = ExpansionRetriever.from_thesaurus(THESAURUS, words)
    found = await both(retriever, "heart attack")
    assert sent(found) == ["heart attack", "heart attack myocardial infarction MI"]
    assert set(ids(found)) == {"heart", "infarction"} and terms(found)[0]["weight"] is None
    alone = ExpansionRetriever.from_thesaurus(THESAURUS, words, include_original=False)
    assert sent(await both(alone, "heart attack")) == ["heart attack myocardial infarction MI"]


async def test_nothing_to_add_is_the_plain_search() -> None:
    """A question without a term of the thesaurus: the plain search, said so, and not called degraded."""
    retriever = ExpansionRetriever.from_thesaurus(THESAURUS, bm25())
    found = await both(retriever, "hot tea")
    assert ids(found) == ids(bm25().invoke("hot tea")) == ["tea"] and sent(found) == ["hot tea"]
    assert "expansion: nothing to add" in notes(found)
    assert not any(note.startswith("degraded") for note in notes(found))
    assert not any(note.startswith("model:") for note in notes(found))  # there is none
    score = get_provenance(bm25().invoke("hot tea")[0])["score"]
    assert get_provenance(found[0])["score"] == score


def test_finding_terms() -> None:
    """Word forms, several words, the longest first, whole words only, case, width, punctuation between."""
    thesaurus = Thesaurus(
        {
            "car": "auto",
            "heart attack": "MI",
            "attack": "assault",
            "C": "Celsius",
            "深度学习": ["神经网络"],
            "学习": "掌握",
        }
    )
    assert thesaurus.find("Cars! A HEART-ATTACK, an attack") == {
        "Cars": ["auto"],
        "HEART-ATTACK": ["MI"],
        "attack": ["assault"],
    }
    assert thesaurus.find("care, scar, carton") == {}
    assert thesaurus.find("深度学习与学习") == {"深度学习": ["神经网络"], "学习": ["掌握"]}
    assert thesaurus.find("ＣＡＲ") == {"ＣＡＲ": ["auto"]} and thesaurus.find("") == {}


def test_directions_and_groups() -> None:
    """A dict goes one way; a list of lists brings all from each."""
    one = Thesaurus({"car": ["auto", "motor"]})
    groups = Thesaurus([["car", "auto", "motor"], ["tea"]])
    assert one.find("auto") == {}
    assert groups.find("autos") == {"autos": ["car", "motor"]} and groups.find("tea") == {}


@pytest.mark.parametrize(
    "entries",
    ["car", None, {"car": 3}, {"car": []}, {"": ["a"]}, {"!": ["a"]}, [[]]],
)  # fmt: skip
def test_entries_that_are_refused(entries: Any) -> None:
    """A value that is no thesaurus is refused."""
    with pytest.raises(InvalidInputError):
        Thesaurus(entries)


def test_files(tmp_path: Path) -> None:
    """JSON and CSV, with a byte order mark, quotes and empty cells; the path may be given for the thesaurus."""
    table, objects, lists = tmp_path / "t.csv", tmp_path / "t.json", tmp_path / "l.json"
    table.write_text(
        '\ufeffheart attack,"myocardial infarction, acute",MI,\n\n电脑,计算机\nheart attack,AMI\n',
        encoding="utf-8",
    )
    objects.write_text(json.dumps(THESAURUS, ensure_ascii=False), encoding="utf-8")
    lists.write_text('[["tv", "television"]]', encoding="utf-8")
    assert Thesaurus.from_file(table).find("heart attack 電腦") == {
        "heart attack": ["myocardial infarction, acute", "MI", "AMI"],
        "電腦": ["计算机"],
    }
    assert Thesaurus.from_file(lists).find("televisions") == {"televisions": ["tv"]}
    assert ids(ExpansionRetriever.from_thesaurus(objects, bm25(), k=1).invoke("电脑坏了怎么办")) == [
        "computer"
    ]
    assert ExpansionRetriever(thesaurus=str(table), retriever=bm25()).thesaurus is not None


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("t.csv", b"car,auto\nlonely\n", "line 2"),
        ("t.csv", b"\xff\xfe", "utf-8"),
        ("t.json", b"{", "Expecting"),
        ("t.json", b"[" * 100_000, "recursion"),
        ("t.json", b'{"a": 3}', "int"),
        ("t.json", b"3", "int"),
        ("t.txt", b"a,b", ".csv"),
    ],
)
def test_files_that_are_refused(tmp_path: Path, name: str, content: bytes, says: str) -> None:
    """The message names the file and, in a table, the line."""
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InvalidInputError, match=says) as caught:
        Thesaurus.from_file(tmp_path / name)
    assert name in str(caught.value)
    with pytest.raises(InvalidInputError, match="No such file"):
        Thesaurus.from_file(tmp_path / "none.csv")
    with pytest.raises(InvalidInputError):
        Thesaurus.from_file(tmp_path)


# Model


async def test_a_model_gives_terms() -> None:
    """Terms of the model join the search, in the language of the question and its prompt."""
    retriever = by_model(reply("myocardial infarction", "cardiac arrest"))
    found = await both(retriever, "heart attacks")
    assert ids(found) == ["heart", "infarction"] and terms(found)[1]["source"] == "model"
    assert any("model: 1 call" in note for note in notes(found))
    chinese = by_model(reply("计算机"))
    assert ids(await both(chinese, "电脑坏了怎么办")) == ["computer"]
    assert "关键词检索" in chinese.llm.prompts[0]  # type: ignore[union-attr]


async def test_the_models_terms_are_bounded() -> None:
    """Repeats, words of the question, endless ones and more than asked for are dropped."""
    written = ["Heart", "infarction", "INFARCTION", "x" * 200, *(f"term{n}" for n in range(20))]
    found = await both(by_model(reply(*written), n=3), "heart attack")
    assert [term["term"] for term in terms(found)] == ["infarction", "term0"]
    # beside other terms "None" is a word; alone it means that there is nothing
    found = await both(by_model(reply("None", "undefined")), "heart attack")
    assert [term["term"] for term in terms(found)] == ["None", "undefined"]
    assert sent(await both(by_model(reply("None")), "heart attack")) == ["heart attack"]


async def test_a_failing_model_beside_a_thesaurus() -> None:
    """Words of the thesaurus are still added, and a note reports the failure."""
    retriever = by_model(ConnectionError("no route"), thesaurus=THESAURUS)
    found = await both(retriever, "heart attack")
    assert ids(found) == ["heart", "infarction"]
    assert any(note.startswith("degraded: expansion failed") for note in notes(found))


# Templates


async def test_templates() -> None:
    """Each key term in each template is a search of its own, fused with the question's."""
    words = Words(docs=corpus(what="what is rot", rot="bit", other="zzz"))
    retriever = ExpansionRetriever(retriever=words, templates=["What is {term}?", "Who uses {term}?"])
    found = await both(retriever, "bit rot in disks")
    assert sent(found) == [
        "bit rot in disks",
        "What is bit rot?",
        "Who uses bit rot?",
        "What is disks?",
        "Who uses disks?",
    ]
    assert set(ids(found)) == {"what", "rot"}
    built_in = ExpansionRetriever(retriever=words, templates=True)
    assert sent(await both(built_in, "bit"))[:2] == ["bit", "What is bit?"]
    chinese = ExpansionRetriever(retriever=bm25(), templates=True)
    assert sent(await both(chinese, "保修期"))[1] == "什么是保修期？"


async def test_templates_with_terms() -> None:
    """Terms of the thesaurus come first in templates; the question that is one already is not repeated."""
    retriever = ExpansionRetriever.from_thesaurus(THESAURUS, bm25(), templates=["What is {term}?"])
    found = await both(retriever, "Symptoms of a heart attack")
    assert sent(found)[1:3] == ["What is heart attack?", "What is Symptoms?"]
    same = ExpansionRetriever(retriever=bm25(), templates=["What is {term}?"])
    assert sent(await both(same, "What is tea?")) == ["What is tea?"]


@pytest.mark.parametrize("templates", ["What is {term}?", ["What?"], [3], [], {"a": 1}, 3])
def test_templates_that_are_refused(templates: Any) -> None:
    """A template is a text with {term} in it."""
    with pytest.raises(InvalidInputError, match="template"):
        ExpansionRetriever(retriever=bm25(), templates=templates)


def test_braces_in_templates_and_terms_are_text() -> None:
    """Nothing is formatted: other braces stay as they are."""
    retriever = ExpansionRetriever(retriever=bm25(), templates=["{0.__class__} {term}"])
    assert "{0.__class__} hot tea" in sent(retriever.invoke("hot tea"))


@given(st.text(max_size=60))
def test_key_phrases_are_parts_of_the_question(question: str) -> None:
    """Whatever the text, phrases are verbatim parts of it, each once."""
    phrases = key_phrases(question)
    assert all(phrase in question for phrase in phrases) and len(set(phrases)) == len(phrases)


# Arguments


@pytest.mark.parametrize("settings", [{"term_weight": 0}, {"n": 33}])
def test_settings_that_are_refused(settings: dict[str, Any]) -> None:
    """Out of range: refused by name."""
    with pytest.raises(InvalidInputError, match=next(iter(settings))):
        ExpansionRetriever.from_thesaurus(THESAURUS, bm25(), **settings)


def test_parts_that_do_not_fit() -> None:
    """No source at all."""
    with pytest.raises(InvalidInputError, match="from_thesaurus"):
        ExpansionRetriever(retriever=bm25())


# Over the keyword leg of an index

ASPIRIN = corpus(a="aspirin thins blood", b="aspirin thins blood well", c="warfarin thins blood", d="tea")


@pytest.fixture
def index(tmp_path: Path) -> Iterator[DocumentIndex]:
    """A small index without vectors."""
    with DocumentIndex.create(tmp_path / "index") as made:
        made.upsert(ASPIRIN)
        yield made


def expansion(searched: Any, **settings: Any) -> ExpansionRetriever:
    """Expansion by a thesaurus, over a keyword retriever or that of an index."""
    leg = index_retriever(searched, "bm25") if isinstance(searched, DocumentIndex) else searched
    return ExpansionRetriever.from_thesaurus({"aspirin": ["warfarin"]}, leg, **settings)


def scores(found: list[Document]) -> list[tuple[str | None, float]]:
    return [(doc.id, pytest.approx(get_provenance(doc)["score"])) for doc in found]


async def test_terms_over_an_index_are_those_over_bm25(index: DocumentIndex) -> None:
    """Terms, weights, scores and order are those of the same documents in a BM25Index, sync and async."""
    memory = BM25Retriever(index=BM25Index.from_documents(ASPIRIN))
    for query in ("aspirin", "warfarin well", "aspirin tea"):
        found = await both(expansion(index), query)
        expected = await both(expansion(memory), query)
        assert found and scores(found) == scores(expected)
        last = [get_provenance(doc)["stages"][-1].get("terms") for doc in (found[0], expected[0])]
        assert last[0] == last[1]
    assert ids(await both(index_retriever(index, "bm25"), "aspirin")) == ["a", "b"]
    assert ids(await both(expansion(index), "aspirin"))[2:] == ["c"]


async def test_a_hybrid_without_vectors_will_do(index: DocumentIndex) -> None:
    """It is keyword search, whose note reaches the results."""
    found = await both(expansion(index_retriever(index), k=3), "aspirin")
    assert ids(found)[2:] == ["c"] and any("no vectors" in note for note in notes(found))


async def test_expansion_follows_writes(index: DocumentIndex) -> None:
    """Rows written or deleted after the retriever was made count at once."""
    retriever = expansion(index)
    index.delete(["a", "b", "c"])
    assert await both(retriever, "aspirin") == []
    index.upsert(corpus(e="aspirin and willow bark", f="warfarin"))
    assert ids(await both(retriever, "aspirin")) == ["e", "f"]


async def test_nothing_blocks_the_event_loop(index: DocumentIndex) -> None:
    """Reading the store is done on a thread."""
    retriever = expansion(index)
    with blockbuster_ctx():
        assert ids(await retriever.ainvoke("aspirin"))[2:] == ["c"]


async def test_a_failing_store_is_told(index: DocumentIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the terms cannot be read, the question alone is searched for, and the notes say so."""

    def fail(*_: Any, **__: Any) -> Any:
        raise OSError("the disk is away")

    monkeypatch.setattr("rag_kit.retrieval.expansion.retriever.reader_of", fail)
    found = await both(expansion(index), "aspirin")
    assert ids(found) == ["a", "b"]
    assert any(note.startswith("degraded: keyword index failed: OSError") for note in notes(found))


def test_a_view_searches_with_weights(index: DocumentIndex) -> None:
    """Weighted terms are searched with filter and k; equal scores are ordered by id; bad input is refused."""
    view = index.keyword_view()
    assert view.analyzer("thinning") == ["thin"]
    assert [doc.id for doc, _ in view.search_weighted({"warfarin": 1, "tea": 9}, 1)] == ["d"]
    assert [doc.id for doc, _ in view.search_weighted({"tea": 1, "aspirin": 1}, 4, {"name": "a"})] == ["a"]
    index.upsert(corpus(z="oak", y="oak"))
    assert [doc.id for doc, _ in index.keyword_view().search_weighted({"oak": 1})] == ["y", "z"]
    for terms, k in (({"tea": -1}, 1), ({"tea": 1}, 0)):
        with pytest.raises(InvalidInputError):
            view.search_weighted(terms, k)
