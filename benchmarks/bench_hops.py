"""How many files of the kit one warm call enters, over all threads, as a share of the number aimed at.

    python benchmarks/bench_hops.py        # names the files too

The files of the embedded language model, which stands for a model of the user's, do not count.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness import Row, at_most
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.runnables import RunnableLambda

TARGETS = {
    "EnsembleRetriever.invoke, 2 foreign retrievers": 10,
    "EnsembleRetriever.invoke, 2 BM25 retrievers": 16,
    "MultiQueryRetriever.ainvoke": 24,
    "structured_call": 10,
    "build_plain_rag": 26,
    "build_crag": 36,
}
TEXTS = ["The pump starts at 40 degrees.", "The fan is loud at night.", "Oil the hinge once a year."]
QUESTION = "When does the pump start?"


def calls() -> list[Callable[[], Any]]:
    """One call for each target, in their order."""
    from rag_kit.graphs import build_crag, build_plain_rag
    from rag_kit.models import chat_model, structured_call
    from rag_kit.prompts import load_prompt
    from rag_kit.retrieval import BM25Retriever, EnsembleRetriever, MultiQueryRetriever

    llm = chat_model("extractive")
    queries = '{"queries": ["At how many degrees does it start?", "When is the pump on?"]}'
    words = BM25Retriever.from_texts(TEXTS)
    foreign = RunnableLambda(lambda query: [Document(text) for text in TEXTS])
    ensemble = EnsembleRetriever(retrievers=[foreign, foreign])
    both = EnsembleRetriever(retrievers=[words, BM25Retriever.from_texts(TEXTS[1:])])
    multi_query = MultiQueryRetriever.from_llm(FakeListChatModel(responses=[queries]), words)
    general = FakeListChatModel(responses=['{"query": "How does a pump work?"}'])
    prompt = load_prompt("step_back")
    plain, crag = build_plain_rag(words, llm), build_crag(words, llm)
    return [
        lambda: ensemble.invoke(QUESTION),
        lambda: both.invoke(QUESTION),
        lambda: asyncio.run(multi_query.ainvoke(QUESTION)),
        lambda: structured_call(general, prompt, {"question": QUESTION}),
        lambda: plain.invoke({"question": QUESTION}),
        lambda: crag.invoke({"question": QUESTION}),
    ]


def count() -> dict[str, list[str]]:
    """The files that the third call enters; to be called before any thread of the kit has started."""
    import rag_kit

    root = str(Path(rag_kit.__file__).parent)
    seen: set[str] = set()

    def note(frame: Any, event: str, argument: Any) -> None:
        seen.add(frame.f_code.co_filename)

    threading.setprofile(note)
    sys.setprofile(note)
    found = {}
    for name, call in zip(TARGETS, calls(), strict=True):
        for _ in range(3):
            seen.clear()
            call()
        own = {Path(path).relative_to(root).as_posix() for path in seen.copy() if path.startswith(root)}
        found[name] = sorted(path for path in own if not path.startswith("models/extractive/"))
    sys.setprofile(None)
    threading.setprofile(None)
    return found


def run(quick: bool = False) -> list[Row]:
    """Count, in a process of its own."""
    done = subprocess.run(
        [sys.executable, __file__, "--json"], stdout=subprocess.PIPE, check=True, encoding="utf-8"
    )
    found = json.loads(done.stdout)
    return [
        at_most(f"{name} / {most} files", len(found[name]) / most, 1, f"{len(found[name])} files")
        for name, most in TARGETS.items()
    ]


if __name__ == "__main__":
    result = count()
    if "--json" in sys.argv:
        print(json.dumps(result))
    else:
        for name, files in result.items():
            print(f"{len(files):3} {name} (aim: {TARGETS[name]})", *files, sep="\n      ")
