"""Titles and headings are searched with the texts below them; what is returned is the text."""

from __future__ import annotations

from pathlib import Path

import pytest
from langchain_core.documents import Document
from support.embedding import WordEmbeddings

from rag_kit.indexing import DocumentIndex, IngestOptions, ingest, searched
from rag_kit.indexing.searched import embedded_text, searched_text
from rag_kit.retrieval import index_retriever

pytestmark = pytest.mark.usefixtures("backend")

SECTION = "The pump needs oil every ten hours, and the valve wants to be cleaned with water. " * 4
CHINESE = "水泵每十小时需要加一次油，阀门应当用清水洗净，然后装回原处并拧紧。" * 5
BOOKS = {
    "en": ("Orion", "# The Orion handbook\n\n" + "".join(f"## Part {n}\n\n{SECTION}\n\n" for n in range(12))),
    "zh": ("猎户座手册", "# 猎户座手册\n\n" + "".join(f"## 第{n}部分\n\n{CHINESE}\n\n" for n in range(12))),
}


def handbook(folder: Path, language: str) -> Path:
    folder.mkdir()
    (folder / "book.md").write_text(BOOKS[language][1], encoding="utf-8")
    (folder / "other.md").write_text("# Recipes\n\nA soup of beans.\n", encoding="utf-8")
    return folder


@pytest.mark.parametrize("language", ["en", "zh"])
async def test_the_name_of_a_handbook_finds_all_of_its_chunks(tmp_path: Path, language: str) -> None:
    """By keyword, by vector and by both, sync and async; the chunks come back as they stand in the file."""
    word, text = BOOKS[language]
    model = WordEmbeddings()
    ingest(
        handbook(tmp_path / "docs", language),
        tmp_path / "index",
        embeddings=model,
        options=IngestOptions(chunk_size=400),
    )
    with DocumentIndex.open(tmp_path / "index", embeddings=model) as index:
        everything = [chunk for chunk in index.get(index.ids()) if "book.md" in chunk.metadata["source"]]
        assert len(everything) >= 12
        assert sum(word in chunk.page_content for chunk in everything) == 1
        assert {doc.id for doc, _ in index.search_keyword(word, 100)} == {doc.id for doc in everything}
        for pipeline in ("bm25", "dense", "hybrid"):
            retriever = index_retriever(index, pipeline, k=len(everything))
            for found in (retriever.invoke(word), await retriever.ainvoke(word)):
                assert {doc.id for doc in found} == {doc.id for doc in everything}
                assert all(doc.page_content in text for doc in found)


def test_a_name_that_stands_in_the_text_is_not_repeated() -> None:
    """Only as a whole word: the title AI does not stand in "said". What is no text is no title."""
    assert searched_text("Orion has a pump.", {"title": "Orion"}) == "Orion has a pump."
    assert searched_text("He said so.", {"title": "AI"}) == "AI\nHe said so."
    assert searched_text("Лестница крутая.", {"title": "Лес"}) == "Лес\nЛестница крутая."
    assert searched_text("Густой лес.", {"title": "Лес"}) == "Густой лес."
    assert searched_text("Der Möbelöltest.", {"title": "Öl"}) == "Öl\nDer Möbelöltest."
    assert searched_text("서울에서 만나요.", {"title": "서울"}) == "서울에서 만나요."
    assert searched_text("猎户座的水泵。", {"title": "猎户座"}) == "猎户座的水泵。"
    assert searched_text("每台AI水泵。", {"title": "AI"}) == "每台AI水泵。"
    assert searched_text("Text.", {"title": ["Orion"], "heading": 3}) == "Text."
    long = {"title": "long " * 1000, "heading": f"{'深' * 1000} > Oil"}
    assert searched_text("Text.", long) == "Oil\nText."


def test_a_short_text_is_embedded_alone() -> None:
    """Else its vector would be its title's; by keyword it is found by its title all the same."""
    title = {"title": "The handbook of Orion"}
    assert embedded_text("Career", title) == "Career" and "Orion" in searched_text("Career", title)
    assert "Orion" in embedded_text("The valve is closed by night, and the pump too.", title)


def test_an_index_keeps_what_it_searches_though_the_rule_for_titles_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row of before lacks the title until it is written anew or all is built anew; both indexes are whole."""
    model = WordEmbeddings()
    document = Document("Лестница крутая, и перила старые, но крепкие.", id="1", metadata={"title": "Лес"})
    with monkeypatch.context() as before:
        before.setattr(searched, "_has_words", lambda text, words: words in text)
        with DocumentIndex.create(tmp_path / "index", embeddings=model) as index:
            index.upsert([document])
    with DocumentIndex.open(tmp_path / "index", mode="w", embeddings=model) as index:
        assert index.verify().ok and index.search_keyword("лес") == []
        assert index.upsert([document]).unchanged == ["1"]
        index.upsert([document.model_copy(update={"id": "2"})])
        assert [found.id for found, _ in index.search_keyword("лес")] == ["2"] and index.verify().ok
        index.upsert([document.model_copy(update={"page_content": document.page_content + " Вот."})])
        assert {found.id for found, _ in index.search_keyword("лес")} == {"1", "2"} and index.verify().ok
        index.delete(["1", "2"])
        assert index.search_keyword("лестница") == [] and index.verify().ok


def test_a_changed_title_is_embedded_again_and_the_same_is_not(tmp_path: Path) -> None:
    """The searched text decides: other metadata cost nothing, another title one text."""
    model = WordEmbeddings()

    def chunk(title: str, page: int) -> Document:
        return Document("It starts at 40 degrees.", id="1", metadata={"title": title, "page": page})

    with DocumentIndex.create(tmp_path / "index", embeddings=model) as index:
        assert index.upsert([chunk("Pump", 1)]).embedded == 1
        assert index.upsert([chunk("Pump", 2)]).embedded == 0
        assert index.upsert([chunk("Valve", 2)]).embedded == 1
        assert [doc.metadata["title"] for doc, _ in index.search_keyword("valve")] == ["Valve"]
        assert index.search_keyword("pump") == []
        assert index.verify().ok
