"""SparseRetriever and TrigramRetriever."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from support.blocking import blockbuster_ctx
from support.rewriters import both, both_raise

from rag_kit.documents import get_provenance
from rag_kit.errors import InvalidInputError, ModelError
from rag_kit.indexing import BM25Index
from rag_kit.retrieval import BM25Retriever, SparseRetriever, TrigramRetriever
from rag_kit.text import Analyzer
from rag_kit.text.analysis import CharacterNgrams

TEXTS = [
    "Information retrieval finds documents.",
    "Photographs of mountains",
    "A myocardial infarction",
    "The synchronisation failed with E_10428",
    "北京大学图书馆开放时间",
    "蓄电池的保修期为两年",
]


async def splade(texts: list[str]) -> list[dict[int, float]]:
    """An encoder that knows synonyms, as a trained one does; token numbers for terms."""
    tokens = {"car": 1, "automobile": 1, "vehicle": 1, "tree": 2, "oak": 2}
    return [{tokens[w]: 1.5 for w in text.lower().split() if w in tokens} for text in texts]


def tenants(owner: Any, **settings: Any) -> Any:
    documents = [Document(f"cat number {n}", metadata={"tenant": "ab"[n % 2], "n": n}) for n in range(20)]
    return owner.from_documents(documents, **settings)


async def test_a_trained_encoder_finds_what_words_do_not() -> None:
    """The encoder's terms count, not the words: BM25 over the same texts finds nothing."""
    texts = ["an automobile", "an oak"]
    retriever = SparseRetriever.from_texts(texts, encoder=splade)
    found = await both(retriever, "car")
    assert [doc.page_content for doc in found] == ["an automobile"]
    assert BM25Retriever.from_texts(texts).invoke("car") == []
    stage = get_provenance(found[0])["stages"][0]
    assert (stage["stage"], stage["score"], stage["max_score"], stage["rank"]) == ("sparse", 2.25, 2.25, 1)
    json.dumps(found[0].metadata)


async def test_a_failing_query_encoder() -> None:
    """Any error becomes one of the kit that names it; an error of the kit stays."""

    def failing(texts: list[str]) -> list[dict[str, float]]:
        raise (InvalidInputError if texts == ["own"] else ValueError)("no device")

    retriever = SparseRetriever.from_texts(["an oak"], encoder=splade, query_encoder=failing)
    for query, error in (("oak", ModelError), ("own", InvalidInputError)):
        await both_raise(error, "no device", retriever, query)


async def test_tfidf_in_both_languages() -> None:
    """The built-in encoder needs no model, in English and Chinese."""
    retriever = SparseRetriever.from_texts(TEXTS, k=1)
    assert [doc.page_content for doc in await both(retriever, "the documents' retrieval")] == [TEXTS[0]]
    assert [doc.page_content for doc in await both(retriever, "電池保修多久？")] == [TEXTS[5]]
    assert await both(retriever, "zebra") == [] == await both(retriever, "  ")
    score = get_provenance((await both(retriever, TEXTS[0]))[0])["score"]
    assert score == pytest.approx(1, abs=1e-5)  # a cosine


MISSPELLED = [
    ("retreival", 0),
    ("informatoin retrival", 0),
    ("photgraphs", 1),
    ("miocardial infraction", 2),
    ("sinchronization", 3),
]


@pytest.mark.parametrize(("query", "place"), MISSPELLED)
async def test_misspellings(query: str, place: int) -> None:
    """A misspelled query finds its document first, where BM25 over words as typed finds nothing."""
    as_typed = BM25Retriever.from_documents(list(map(Document, TEXTS)), analyzer=Analyzer(typos=False))
    assert as_typed.invoke(query) == []
    found = await both(TrigramRetriever.from_texts(TEXTS, k=2), query)
    assert found[0].page_content == TEXTS[place]
    assert get_provenance(found[0])["stages"][0]["stage"] == "trigram"
    json.dumps(found[0].metadata)


@pytest.mark.parametrize(("query", "place"), [("graph", 1), ("chronis", 3), ("1042", 3), ("cardia", 2)])
def test_substrings(query: str, place: int) -> None:
    """Parts of words and of numbers are found, where BM25 over words finds nothing."""
    assert BM25Retriever.from_texts(TEXTS).invoke(query) == []
    assert TrigramRetriever.from_texts(TEXTS).invoke(query)[0].page_content == TEXTS[place]


@pytest.mark.parametrize("query", ["北京大雪图书官", "圖書館開放", "北京大学图书馆开方时间"])
async def test_misspelled_chinese(query: str) -> None:
    """Wrong characters among right ones, and traditional ones, in Chinese."""
    assert (await both(TrigramRetriever.from_texts(TEXTS, k=1), query))[0].page_content == TEXTS[4]


@pytest.mark.parametrize("owner", [SparseRetriever, TrigramRetriever])
async def test_hostile_and_huge_queries(owner: Any) -> None:
    """Control marks, markup, lone surrogates and a very long query are only text; nothing blocks the loop."""
    retriever = owner.from_texts(TEXTS)
    with blockbuster_ctx():
        for query in (
            "\x00\x1b[31m",
            "<question>ignore</question>",
            "\ud800",
            "retrieval " * 20_000,
            "\u200b",
        ):
            assert await retriever.ainvoke(query) == retriever.invoke(query)


@pytest.mark.parametrize("owner", [SparseRetriever, TrigramRetriever])
def test_results_are_copies_and_ties_are_steady(owner: Any) -> None:
    """Equal scores come in insertion order; a result may be edited."""
    retriever = tenants(owner, k=20)
    found = retriever.invoke("cat number")
    found[0].metadata["n"] = "edited"
    again = retriever.invoke("cat number")
    same = [
        doc.metadata["n"]
        for doc in again
        if get_provenance(doc)["score"] == get_provenance(again[-1])["score"]
    ]
    assert same == sorted(same) and "edited" not in same and len(again) == 20


def test_min_match() -> None:
    """Weak matches are cut at a share of the highest score possible."""
    texts = ["retrieval", "receiver", "unrelated retail"]
    assert len(TrigramRetriever.from_texts(texts).invoke("retrieval")) == 3
    assert len(TrigramRetriever.from_texts(texts, min_match=0.3).invoke("retrieval")) == 1
    for share in (-0.1, 1.1, float("nan")):
        with pytest.raises(InvalidInputError, match="min_match"):
            TrigramRetriever.from_texts(texts, min_match=share)


def test_an_index_of_words_is_refused() -> None:
    """TrigramRetriever over an index of words would be word search under another name."""
    with pytest.raises(InvalidInputError, match="CharacterNgrams"):
        TrigramRetriever(index=BM25Index.from_texts(["a"]))


def test_the_index_of_characters_is_saved(tmp_path: Path) -> None:
    """It is saved, loaded, added to and deleted from as any BM25Index."""
    retriever = TrigramRetriever(index=BM25Index.from_texts(TEXTS, analyzer=CharacterNgrams()))
    retriever.index.save(tmp_path / "i")
    index = BM25Index.load(tmp_path / "i")
    assert index.analyzer == CharacterNgrams()
    index.add([Document("serendipity")], ids=["s"])
    loaded = TrigramRetriever(index=index, k=1)
    assert loaded.invoke("serendipty")[0].page_content == "serendipity"
    index.delete(["s"])
    assert loaded.invoke("serendipty") != ["serendipity"]


def test_an_index_of_other_sizes_is_refused() -> None:
    """An index of an earlier version may have n-grams of other lengths."""
    settings = CharacterNgrams().settings()
    assert settings["sizes"] == [3, 4] and CharacterNgrams.from_settings(settings) == CharacterNgrams()
    with pytest.raises(InvalidInputError, match="build the index again"):
        CharacterNgrams.from_settings({**settings, "sizes": [3]})


def test_ngrams_of_all_scripts() -> None:
    """Words have ends, close scripts have not; folding is that of words."""
    grams = CharacterNgrams()
    assert grams("AB a") == [" ab", "ab ", " ab ", " a "]
    assert grams("漢語") == ["汉", "语", "汉语"] and grams("汉") == ["汉"]
    assert grams("ＡＢ") == grams("ab") and grams("x_y") == grams("x y")
    assert grams("หมา") and grams("ひらがな")[4] == "ひら" and grams("한국어")[3:] == ["한국", "국어"]
    assert grams("") == [] == grams("!?")
