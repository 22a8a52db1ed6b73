"""LangChain's rerankers, its model filter and its extractor beside ours.

Each test first shows LangChain's behaviour, and so fails when LangChain mends it; then that ours is right.
"""

from __future__ import annotations

import json
import warnings
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.runnables import RunnableConfig, RunnableLambda
from support.rewriters import Scripted, ids, notes

from rag_kit.retrieval import CompressionRetriever, PointwiseReranker, RerankRetriever
from rag_kit.retrieval.compression.compressors import ModelCompressor
from rag_kit.retrieval.rerank.model import ListwiseReranker

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    theirs = pytest.importorskip(
        "langchain_classic.retrievers.document_compressors",
        reason="LangChain's compressors are in langchain-classic",
    )
    # a release of langchain-classic has a base class of its own, and takes no other
    BaseCrossEncoder = pytest.importorskip(
        "langchain_classic.retrievers.document_compressors.cross_encoder"
    ).BaseCrossEncoder
    their_module = pytest.importorskip("langchain_classic.retrievers.document_compressors.listwise_rerank")
    contextual = pytest.importorskip("langchain_classic.retrievers.contextual_compression")

QUESTION = "Who is it?"
DOCS = [Document(f"text {name}", id=name) for name in "abc"]


class Structured(Scripted):
    """A model whose structured output is the scripted JSON, taken by LangChain as it is."""

    def with_structured_output(self, schema: Any, **kwargs: Any) -> Any:
        return RunnableLambda(lambda prompt: schema.model_construct(**json.loads(self.script)))


def their_order(*numbers: Any) -> list[Any]:
    """LangChain counts from 0."""
    model = Structured(script=json.dumps({"ranked_document_ids": list(numbers)}))
    reranker = theirs.LLMListwiseRerank.from_llm(model, top_n=9)
    return ids(list(reranker.compress_documents(DOCS, QUESTION)))


def our_order(*numbers: Any) -> list[Any]:
    """Ours counts from 1, as the passages are numbered."""
    model = Scripted(script=json.dumps({"ranking": list(numbers)}))
    retriever = RerankRetriever(retriever=RunnableLambda(lambda q: DOCS), reranker=ListwiseReranker(model))
    return ids(retriever.invoke(QUESTION))


def test_row_22_out_of_range() -> None:
    """LangChain raises IndexError for a number too high, and takes -1 for the last one; ours leaves both out."""
    with pytest.raises(IndexError):
        their_order(1, 7)
    assert their_order(-1) == ["c"]
    assert our_order(2, 8) == ["b", "a", "c"]
    assert our_order(-1, 2) == ["b", "a", "c"]


def test_row_22_repeats_and_omissions() -> None:
    """LangChain keeps repeats and drops what the model forgot; ours has each document once."""
    assert their_order(1, 1, 0) == ["b", "b", "a"]
    assert our_order(2, 2, 1) == ["b", "a", "c"]


def test_row_22_no_window() -> None:
    """LangChain puts all documents into one prompt, however many; ours slides a window over them."""
    many = [Document(f"text {n}", id=str(n)) for n in range(60)]
    seen: list[int] = []

    class Watch(Structured):
        def with_structured_output(self, schema: Any, **kwargs: Any) -> Any:
            def answer(prompt: Any) -> Any:
                seen.append(prompt.to_string().count("Document ID: 5"))
                return schema.model_construct(ranked_document_ids=[0])

            return RunnableLambda(answer)

    theirs.LLMListwiseRerank.from_llm(Watch(script="")).compress_documents(many, QUESTION)
    assert seen == [12]  # 5, 50 to 59, and the 59 in the range: all 60 documents were there
    model = Scripted(script='{"ranking": [1]}')
    ours = RerankRetriever(retriever=RunnableLambda(lambda q: many), reranker=ListwiseReranker(model), k=60)
    assert len(ours.invoke(QUESTION)) == 60
    assert all(prompt.count("</passage>") == 20 for prompt in model.prompts) and len(model.prompts) == 5


def test_row_23_filter_raises() -> None:
    """LangChain's filter raises on "Relevant"; ours keeps the passage in its place and says that it has no grade."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        filters = theirs.LLMChainFilter.from_llm(Scripted(script="Relevant"))
        with pytest.raises(ValueError, match="expected output value"):
            filters.compress_documents(DOCS, QUESTION)
    ours = RerankRetriever(
        retriever=RunnableLambda(lambda q: DOCS),
        reranker=PointwiseReranker(Scripted(script="Relevant")),
        score_threshold=0.5,
    )
    found = ours.invoke(QUESTION)
    assert ids(found) == ["a", "b", "c"] and notes(found)[0].startswith("degraded: rerank:pointwise")


class Ones(BaseCrossEncoder):
    def score(self, text_pairs: list[tuple[str, str]]) -> list[float]:
        return [float(text.endswith("c")) for _, text in text_pairs]


def test_row_2_config_lost() -> None:
    """LangChain's compression retriever passes callbacks down alone; ours passes the whole config."""
    seen: list[Any] = []

    def look(query: str, config: RunnableConfig) -> list[Document]:
        seen.append(config.get("configurable", {}).get("tenant"))
        return DOCS

    config: Any = {"configurable": {"tenant": "t"}}
    inner = RunnableLambda(look)
    contextual.ContextualCompressionRetriever(
        base_compressor=theirs.CrossEncoderReranker(model=Ones()), base_retriever=inner
    ).invoke(QUESTION, config)
    assert seen == [None]
    RerankRetriever(retriever=inner, reranker=Ones()).invoke(QUESTION, config)
    assert seen == [None, "t"]


FANS = [Document(f"The fan number {n} is loud. Tea is hot.", id=str(n)) for n in range(8)]


def their_extractor(reply: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return theirs.LLMChainExtractor.from_llm(Scripted(script=reply))


def our_compressed(reply: str, docs: list[Document] = FANS) -> list[Document]:
    inner = RunnableLambda(lambda query: docs)
    compressor = ModelCompressor(Scripted(script=reply))
    return CompressionRetriever(retriever=inner, compressor=compressor, k=8).invoke(QUESTION)


@pytest.mark.parametrize("reply", ["NO_OUTPUT.", "`NO_OUTPUT`", "No output."])
def test_row_23_no_output_is_kept(reply: str) -> None:
    """LangChain takes "NO_OUTPUT." for text of the passage; ours never takes any text of the model."""
    extractor = their_extractor(reply)
    assert {doc.page_content for doc in extractor.compress_documents(FANS, QUESTION)} == {reply}
    assert [doc.page_content for doc in our_compressed(reply)] == [doc.page_content for doc in FANS]


def test_row_23_text_of_the_model() -> None:
    """LangChain's result is what the model wrote, true or not; ours is the passage, word for word."""
    invented = "The fan was sold in 1999."
    extractor = their_extractor(invented)
    assert extractor.compress_documents(FANS[:1], QUESTION)[0].page_content == invented
    [found] = our_compressed(json.dumps({"sentences": [1], "text": invented}), FANS[:1])
    assert found.page_content == "The fan number 0 is loud." and found.metadata["kept"] == [
        {"start": 0, "end": 25}
    ]


def test_row_23_extractor_loses_ids() -> None:
    """LangChain's extractor loses Document.id and shares the metadata; ours keeps the one and copies the other."""
    docs = [Document(doc.page_content, id=doc.id, metadata={"tags": []}) for doc in FANS]
    extractor = their_extractor("text")
    found = extractor.compress_documents(docs, QUESTION)
    assert set(ids(found)) == {None}
    found[0].metadata["tags"].append("changed")
    assert docs[0].metadata["tags"] == ["changed"]
    docs[0].metadata["tags"].clear()
    result = our_compressed('{"sentences": [1]}', docs)
    assert ids(result) == ids(docs)
    result[0].metadata["tags"].append("changed")
    assert docs[0].metadata["tags"] == []
