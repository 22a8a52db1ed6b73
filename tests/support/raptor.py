"""A model that summarises clusters, as a script for ``OpenAIServer`` or ``Scripted``; and a build to be killed."""

from __future__ import annotations

import hashlib
import json
import re
import sys

from langchain_core.documents import Document

TOPICS = {
    "pump": "water valve pipe pressure",
    "moon": "orbit crater lunar dust",
    "bread": "flour yeast oven dough",
    "月球": "轨道 陨坑 尘埃 引力",
}
_CLUSTER = re.compile(r'<passage id="1"[^>]*>(.*?)</passage>', re.DOTALL)


def documents(copies: int = 2) -> list[Document]:
    """Passages on four topics, one of them in Chinese; each topic's passages share most of their words."""
    return [
        Document(
            f"{topic} {word} note {word}{number}: {topic} {words}",
            id=f"{topic}-{word}-{number}",
            metadata={"tenant": "ab"[number % 2], "topic": topic, "year": 2000 + number},
        )
        for topic, words in TOPICS.items()
        for word in words.split()
        for number in range(copies)
    ]


def cluster_of(prompt: str) -> str:
    """The texts of the cluster that a prompt asks about."""
    return "".join(_CLUSTER.findall(prompt)[:1])


def reply(prompt: str) -> str:
    """A summary with a word that no passage has (``overview``, ``概览``), the topics, and a mark of what was read."""
    cluster = cluster_of(prompt)
    topics = [topic for topic in TOPICS if topic in cluster]
    begin = "概览 概览" if "合起来写成一条摘要" in prompt else "overview overview"
    text = f"{begin} {' '.join(topics)} {hashlib.sha256(cluster.encode()).hexdigest()[:6]}"
    return json.dumps({"passages": [{"id": 1, "texts": [text]}]}, ensure_ascii=False)


def main() -> None:
    """Build the tree of an index with a model on loopback: INDEX URL."""
    from langchain_openai import ChatOpenAI

    from rag_kit.indexing import DocumentIndex
    from rag_kit.indexing.raptor.build import build_raptor
    from support.embedding import WordEmbeddings

    folder, url = sys.argv[1:]
    model = ChatOpenAI(model="test", base_url=url, api_key="sk-test")
    with DocumentIndex.open(folder, mode="w", embeddings=WordEmbeddings()) as index:
        build_raptor(index, model, max_tokens=150, max_concurrency=1)


if __name__ == "__main__":
    main()
