"""A run of the CRAG graph in a process of its own, which may be killed at a node and started again.

``python crag_killed.py SAVER WHERE LOG START|GO [KILL_AT]``: SAVER is ``sqlite`` or ``postgres``, WHERE its file or
address. Each node's work writes a line to LOG; at the work KILL_AT the process kills itself, as a crash would.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool

from rag_kit.graphs import build_crag
from support.crag import Marked, model
from support.graphs import saver

# run as a script; imported (to look for doctests) it has no arguments
SAVER, WHERE, LOG, HOW, KILL_AT = (*(sys.argv[1:] if __name__ == "__main__" else [""] * 4), "")[:5]
CONFIG: Any = {"configurable": {"thread_id": "1"}}


def did(work: str) -> None:
    """Note a piece of work, or die before it is done."""
    if work == KILL_AT:
        os.kill(os.getpid(), signal.SIGKILL)
    with open(LOG, "a", encoding="utf-8") as log:
        log.write(work + "\n")


class Told(Marked):
    """Notes what it grades."""

    async def grade(self, question: str, passages: Sequence[Document], language: str) -> Any:
        kind = "external" if any(p.metadata.get("origin") == "web" for p in passages) else "internal"
        did(f"grade {kind} {len(passages)}")
        return await super().grade(question, passages, language)


def retrieve(query: str) -> list[Document]:
    did("retrieve")
    return [Document("The pump hums. It is blue. It is old. It starts at 40 degrees."), Document("Bananas.")]


def telling(task: str, reply: Any) -> Any:
    """A reply of the model, which notes that it was asked."""

    def answer(prompt: Any) -> Any:
        did(task)
        return reply

    return answer


@tool
def web(query: str) -> Any:
    """Search the web."""
    did("web")
    return [{"url": "https://a.example/x", "content": "The fan starts at 60 degrees."}]


def main() -> None:
    """Run, or go on."""
    with saver(SAVER, WHERE) as checkpointer:
        llm = model(
            telling("answer", "The pump hums. [1] The fan starts at 60 degrees. [2]"),
            telling("web_query", {"keywords": ["pump", "start"]}),
        )
        graph = build_crag(
            RunnableLambda(retrieve),  # type: ignore[arg-type]
            llm,
            evaluator=Told({"pump": 0.1, "starts at 40": 0.3, "fan": 0.8}),
            web_search=web,
            checkpointer=checkpointer,
            output="full",
        )
        given = {"question": "When does it start?"} if HOW == "START" else None
        found = graph.invoke(given, CONFIG, durability="sync")  # type: ignore[arg-type]
        print(json.dumps({key: found[key] for key in ("answer", "status", "action", "notes", "usage")}))


if __name__ == "__main__":
    main()
