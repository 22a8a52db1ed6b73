"""HyDERetriever and Query2DocRetriever: imagined passages as text, as a vector, or joined to the question."""

from __future__ import annotations

import json
import re
from typing import Any

import chromadb
import pytest
from chromadb.config import Settings
from langchain_chroma import Chroma
from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore
from support.embedding import WordEmbeddings
from support.rewriters import Scripted, Words, both, corpus, ids, notes, sent

from rag_kit.documents import get_provenance
from rag_kit.errors import InvalidInputError
from rag_kit.retrieval import BM25Retriever, HyDERetriever, Query2DocRetriever, VectorRetriever

QUESTION = "How do plants reproduce?"
PASSAGE = "Flowers are pollinated by insects."
DOCS = corpus(
    insects="Insects pollinated the flowers of the orchard.",
    plants="How plants drink water",
    honey="Honey keeps for years.",
)


def reply(*passages: str) -> str:
    return json.dumps({"passages": list(passages)}, ensure_ascii=False)


def by_number(prompt: str) -> str:
    """A passage that names the number it was asked for."""
    number = re.findall(r"<number>(\d+)</number>", prompt)[-1]
    return reply(f"passage number {number}")


def made(script: Any, docs: list[Document] = DOCS, **settings: Any) -> HyDERetriever:
    return HyDERetriever.from_llm(Scripted(script=script), Words(docs=docs), **settings)


def joined(script: Any, **settings: Any) -> Query2DocRetriever:
    return Query2DocRetriever.from_llm(Scripted(script=script), Words(docs=DOCS), **settings)


def store(docs: list[Document] = DOCS, embeddings: Any = None) -> InMemoryVectorStore:
    result = InMemoryVectorStore(embeddings or WordEmbeddings())
    result.add_documents(docs)
    return result


async def test_finds_by_the_passage() -> None:
    """A document that shares words with the passage alone is found; the question alone does not find it."""
    retriever = made(reply(PASSAGE))
    assert "insects" not in ids(retriever.retriever.invoke(QUESTION))
    found = await both(retriever, QUESTION)
    assert set(ids(found)) == {"insects", "plants"}
    assert sent(found) == [QUESTION, PASSAGE]
    roles = {doc.id: get_provenance(doc)["stages"][0]["role"] for doc in found}
    assert roles == {"insects": "passage", "plants": "original"}


async def test_n_passages_are_written_at_once() -> None:
    """n passages take the time of one call, each asked for by its number; all of them are searched for."""
    model = Scripted(script=by_number, delay=0.2)
    retriever = HyDERetriever.from_llm(model, Words(docs=corpus(a="passage number")), n=3)
    assert sent(retriever.invoke(QUESTION))[1:] == [f"passage number {n}" for n in (1, 2, 3)]
    assert model.most == 3
    model.most = 0
    await retriever.ainvoke(QUESTION)
    assert model.most == 3
    assert "<count>3</count>" in model.prompts[0]
    model.most = 0
    await retriever.ainvoke(QUESTION, {"max_concurrency": 1})
    assert model.most == 1


async def test_some_passages_fail() -> None:
    """A passage that fails is left out and told; the others are used."""

    def script(prompt: str) -> Any:
        return ConnectionError("down") if "<number>2<" in prompt else by_number(prompt)

    found = await both(made(script, corpus(a="passage number"), n=3), QUESTION)
    assert sent(found) == [QUESTION, "passage number 1", "passage number 3"]
    assert any("hyde 2 failed" in note for note in notes(found))
    assert not any("question alone" in note for note in notes(found))


async def test_row_21_vector_mode_searches_with_the_mean() -> None:
    """One search with the mean of the vectors of question and passages; the score is that vector's."""
    embeddings = WordEmbeddings()
    retriever = HyDERetriever.from_llm(Scripted(script=by_number), store(), n=2, k=3)
    assert retriever.mode == "vector"
    found = await both(retriever, QUESTION)
    texts = [QUESTION, "passage number 1", "passage number 2"]
    assert sent(found) == texts
    mean = [sum(column) / 3 for column in zip(*embeddings.embed_documents(texts), strict=True)]
    expected = store().similarity_search_with_score_by_vector(mean, k=3)
    assert ids(found) == [doc.id for doc, _ in expected]
    record = get_provenance(found[0])
    assert record["score"] == pytest.approx(expected[0][1])
    assert [stage["stage"] for stage in record["stages"]] == ["dense", "rewrite:hyde"]
    json.dumps([get_provenance(doc) for doc in found], allow_nan=False)


async def test_vector_mode_differs_from_the_plain_search() -> None:
    """The mean finds first what the question alone ranks behind."""
    retriever = HyDERetriever.from_llm(Scripted(script=reply(f"{PASSAGE} {PASSAGE}")), store(), k=1)
    assert ids(retriever.retriever.invoke(QUESTION, None, k=1)) == ["plants"]
    assert ids(await both(retriever, QUESTION)) == ["insects"]
    weighted = HyDERetriever.from_llm(Scripted(script=reply(PASSAGE)), store(), k=1, weights=[9, 1])
    assert ids(await both(weighted, QUESTION)) == ["plants"]
    alone = HyDERetriever.from_llm(Scripted(script=reply(PASSAGE)), store(), include_original=False)
    assert sent(await both(alone, QUESTION)) == [PASSAGE]


async def test_vector_mode_keeps_filters() -> None:
    """The call's filter, the retriever's own and the store retriever's own in its language all hold."""
    docs = [Document(f"flower {n}", id=str(n), metadata={"n": n, "tenant": "ab"[n % 2]}) for n in range(8)]
    filled = store(docs)
    leaf = filled.as_retriever(search_kwargs={"filter": lambda doc: doc.metadata["tenant"] == "a"})
    for inner in (leaf, VectorRetriever(vectorstore=filled, filter={"tenant": "a"})):
        retriever = HyDERetriever.from_llm(
            Scripted(script=reply(PASSAGE)), inner, mode="vector", filter={"n": {"$lt": 7}}, k=8
        )
        assert sorted(map(str, ids(await both(retriever, QUESTION)))) == ["0", "2", "4", "6"]
        found = await both(retriever, QUESTION, filter={"n": {"$gt": 1}}, k=2)
        assert len(found) == 2 and {doc.metadata["n"] for doc in found} <= {2, 4, 6}


async def test_vector_mode_on_chroma() -> None:
    """Chroma's search by vector gives scores too, higher for nearer documents, with filters in its language."""
    client = chromadb.EphemeralClient(Settings(anonymized_telemetry=False))
    chroma = Chroma("hyde", WordEmbeddings(), client=client, collection_metadata={"hnsw:space": "cosine"})
    chroma.add_documents(DOCS)
    retriever = HyDERetriever.from_llm(Scripted(script=reply(f"{PASSAGE} {PASSAGE}")), chroma, k=2)
    found = await both(retriever, QUESTION)
    scores = [get_provenance(doc)["score"] for doc in found]
    assert found[0].id == "insects" and 1 >= scores[0] > scores[1]
    assert ids(await both(retriever, QUESTION, filter={"name": "honey"})) == ["honey"]
    client.delete_collection("hyde")


async def test_vector_mode_falls_back() -> None:
    """Without passages, or when they cannot be embedded, the plain search of the store is made and told."""
    found = await both(HyDERetriever.from_llm(Scripted(script=""), store()), QUESTION)
    plain = VectorRetriever(vectorstore=store()).invoke(QUESTION)
    assert ids(found) == ids(plain)
    assert get_provenance(found[0])["score"] == get_provenance(plain[0])["score"]
    broken = HyDERetriever.from_llm(
        Scripted(script=reply(PASSAGE)), store(), embeddings=WordEmbeddings(fail_after=0)
    )
    found = await both(broken, QUESTION)
    assert ids(found) == ids(plain) and any("embedding failed" in note for note in notes(found))


def test_wrong_arguments() -> None:
    """Vector mode needs a vector store, and n is from 1 to 32."""
    with pytest.raises(InvalidInputError, match="needs a vector store"):
        made("", mode="vector")
    with pytest.raises(InvalidInputError, match="n=0"):
        made("", n=0)
    with pytest.raises(InvalidInputError, match="mode"):
        made("", mode="both")

    class NoEmbeddings(InMemoryVectorStore):
        @property
        def embeddings(self) -> Any:
            return None

    with pytest.raises(InvalidInputError, match="give embeddings="):
        HyDERetriever.from_llm(Scripted(script=""), NoEmbeddings(WordEmbeddings()))


async def test_sparse_form_repeats_the_question_five_times() -> None:
    """One query: the question five times as in the paper, then the passage; the passage also stands alone."""
    retriever = joined(reply(PASSAGE))
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
    filled = store()
    for inner in (filled, VectorRetriever(vectorstore=filled), filled.as_retriever()):
        retriever = Query2DocRetriever.from_llm(Scripted(script=reply(PASSAGE)), inner, k=1)
        found = await both(retriever, QUESTION)
        assert retriever.mode == "dense" and sent(found) == [f"{QUESTION} [SEP] {PASSAGE}"]
    own = Query2DocRetriever.from_llm(Scripted(script=reply(PASSAGE)), filled, separator="|")
    assert sent(await both(own, QUESTION)) == [f"{QUESTION} | {PASSAGE}"]
    sparse = Query2DocRetriever.from_llm(Scripted(script=reply(PASSAGE)), filled, mode="sparse", repeat=2)
    assert sent(await both(sparse, QUESTION)) == [f"{QUESTION} {QUESTION} {PASSAGE}"]


async def test_with_the_question_beside_it() -> None:
    """include_original=True also searches for the question alone, and fuses the two."""
    found = await both(joined(reply(PASSAGE), include_original=True, repeat=1), QUESTION)
    assert sent(found) == [QUESTION, f"{QUESTION} {PASSAGE}"]
