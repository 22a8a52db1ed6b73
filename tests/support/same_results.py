"""Print what parts of the kit make of texts of this repository, to be compared between processes."""

from __future__ import annotations

import json
from pathlib import Path

from langchain_core.documents import Document

from rag_kit.documents import get_provenance
from rag_kit.graphs import build_plain_rag
from rag_kit.indexing import read, split
from rag_kit.models import chat_model
from rag_kit.retrieval import BM25Retriever, EnsembleRetriever, TrigramRetriever
from rag_kit.text.citations.check import check_citations

ROOT = Path(__file__).resolve().parents[2]
QUESTIONS = (
    "How do I limit the nmber of model calls?",
    "怎样让检索只看一个租户的文档？",
    "What does a wide chunk cost?",
)

#: A passage, and a statement with two words of it cut alike: the longest of a set was taken once.
PASSAGE, STATEMENT = "犯罪嫌疑人赵某被刑事拘留，钱某被取保候审。", "犯罪嫌钱某疑人被刑事拘留。"


def main() -> None:
    """Search the guide with right and wrong letters, ask it, and check citations against the passages of others."""
    pages = [
        page for language in ("en", "zh") for page in sorted((ROOT / "docs/guide" / language).glob("ret*.md"))
    ]
    chunks = [chunk for page in pages for chunk in split(read(page))]
    parts = [BM25Retriever.from_documents(chunks), TrigramRetriever.from_documents(chunks)]
    ensemble = EnsembleRetriever(retrievers=parts)
    graph = build_plain_rag(ensemble, chat_model("extractive"))
    for question in QUESTIONS:
        found = ensemble.invoke(question)
        print([(document.page_content[:40], get_provenance(document)) for document in found])
        state = graph.invoke({"question": question})
        print(state["answer"], state["status"], state["notes"])
    lines = (ROOT / "benchmarks/quality/citation_pairs.jsonl").read_text(encoding="utf-8").splitlines()[::24]
    cases = [*map(json.loads, lines), {"passage": PASSAGE, "false": [STATEMENT]}]
    for case in cases:
        for statement in (*case.get("true", ()), *case.get("false", ())):
            print(check_citations(f"{statement}[1]", [Document(case["passage"])]))


if __name__ == "__main__":
    main()
