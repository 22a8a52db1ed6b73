"""How much of the text compression keeps, and how often the answer is in it, on public question sets.

    python benchmarks/quality_compression.py DATA [--sets covidqa cmrc2018_dev] [--limit 200] [--embeddings minilm]

DATA is a folder with one folder per set (corpus.jsonl[.gz], qa.jsonl). Each question's five best BM25 chunks of 1,000
characters are compressed; questions whose answer is in none of them are left out. "Foreign": the passages are those
of another question, so that nothing matters.
"""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path
from typing import Any

from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda

from rag_kit.evaluation import load_dataset
from rag_kit.indexing import BM25Index, split
from rag_kit.models import embedding_model
from rag_kit.retrieval import CompressionRetriever

SETS = ("covidqa", "cmrc2018_dev", "timeqa_slice", "xquad_en", "xquad_zh")
Case = tuple[str, list[Document], list[str]]


def cases(folder: Path, limit: int) -> list[Case]:
    """Question, passages and answers, in a fixed random order."""
    index = BM25Index.from_documents(
        split(load_dataset(folder).documents(), chunk_size=1000, chunk_overlap=100)
    )
    rows = [json.loads(line) for line in (folder / "qa.jsonl").read_text(encoding="utf-8").splitlines()]
    random.Random(0).shuffle(rows)
    found: list[Case] = []
    for row in rows:
        answers = [answer.strip() for answer in row["answers"] if answer.strip()]
        passages = [doc for doc, _ in index.search(row["question"], k=5)]
        if len(found) < limit and any(a in doc.page_content for a in answers for doc in passages):
            found.append((row["question"], passages, answers))
    return found


def measure(given: list[Case], compressor: Any) -> tuple[float, float, float]:
    """Shares of answers kept, of text kept, and of passages dropped."""
    answered = kept = dropped = 0.0
    for question, passages, answers in given:
        retriever = CompressionRetriever(
            retriever=RunnableLambda(lambda query, found=passages: found),
            compressor=compressor,
            k=5,
            if_empty="empty",
        )
        result = retriever.invoke(question)
        answered += any(answer in doc.page_content for doc in result for answer in answers)
        kept += sum(len(doc.page_content) for doc in result) / sum(len(doc.page_content) for doc in passages)
        dropped += 1 - len(result) / len(passages)
    return answered / len(given), kept / len(given), dropped / len(given)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    parser.add_argument("--limit", type=int, default=200)
    parser.add_argument("--embeddings", help="name of an embedding model; without it the lexical compressor")
    given = parser.parse_args()
    compressor = embedding_model(given.embeddings) if given.embeddings else None
    for name in given.sets:
        found = cases(given.data / name, given.limit)
        foreign = [
            (question, found[(place + 7) % len(found)][1], answers)
            for place, (question, _, answers) in enumerate(found)
        ]
        answered, kept, _ = measure(found, compressor)
        dropped = measure(foreign, compressor)[2]
        shares = f"answer kept {answered:.3f}, text kept {kept:.3f}, foreign passages dropped {dropped:.2f}"
        print(f"{name}: {len(found)} questions, {shares}")


if __name__ == "__main__":
    main()
