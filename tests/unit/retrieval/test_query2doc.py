"""Query2DocRetriever: the question and a written passage as one query."""

from __future__ import annotations

import json
from typing import Any

from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore
from support.embedding import WordEmbeddings
from support.rewriters import Scripted, Words, both, corpus, ids, sent

from rag_kit.documents import get_provenance
from rag_kit.retrieval import BM25Retriever, Query2DocRetriever, VectorRetriever

QUESTION = "How do plants reproduce?"
PASSAGE = "Flowers are pollinated by insects."
DOCS = corpus(
    insects="Insects pollinated the flowers of the orchard.",
    plants="How plants drink water",
    honey="Honey keeps for years.",
)


def reply(*passages: str) -> str:
    return json.dumps({"passages": list(passages)}, ensure_ascii=False)


def made(script: Any, docs: list[Document] = DOCS, **settings: Any) -> Query2DocRetriever:
    return Query2DocRetriever.from_llm(Scripted(script=script), Words(docs=docs), **settings)


async def test_sparse_form_repeats_the_question_five_times() -> None:
    """One query: the question five times as in the paper, then the passage; the passage also stands alone."""
    retriever = made(reply(PASSAGE))
    assert "insects" not in ids(retriever.retriever.invoke(QUESTION))
    found = await both(retriever, QUESTION)
    wanted = " ".join([QUESTION] * 5) + " " + PASSAGE
    assert retriever.retriever.queries[1:] == [wanted, wanted]  # type: ignore[attr-defined]
    assert sent(found) == [wanted] and set(ids(found)) == {"insects", "plants"}
    stage = get_provenance(found[0])["stages"][-1]
    assert stage["passage"] == PASSAGE and stage["technique"] == "query2doc"
    json.dumps([get_provenance(doc) for doc in found], allow_nan=False)


def test_repeats_keep_the_question_from_drowning() -> None:
    """BM25 ranks by the question again when it is repeated; once, the passage decides."""
    texts = ["plants plants water", "insects insects flowers", *(f"filler {n}" for n in range(20))]
    words = BM25Retriever.from_texts(texts)
    model = Scripted(script=reply("Insects and flowers. Insects visit flowers."))
    once = Query2DocRetriever.from_llm(model, words, repeat=1, k=1).invoke("plants")
    often = Query2DocRetriever.from_llm(model, words, repeat=9, k=1).invoke("plants")
    assert once[0].page_content == texts[1] and often[0].page_content == texts[0]


async def test_dense_form_concatenates() -> None:
    """Over a vector store the query is question, separator, passage; what as_retriever gives counts as one too."""
    store = InMemoryVectorStore(WordEmbeddings())
    store.add_documents(DOCS)
    for inner in (store, VectorRetriever(vectorstore=store), store.as_retriever()):
        retriever = Query2DocRetriever.from_llm(Scripted(script=reply(PASSAGE)), inner, k=1)
        found = await both(retriever, QUESTION)
        assert retriever.mode == "dense" and sent(found) == [f"{QUESTION} [SEP] {PASSAGE}"]
    own = Query2DocRetriever.from_llm(Scripted(script=reply(PASSAGE)), store, separator="|")
    assert sent(await both(own, QUESTION)) == [f"{QUESTION} | {PASSAGE}"]
    sparse = Query2DocRetriever.from_llm(Scripted(script=reply(PASSAGE)), store, mode="sparse", repeat=2)
    assert sent(await both(sparse, QUESTION)) == [f"{QUESTION} {QUESTION} {PASSAGE}"]


async def test_with_the_question_beside_it() -> None:
    """include_original=True also searches for the question alone, and fuses the two."""
    found = await both(made(reply(PASSAGE), include_original=True, repeat=1), QUESTION)
    assert sent(found) == [QUESTION, f"{QUESTION} {PASSAGE}"]
