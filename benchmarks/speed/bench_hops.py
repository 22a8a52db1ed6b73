"""How many files of the kit one warm call enters, over all threads, as a share of the number aimed at; and how many
frames of the kit are on the deepest stack.

    python benchmarks/speed/bench_hops.py        # names the files, and the frames, too

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

MULTI_QUERY = "MultiQueryRetriever.ainvoke"
TARGETS = {
    "EnsembleRetriever.invoke, 2 foreign retrievers": 8,
    "EnsembleRetriever.invoke, 2 BM25 retrievers": 16,
    MULTI_QUERY: 15,
    "structured_call": 10,
    "build_plain_rag": 16,
    "build_crag": 22,
}
STACK = "deepest stack of MultiQueryRetriever.ainvoke"
MOST_FRAMES = 14
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


def count() -> dict[str, Any]:
    """The files that the third call of each target enters, and the deepest stack of MultiQuery's.

    To be called before any thread of the kit has started.
    """
    import rag_kit

    root = str(Path(rag_kit.__file__).parent)
    seen: set[str] = set()
    deepest: list[str] = []

    def note(frame: Any, event: str, argument: Any) -> None:
        path = frame.f_code.co_filename
        seen.add(path)
        if event == "call" and path.startswith(root):
            stack = _own_frames(frame, root)
            if len(stack) > len(deepest):
                deepest[:] = stack

    threading.setprofile(note)
    sys.setprofile(note)
    found: dict[str, Any] = {}
    for name, call in zip(TARGETS, calls(), strict=True):
        for _ in range(3):
            seen.clear()
            deepest.clear()
            call()
        own = {Path(path).relative_to(root).as_posix() for path in seen.copy() if path.startswith(root)}
        found[name] = sorted(path for path in own if not path.startswith("models/extractive/"))
        if name == MULTI_QUERY:
            found[STACK] = deepest[:]
    sys.setprofile(None)
    threading.setprofile(None)
    return found


def _own_frames(frame: Any, root: str) -> list[str]:
    """The frames of the kit on a stack, the outermost first."""
    own = []
    while frame is not None:
        if (path := frame.f_code.co_filename).startswith(root):
            own.append(f"{Path(path).relative_to(root).as_posix()} {frame.f_code.co_name}")
        frame = frame.f_back
    return own[::-1]


def run(quick: bool = False) -> list[Row]:
    """Count, in a process of its own."""
    done = subprocess.run(
        [sys.executable, __file__, "--json"], stdout=subprocess.PIPE, check=True, encoding="utf-8"
    )
    found = json.loads(done.stdout)
    aims = [(name, most, "files") for name, most in TARGETS.items()] + [(STACK, MOST_FRAMES, "frames")]
    return [
        at_most(f"{name} / {most} {unit}", len(found[name]) / most, 1, f"{len(found[name])} {unit}")
        for name, most, unit in aims
    ]


if __name__ == "__main__":
    result = count()
    if "--json" in sys.argv:
        print(json.dumps(result))
    else:
        for name, most in {**TARGETS, STACK: MOST_FRAMES}.items():
            lines = result[name]
            print(f"{len(lines):3} {name} (aim: {most})", *lines, sep="\n      ")
