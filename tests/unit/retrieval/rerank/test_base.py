"""Every LangChain document compressor is a reranker and a compressor of the kit."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from langchain_core.callbacks import BaseCallbackHandler, Callbacks
from langchain_core.cross_encoders import BaseCrossEncoder
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.runnables import RunnableLambda

from rag_kit.documents import get_provenance
from rag_kit.retrieval import BM25Retriever, CompressionRetriever, RerankRetriever

TEXTS = ["a fan", "a loud fan hums. It is old.", "风扇很吵。", "the fan is loud, loud, loud"]


class HostedReranker(BaseDocumentCompressor):
    """As Cohere's, Jina's and Voyage's: copies without id, the score in the metadata, the best ``top_n`` alone."""

    top_n: int | None = 2

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> Sequence[Document]:
        """Order by how often the text says "loud" or 吵."""
        scores = [
            np.float64(doc.page_content.count("loud") + doc.page_content.count("吵")) for doc in documents
        ]
        order = sorted(range(len(documents)), key=lambda place: -scores[place])[: self.top_n]
        found = []
        for place in order:
            one = Document(
                page_content=documents[place].page_content, metadata=copy.deepcopy(documents[place].metadata)
            )
            one.metadata["relevance_score"] = scores[place]
            found.append(one)
        return found


def words(k: int = 4) -> BM25Retriever:
    """Return the first result, and how it was found."""
    documents = [
        Document(text, id=f"d{number}", metadata={"page": number}) for number, text in enumerate(TEXTS)
    ]
    return BM25Retriever.from_documents(documents, k=k)


def run(retriever: Any, query: str, native: bool, config: Any = None) -> list[Document]:
    """The same call, blocking or not."""
    found: list[Document]
    found = asyncio.run(retriever.ainvoke(query, config)) if native else retriever.invoke(query, config)
    return found


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize(("query", "best"), [("fan 风扇", "d3"), ("风扇", "d2")])
def test_a_hosted_reranker_keeps_ids_and_provenance(native: bool, query: str, best: str) -> None:
    """Ids come back, the score is the document's, the rank before stands beside it; plain JSON throughout."""
    found = run(RerankRetriever(retriever=words(), reranker=HostedReranker()), query, native)
    assert found[0].id == best and len({doc.id for doc in found}) == len(found) <= 2
    record = get_provenance(found[0])
    first, last = record["stages"]
    assert (first["stage"], last["stage"]) == ("bm25", "rerank:HostedReranker")
    assert record["score"] == last["score"] == found[0].metadata["relevance_score"]
    assert (
        last["rank"] == 1 and last["rank_before"] == first["rank"] and last["score_before"] == first["score"]
    )
    assert json.loads(json.dumps(found[0].metadata)) == found[0].metadata


def test_a_score_of_a_compressor_can_be_cut_by_and_what_it_drops_is_said() -> None:
    """Threshold and ``top_n`` work together; a note says how many passages came back."""
    retriever = RerankRetriever(retriever=words(), reranker=[HostedReranker(top_n=3)], score_threshold=1)
    found = retriever.invoke("fan 风扇")
    assert found[0].id == "d3" and all(doc.metadata["relevance_score"] >= 1 for doc in found)
    assert "HostedReranker kept 3 of 4 passages" in get_provenance(found[0])["notes"]


class Rewriting(BaseDocumentCompressor):
    """Gives back what it was made with, as a function of the documents."""

    make: Any

    def compress_documents(self, documents: Any, query: str, callbacks: Any = None) -> Any:
        """Blocking."""
        return self.make(documents)

    async def acompress_documents(self, documents: Any, query: str, callbacks: Any = None) -> Any:
        """Without blocking."""
        return self.make(documents)


@pytest.mark.parametrize("native", [False, True])
def test_documents_that_come_back_changed_are_matched(native: bool) -> None:
    """A shorter text keeps id and stages and names its original; pieces share no id; strangers are let through."""

    def make(documents: Sequence[Document]) -> list[Any]:
        first, second, *_ = documents
        return [
            Document("shorter", metadata=first.metadata),
            Document("piece 1", metadata=second.metadata),
            Document("piece 2", metadata=second.metadata),
            Document("of the web", metadata={"url": "http://a.test"}),
        ]

    retriever = CompressionRetriever(
        retriever=words(), compressor=Rewriting(make=make), k=6, merge_threshold=None
    )
    found = run(retriever, "loud fan", native)
    assert [doc.page_content for doc in found] == ["shorter", "piece 1", "piece 2", "of the web"]
    assert found[0].id == found[0].metadata["original_id"] and found[1].id is found[2].id is None
    assert found[1].metadata["original_id"] == found[2].metadata["original_id"] != found[0].id
    assert [len(get_provenance(doc)["stages"]) for doc in found] == [2, 2, 2, 1]


@pytest.mark.parametrize("answer", [None, "text", 7, [None]])
def test_an_answer_that_is_no_list_leaves_the_order_or_raises(answer: Any) -> None:
    """``on_error`` decides, as for every other reranker."""
    broken = Rewriting(make=lambda documents: answer)
    found = RerankRetriever(retriever=words(), reranker=broken).invoke("loud fan")
    assert [doc.id for doc in found] == [doc.id for doc in words().invoke("loud fan")]
    assert "degraded" in get_provenance(found[0])["notes"][0]
    with pytest.raises(Exception, match="must give a list of documents"):
        CompressionRetriever(retriever=words(), compressor=broken, on_error="raise").invoke("loud fan")


class Heard(BaseCallbackHandler):
    """Counts the runs of chains."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def on_chain_start(self, serialized: Any, inputs: Any, **more: Any) -> None:
        """A run of the compressor's own chain."""
        self.names.append(str(more.get("name")))


@pytest.mark.parametrize("native", [False, True])
def test_callbacks_reach_the_chain_inside_a_compressor(native: bool) -> None:
    """A compressor that runs a chain does so as a child run."""
    chain = RunnableLambda(lambda documents: documents[:1], name="inside")

    class Chained(BaseDocumentCompressor):
        def compress_documents(self, documents: Any, query: str, callbacks: Any = None) -> Any:
            return chain.invoke(documents, {"callbacks": callbacks})

    handler = Heard()
    reranker = [Chained()]
    found = run(
        RerankRetriever(retriever=words(), reranker=reranker), "fan", native, {"callbacks": [handler]}
    )
    assert len(found) == 1 and handler.names == ["inside"]


class Overlap(BaseCrossEncoder):
    """Counts "loud"."""

    def score(self, text_pairs: list[tuple[str, str]]) -> list[float]:
        """One a pair."""
        return [float(text.count("loud")) for _, text in text_pairs]


@pytest.mark.parametrize("native", [False, True])
def test_compressors_of_langchain_classic_work_in_both(native: bool) -> None:
    """A pipeline of a splitter and an embeddings filter shortens; their cross-encoder reranks; ids stay."""
    theirs = pytest.importorskip("langchain_classic.retrievers.document_compressors")
    splitters = pytest.importorskip("langchain_text_splitters")
    pytest.importorskip("langchain_community")
    pipeline = theirs.DocumentCompressorPipeline(
        transformers=[
            splitters.RecursiveCharacterTextSplitter(chunk_size=18, chunk_overlap=0, separators=[". "]),
            theirs.EmbeddingsFilter(embeddings=DeterministicFakeEmbedding(size=16), k=5),
        ]
    )
    shorter = run(CompressionRetriever(retriever=words(), compressor=pipeline, k=8), "loud fan", native)
    assert shorter and all(type(doc) is Document and doc.metadata["page"] in range(4) for doc in shorter)
    assert get_provenance(shorter[0])["stages"][-1]["stage"] == "compress:DocumentCompressorPipeline"
    encoder = theirs.CrossEncoderReranker(model=Overlap(), top_n=1)
    (best,) = run(RerankRetriever(retriever=words(), reranker=encoder), "loud fan", native)
    assert best.id == "d3"
