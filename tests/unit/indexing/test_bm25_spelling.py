"""Spelling: a word that no document has is searched by the nearest one that some have, with a note."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from langchain_core.documents import Document

from rag_kit.concurrency.notes import use_notes
from rag_kit.indexing import BM25Index, DocumentIndex
from rag_kit.retrieval import BM25Retriever, EnsembleRetriever, index_retriever
from rag_kit.text import Analyzer

TEXTS = [
    "The warranty lasts two years.",
    "Pumps and hoses, model XR-20",
    "水泵的保修期为两年。",
    "A warranted claim",
    "Der Akku von Frau Müller",
    "The résumé of a café",
    "The case",
    "A case",
]


def searched(
    index: BM25Index | DocumentIndex, query: str, **arguments: object
) -> tuple[list[str], list[str]]:
    """Search, and give the texts that were found and the notes."""
    search = index.search if isinstance(index, BM25Index) else index.search_keyword
    with use_notes() as notes:
        hits = search(query, **arguments)  # type: ignore[arg-type]
    return [document.page_content for document, _ in hits], notes.texts


@pytest.mark.parametrize(
    ("typed", "word"),
    [("warrenty", "warranty"), ("waranty", "warranty"), ("warrantty", "warranty"), ("warratny", "warranty"),
     ("pmups", "Pumps"), ("hozes", "hoses"), ("hoess", "hoses"), ("warratned", "warranted"), ("Müler", "Müller"),
     ("hozed", "hoses"), ("Muller", "Müller"), ("resume", "résumé"), ("cafe", "café")],
)  # fmt: skip
def test_one_wrong_letter_is_corrected(typed: str, word: str) -> None:
    """A letter more, less or other, two swapped, in an ending, before another one; notes have words as people write."""
    found, notes = searched(BM25Index.from_texts(TEXTS), f"{typed} and more")
    assert word in found[0] and notes == [f"searched {word!r} for {typed!r}"]


@pytest.mark.parametrize("query", ["warranty years", "XR-21", "wxrrxnty", "pmp", "twoo", "水蹦", "2043"])
def test_other_words_are_searched_as_typed(query: str) -> None:
    """Words that are there, identifiers, two wrong letters, short words and those near one, Chinese and numbers."""
    assert searched(BM25Index.from_texts(TEXTS), query)[1] == []


def test_a_corrected_word_counts_less_than_one_that_was_typed() -> None:
    """Among equal documents the one with the typed word comes first."""
    found, _ = searched(BM25Index.from_texts(["the hoses", "the pumps"]), "hozes pumps")
    assert found == ["the pumps", "the hoses"]


def test_the_order_of_the_documents_does_not_matter() -> None:
    """Among equally frequent terms, one that is written a letter away in any document, not in the first, is nearest."""
    texts = ["low tides", "at half tide", "the inner side", "all sides"]
    for order in (texts, texts[::-1]):
        found, notes = searched(BM25Index.from_texts(order), "wide")
        assert set(found) == {"the inner side", "all sides"} and notes == ["searched 'side' for 'wide'"]


def test_it_can_be_switched_off_and_is_stored(tmp_path: Path) -> None:
    """An analyzer without it searches words as typed, also in an index that was saved."""
    index = BM25Index.from_texts(TEXTS, analyzer=Analyzer(typos=False))
    index.save(tmp_path / "index")
    assert searched(BM25Index.load(tmp_path / "index"), "warrenty") == ([], [])


@pytest.mark.parametrize("kind", ["memory", "folder"])
def test_a_filter_hides_the_words_of_other_documents(kind: str, tmp_path: Path) -> None:
    """Words that a tenant may not read are neither found nor written in a note."""
    documents = [
        Document(text, id=str(n), metadata={"tenant": n % 2})
        for n, text in enumerate(["the merger", "the pump"])
    ]
    if kind == "memory":
        index: BM25Index | DocumentIndex = BM25Index.from_documents(documents)
    else:
        index = DocumentIndex.create(tmp_path / "index")
        index.upsert(documents)
    assert searched(index, "mergre", filter={"tenant": 1}) == ([], [])
    assert searched(index, "mergre", filter={"tenant": 0}) == (
        ["the merger"],
        ["searched 'merger' for 'mergre'"],
    )


async def test_notes_of_retrievers(tmp_path: Path) -> None:
    """Retrievers over memory and a folder note it, sync and async, inside an ensemble too; each once."""
    index = DocumentIndex.create(tmp_path / "index")
    index.upsert([Document(text, id=str(n)) for n, text in enumerate(TEXTS)])
    words = BM25Retriever.from_texts(TEXTS)
    for retriever in (words, index_retriever(index, "bm25"), EnsembleRetriever(retrievers=[words, words])):
        with use_notes() as notes:
            found = retriever.invoke("warrenty")
        with use_notes() as again:
            assert await retriever.ainvoke("warrenty") == found
        assert notes.texts == again.texts == ["searched 'warranty' for 'warrenty'"]


def test_a_long_query_of_unknown_words_takes_no_time() -> None:
    """Only so many words are corrected, and none that is longer than words are."""
    index = BM25Index.from_texts(TEXTS)
    begun = time.process_time()
    index.search(" ".join(f"zz{'abcdefghij'[n % 10] * (n % 40 + 1)}q" for n in range(5_000)))
    assert searched(index, "warrenty" * 10_000 + " " + "warr'enty" * 10_000) == ([], [])
    assert time.process_time() - begun < 2
