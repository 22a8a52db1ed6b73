"""Two chunkings of one document in an ensemble: no text comes back twice."""

from __future__ import annotations

from itertools import combinations, pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document

from rag_kit.documents import get_provenance
from rag_kit.documents.spans import span_of
from rag_kit.indexing import split
from rag_kit.retrieval import BM25Retriever, EnsembleRetriever

ENGLISH = "The pump starts at forty degrees. The valve closes by night. Oil is changed every ten hours. "
CHINESE = "水泵在四十度时启动。阀门在夜里关闭。每十小时换一次油。"


def ensemble(text: str, sizes: tuple[int, int], **fields: Any) -> EnsembleRetriever:
    document = Document(text, metadata={"source": "manual.md"})
    retrievers = [
        BM25Retriever.from_documents(split([document], chunk_size=size, chunk_overlap=0)) for size in sizes
    ]
    return EnsembleRetriever(retrievers=retrievers, **fields)


@settings(max_examples=40, deadline=None)
@given(
    text=st.lists(
        st.sampled_from(["The pump runs. ", "水泵。", "Oil and valve ", "\n\n", "## 阀门\n", "x" * 30])
    )
    .map("".join)
    .filter(str.strip),
    sizes=st.tuples(st.integers(20, 60), st.integers(20, 200)),
    fusion=st.sampled_from(["rrf", "convex"]),
    k=st.integers(1, 12),
)
def test_no_two_results_overlap(text: str, sizes: tuple[int, int], fusion: str, k: int) -> None:
    """Whatever the sizes, the spans of the results are apart, and each result stands at its place."""
    found = ensemble(text, sizes, fusion=fusion, k=k).invoke("pump valve oil 水泵 阀门")
    assert len(found) <= k
    for one, other in combinations(found, 2):
        assert (
            one.metadata["end"] <= other.metadata["start"] or other.metadata["end"] <= one.metadata["start"]
        )
    for doc in found:
        assert text[doc.metadata["start"] : doc.metadata["end"]] == doc.page_content
        assert doc.page_content == doc.page_content.strip() != ""


@pytest.mark.parametrize(("text", "query"), [(ENGLISH, "valve night"), (CHINESE, "阀门 夜里")])
async def test_the_better_one_stays_whole_and_the_other_says_that_it_was_shortened(
    text: str, query: str
) -> None:
    """Sync and async alike; the ids are those of the chunks."""
    both = ensemble(text * 4, (len(text) * 4 // 5, len(text) * 3), k=8)
    found = both.invoke(query)
    assert [doc.page_content for doc in await both.ainvoke(query)] == [doc.page_content for doc in found]
    notes = [note for doc in found for note in get_provenance(doc)["notes"]]
    assert any("shortened" in note for note in notes)
    assert not any("shortened" in note for note in get_provenance(found[0]).get("notes", []))


def test_one_chunking_and_other_sources_keep_their_overlap() -> None:
    """What one retriever gives side by side stays, and so do equal places of another file or other text."""
    chunks = split([Document(ENGLISH * 5, metadata={"source": "a"})], chunk_size=120, chunk_overlap=50)
    assert any(a.metadata["end"] > b.metadata["start"] for a, b in pairwise(chunks))
    same = EnsembleRetriever(retrievers=[BM25Retriever.from_documents(chunks) for _ in range(2)], k=10)
    assert all(
        doc in [chunk.page_content for chunk in chunks] for doc in texts(same.invoke("pump valve oil"))
    )
    place = {"start": 0, "end": 9}
    pages = [Document("pump one.", metadata={"source": "a.pdf", **place})]
    others = [Document("pump two.", metadata={"source": "a.pdf", **place})]
    both = EnsembleRetriever(retrievers=[BM25Retriever.from_documents(d) for d in (pages, others)])
    assert sorted(texts(both.invoke("pump"))) == ["pump one.", "pump two."]


def test_a_place_that_cannot_be_is_none() -> None:
    """Metadata of other makers under these names do no harm."""
    for place in ({"start": "0", "end": 4}, {"start": 0, "end": 9}, {"start": True, "end": 5}, {}):
        assert span_of(Document("deep", metadata={"source": "a", **place})) is None


def texts(documents: list[Document]) -> list[str]:
    return [doc.page_content for doc in documents]
