"""A model that represents passages, as a script for ``OpenAIServer`` or ``Scripted``; and an ingest to be killed."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable

PASSAGE = re.compile(r'<passage id="(\d+)"[^>]*>(.*?)</passage>', re.DOTALL)


def texts_for(task: str, passage: str) -> list[str]:
    """What the model writes for a passage."""
    word = passage.split()[-1].strip(".")
    return {
        "represent_summary": [f"In short: {word}."],
        "represent_questions": [f"Who asks about {word}?", f"What is {word}?"],
        "represent_keywords": [word, "synonym"],
        "represent_qa": [f"What is it? It is {word}."],
        "represent_tags": [f"topic: {word}", f"Place: {word}", "tenant: stolen"],
        "represent_translation": [f"译文：{word}"],
        "represent_situation": [],
    }[task]


def reply(prompt: str, texts: Callable[[str, str], list[str]] = texts_for) -> str:
    """The reply to a prompt."""
    task = re.search(r"<task>(\w+)</task>", prompt)[1]
    entries = [{"id": int(n), "texts": texts(task, text)} for n, text in PASSAGE.findall(prompt)]
    return json.dumps({"passages": entries}, ensure_ascii=False)


def main() -> None:
    """Ingest a folder with a model on loopback: DOCS INDEX URL."""
    from langchain_openai import ChatOpenAI

    from rag_kit.indexing import IngestOptions, ingest

    docs, index, url = sys.argv[1:]
    model = ChatOpenAI(model="test", base_url=url, api_key="sk-test")
    ingest(
        docs, index, options=IngestOptions(represent=["summary", "questions"], llm=model, max_concurrency=1)
    )


if __name__ == "__main__":
    main()
