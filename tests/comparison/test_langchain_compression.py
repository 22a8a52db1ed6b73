"""LangChain's extractor beside ours.

Each test first shows LangChain's behaviour, and so fails when LangChain mends it; then that ours is right.
"""

from __future__ import annotations

import json
import warnings
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda
from support.rewriters import Scripted, ids

from rag_kit.retrieval import CompressionRetriever
from rag_kit.retrieval.compression.compressors import ModelCompressor

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    theirs = pytest.importorskip(
        "langchain_classic.retrievers.document_compressors",
        reason="LangChain's compressors are in langchain-classic",
    )

QUESTION = "Is the fan loud?"
DOCS = [Document(f"The fan number {n} is loud. Tea is hot.", id=str(n)) for n in range(8)]


def their_extractor(script: Any, **kwargs: Any) -> tuple[Any, Scripted]:
    model = Scripted(script=script, **kwargs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return theirs.LLMChainExtractor.from_llm(model), model


def our_retriever(script: Any, docs: list[Document] = DOCS, **kwargs: Any) -> tuple[Any, Scripted]:
    model = Scripted(script=script, **kwargs)
    inner = RunnableLambda(lambda query: docs)
    return CompressionRetriever(retriever=inner, compressor=ModelCompressor(model), k=8), model


async def test_row_15_extractor_is_sequential() -> None:
    """LangChain's extractor reads 8 documents one after the other in sync code; ours all at once."""
    extractor, model = their_extractor("text", delay=0.05)
    extractor.compress_documents(DOCS, QUESTION)
    assert model.most == 1
    ours, model = our_retriever('{"sentences": [1]}', delay=0.05)
    ours.invoke(QUESTION)
    assert model.most == 8
    model.most = 0
    await ours.ainvoke(QUESTION)
    assert model.most == 8


async def test_row_16_async_ignores_max_concurrency() -> None:
    """LangChain's extractor takes no config, so nothing bounds its calls; ours keeps to max_concurrency."""
    extractor, model = their_extractor("text", delay=0.05)
    await extractor.acompress_documents(DOCS, QUESTION)
    assert model.most == 8
    ours, model = our_retriever('{"sentences": [1]}', delay=0.05)
    await ours.ainvoke(QUESTION, {"max_concurrency": 2})
    assert model.most == 2


@pytest.mark.parametrize("reply", ["NO_OUTPUT.", "`NO_OUTPUT`", "No output."])
def test_row_23_no_output_is_kept(reply: str) -> None:
    """LangChain takes "NO_OUTPUT." for text of the passage; ours never takes any text of the model."""
    extractor, _ = their_extractor(reply)
    assert {doc.page_content for doc in extractor.compress_documents(DOCS, QUESTION)} == {reply}
    ours, _ = our_retriever(reply)
    assert [doc.page_content for doc in ours.invoke(QUESTION)] == [doc.page_content for doc in DOCS]


def test_row_23_text_of_the_model() -> None:
    """LangChain's result is what the model wrote, true or not; ours is the passage, word for word."""
    invented = "The fan was sold in 1999."
    extractor, _ = their_extractor(invented)
    assert extractor.compress_documents(DOCS[:1], QUESTION)[0].page_content == invented
    ours, _ = our_retriever(json.dumps({"sentences": [1], "text": invented}), DOCS[:1])
    [found] = ours.invoke(QUESTION)
    assert found.page_content == "The fan number 0 is loud." and found.metadata["kept"] == [
        {"start": 0, "end": 25}
    ]


def test_row_23_extractor_loses_ids() -> None:
    """LangChain's extractor loses Document.id and shares the metadata; ours keeps the one and copies the other."""
    docs = [Document(doc.page_content, id=doc.id, metadata={"tags": []}) for doc in DOCS]
    extractor, _ = their_extractor("text")
    found = extractor.compress_documents(docs, QUESTION)
    assert set(ids(found)) == {None}
    found[0].metadata["tags"].append("changed")
    assert docs[0].metadata["tags"] == ["changed"]
    docs[0].metadata["tags"].clear()
    ours, _ = our_retriever('{"sentences": [1]}', docs)
    result = ours.invoke(QUESTION)
    assert ids(result) == ids(docs)
    result[0].metadata["tags"].append("changed")
    assert docs[0].metadata["tags"] == []


def test_one_failure_fails_all() -> None:
    """In LangChain one failing call fails all; ours leaves that passage whole, and says so."""

    def sometimes(prompt: str) -> Any:
        return ConnectionError("down") if "number 3" in prompt else '{"sentences": [1]}'

    extractor, _ = their_extractor(sometimes)
    with pytest.raises(ConnectionError):
        extractor.compress_documents(DOCS, QUESTION)
    ours, _ = our_retriever(sometimes)
    found = ours.invoke(QUESTION)
    assert [doc.page_content for doc in found if "Tea" in doc.page_content] == [DOCS[3].page_content]
