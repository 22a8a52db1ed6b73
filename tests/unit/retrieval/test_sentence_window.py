"""SentenceWindowRetriever: sentences are searched, verbatim windows returned; merging, k, filters, writes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda
from support.embedding import WordEmbeddings
from support.families import both, children, lettered, numbered

from rag_kit.documents import get_provenance
from rag_kit.errors import InvalidInputError
from rag_kit.indexing.document_index.rows import Child, Family
from rag_kit.retrieval import SentenceWindowRetriever, index_retriever


def make(*documents: Document, **fields: Any) -> SentenceWindowRetriever:
    return SentenceWindowRetriever.from_documents(list(documents), **fields)


@pytest.mark.parametrize("pipeline", ["bm25", "dense", "hybrid"])
async def test_differs_from_searching_the_sentences(pipeline: Any) -> None:
    """The window holds the neighbours too, by every pipeline; it is a verbatim span with its offsets."""
    ant = numbered("ant")
    retriever = make(
        ant, embeddings=WordEmbeddings(512), pipeline=pipeline, window=1, k=1, fetch_k=1, max_fetch_k=1
    )
    [found] = await both(retriever, "ant3")
    start, end = found.metadata["start"], found.metadata["end"]
    assert (
        found.page_content
        == ant.page_content[start:end]
        == "Here ant2 is told of by ant. " + ("Here ant3 is told of by ant. Here ant4 is told of by ant.")
    )
    assert found.id == f"ant#{start}-{end}" and found.metadata["parent_id"] == "ant"
    [inner] = index_retriever(retriever.index, pipeline, k=1).invoke("ant3")
    assert inner.page_content == "Here ant3 is told of by ant."
    stage = get_provenance(found)["stages"][-1]
    assert stage["stage"] == "sentence_window" and stage["sentences"] == [2, 4]
    assert children(found)[0]["id"] == inner.id


async def test_overlapping_windows_of_a_document_are_one() -> None:
    """Two near hits give one window with both in its provenance, far ones two; other documents stay apart."""
    letters = "bcdfghjklmnpqrtvwxz"
    retriever = make(lettered("ant", letters), lettered("bee", letters), window=1, pipeline="bm25", k=5)
    found = await both(retriever, "antf anth antq beeg", filter=None)
    spans = {
        tuple(get_provenance(d)["stages"][-1]["sentences"]): d
        for d in found
        if d.metadata["parent_id"] == "ant"
    }
    assert set(spans) == {(2, 6), (11, 13)} and len(children(spans[2, 6])) == 2
    assert [d.metadata["parent_id"] for d in found].count("bee") == 1
    for document in found:
        own = document.metadata
        whole = retriever.index.get([own["parent_id"]])[0].page_content
        assert whole[own["start"] : own["end"]] == document.page_content


async def test_a_third_hit_joins_two_windows() -> None:
    """A hit between two windows makes them one, which counts once; k counts windows."""
    order = ["ant3", "ant7", "ant5", "ant15"]
    index = make(numbered("ant", 20)).index
    by_word = {word: index.search_keyword(word, 1)[0][0] for word in order}

    def search(query: str) -> list[Document]:
        return [by_word[word] for word in query.split()]

    retriever = SentenceWindowRetriever(index=index, retriever=RunnableLambda(search), window=1, k=2)
    found = await both(retriever, " ".join(order))
    assert [get_provenance(d)["stages"][-1]["sentences"] for d in found] == [[2, 8], [14, 16]]
    assert [child["rank"] for child in children(found[0])] == [1, 2, 3]


async def test_ends_of_a_document_and_a_window_of_none() -> None:
    """A window ends with its document; window=0 gives the sentence alone."""
    ant = numbered("ant", 2)
    assert (await both(make(ant, window=5), "ant0"))[0].page_content == ant.page_content
    assert (await both(make(ant, window=0, k=1), "ant0"))[0].page_content == "Here ant0 is told of by ant."


async def test_chinese_headings_and_offsets_in_the_source() -> None:
    """Chinese sentences, headings above them, and places in the source that a chunk tells."""
    text = "# 湖\n\n湖水很深。湖里有鱼。冬天会结冰。夏天很热。"
    retriever = make(Document(text, id="x", metadata={"start": 50, "end": 50 + len(text)}), window=1, k=1)
    [found] = await both(retriever, "鱼")
    assert found.page_content == "湖水很深。湖里有鱼。冬天会结冰。" and found.metadata["heading"] == "湖"
    assert text[found.metadata["start"] - 50 : found.metadata["end"] - 50] == found.page_content
    assert len(await both(retriever, "鱼", filter={"heading": "湖"})) == 1


async def test_neighbours_of_another_tenant_end_the_window() -> None:
    """Sentences are checked one by one: a window stops before one that does not pass, as does the document."""
    text = "Mine one. Mine two. Other secret. Mine three."
    owners = ["a", "a", "b", "a"]
    places = [(0, 9), (10, 19), (20, 33), (34, 45)]
    parts = [
        Child(text[start:end], start, end, metadata={"owner": owner})
        for (start, end), owner in zip(places, owners, strict=True)
    ]
    index = make().index
    index.upsert([Family(Document(text, id="d", metadata={"owner": "a"}), parts)])
    retriever = SentenceWindowRetriever(index=index, window=3, k=5)
    found = await both(retriever, "mine", filter={"owner": "a"})
    assert sorted(d.page_content for d in found) == ["Mine one. Mine two.", "Mine three."]
    assert await both(retriever, "secret", filter={"owner": "b"}) == []
    assert len(await both(retriever, "secret")) == 1


async def test_texts_that_stand_nowhere_are_returned_as_they_are() -> None:
    """A child that is no span of its document, or no child at all, stands for itself."""
    index = make().index
    index.upsert([Family(Document("The text.", id="d"), [Child("made up"), Child("The text.", 0, 9)])])
    index.upsert([Document("plain made", id="p")])
    found = await both(SentenceWindowRetriever(index=index), "made")
    assert sorted(d.page_content for d in found) == ["made up", "plain made"]


SIZES = (9, 4, 1, 2)


@pytest.fixture(scope="module")
def written() -> Iterator[SentenceWindowRetriever]:
    """Documents of so many sentences."""
    with make(*(numbered(f"d{i}", size) for i, size in enumerate(SIZES))) as retriever:
        yield retriever


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    hits=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 8)), max_size=12),
    window=st.integers(0, 3),
    k=st.integers(1, 6),
)
def test_windows_are_apart_verbatim_and_hold_their_hits(
    written: SentenceWindowRetriever, hits: list[tuple[int, int]], window: int, k: int
) -> None:
    """For any hits: at most k windows, none overlaps another, each holds the sentences that it was made for."""
    index = written.index
    with index.families() as view:
        query = "SELECT id FROM chunks WHERE parent = ? ORDER BY ordinal"
        rows = [[key for (key,) in view._connection.execute(query, (f"d{i}",))] for i in range(len(SIZES))]
    chosen = [rows[i][j] for i, j in hits if j < len(rows[i])]
    documents = index.get(list(dict.fromkeys(chosen)))
    search = RunnableLambda(lambda query: documents)
    found = SentenceWindowRetriever(index=index, retriever=search, window=window, k=k).invoke("q")
    assert len(found) <= k and bool(found) == bool(documents)
    taken: set[tuple[str, int]] = set()
    for document in found:
        parent = document.metadata["parent_id"]
        first, last = get_provenance(document)["stages"][-1]["sentences"]
        covered = {(parent, number) for number in range(first, last + 1)}
        assert not covered & taken
        taken |= covered
        text = index.get([parent])[0].page_content
        assert text[document.metadata["start"] : document.metadata["end"]] == document.page_content
        for child in children(document):
            assert text[child["start"] : child["end"]] in document.page_content


@pytest.mark.parametrize(
    ("field", "value"), [("window", -1), ("window", True), ("max_sentence", 5), ("k", 0)]
)
def test_bad_arguments_are_refused(field: str, value: Any) -> None:
    """Wrong arguments are refused on construction, by name."""
    with pytest.raises(InvalidInputError, match=f"{field}[=:]"):
        make(numbered("ant"), **{field: value})
