"""A program as a user would write it: every public face that a typed application meets."""

from __future__ import annotations

import asyncio
from pathlib import Path

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever

from rag_kit.concurrency import Budget, afan_out, fan_out, use_budget
from rag_kit.documents import get_provenance
from rag_kit.evaluation import Example, Results, compare, evaluate
from rag_kit.graphs import build_crag, build_plain_rag
from rag_kit.indexing import BM25Index, DocumentIndex, ingest, read, split
from rag_kit.models import chat_model, embedding_model, structured_call
from rag_kit.prompts import load_prompt
from rag_kit.retrieval import (
    BM25Retriever,
    EnsembleRetriever,
    MultiQueryRetriever,
    explain,
    index_retriever,
    reciprocal_rank_fusion,
)


def passages(question: str, folder: Path) -> list[str]:
    documents: list[Document] = list(split(read(folder / "notes.md")))
    words = BM25Retriever.from_documents(documents, k=2)
    llm = chat_model("extractive")
    retriever: BaseRetriever = EnsembleRetriever(
        retrievers=[words, MultiQueryRetriever.from_llm(llm, words)], weights=[0.6, 0.4], k=2
    )
    found = retriever.invoke(question)
    print(explain(found), get_provenance(found[0]))
    fused = reciprocal_rank_fusion(
        [[document.page_content for document in each] for each in (found, documents)]
    )
    return [document.page_content for document in found] + [str(len(fused))]


def answer(question: str, folder: Path) -> str:
    vectors = embedding_model("none")
    report = ingest(folder, folder / "index", embeddings=vectors)
    assert report.added >= 0
    with DocumentIndex.open(folder / "index", embeddings=vectors) as index:
        graph = build_plain_rag(index_retriever(index, k=4), chat_model("extractive"))
        result = graph.invoke({"question": question})
    text: str = result["answer"]
    return text


async def answer_later(question: str, retriever: BaseRetriever) -> str:
    graph = build_crag(retriever, chat_model("extractive"))
    result = await graph.ainvoke({"question": question})
    return str(result["answer"])


def score(retriever: BaseRetriever, folder: Path) -> float | None:
    questions = [Example("q1", "When does the pump start?", answers=("40 degrees",))]
    runs: list[Results] = [
        evaluate(
            build_plain_rag(retriever, chat_model("extractive")),
            questions,
            ["ours_answer_found"],
            name=name,
            out=folder / name,
        )
        for name in ("one", "two")
    ]
    return compare(runs).pair("one", "two", "ours_answer_found").difference


def condensed(question: str) -> object:
    return structured_call(
        chat_model("extractive"), load_prompt("condense"), {"history": "", "question": question}
    )


async def both() -> list[int]:
    async def one() -> int:
        return 1

    found = await afan_out([one, one])
    return [outcome.value for outcome in found.outcomes if outcome.value is not None]


def main(folder: Path) -> None:
    (folder / "notes.md").write_text("# Pump\n\nThe pump starts at 40 degrees.\n", encoding="utf-8")
    question = "When does the pump start?"
    with use_budget(Budget(max_calls=100)):
        print(passages(question, folder), answer(question, folder))
    words = BM25Retriever(index=BM25Index.from_texts(["The pump starts at 40 degrees."]))
    print(asyncio.run(answer_later(question, words)), score(words, folder), condensed(question))
    print(asyncio.run(both()), [outcome.value for outcome in fan_out([lambda: 1]).outcomes])
