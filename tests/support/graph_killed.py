"""A run of any graph in a process of its own, which may be killed at a piece of work and started again.

``python graph_killed.py GRAPH SAVER WHERE LOG START|GO [KILL_AT]``: SAVER is ``sqlite`` or ``postgres``, WHERE its file
or address. Each call of the model and each search writes a line to LOG, and so does each finished node; before the
piece of work number KILL_AT (from 1) the process kills itself, as a crash would.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda

from rag_kit.graphs import build_adaptive_rag, build_conversational_rag, build_plain_rag, build_self_rag
from rag_kit.models.extractive.blocks import Prompt
from support.by_task import ByTask, by_task, first_sentence, labels
from support.graphs import saver

# run as a script; imported (to look for doctests) it has no arguments
GRAPH, SAVER, WHERE, LOG, HOW, KILL_AT = (
    *(sys.argv[1:] if __name__ == "__main__" else [""] * 5),
    "0",
)[:6]
CONFIG: Any = {"configurable": {"thread_id": "1"}}
_LOCK = threading.Lock()
_DONE = 0
RUNNING = threading.Event()


def did(work: str) -> None:
    """Note a piece of work, or die before it is done."""
    global _DONE
    with _LOCK:
        if HOW == "START" and not RUNNING.is_set():
            return
        _DONE += 1
        if str(_DONE) == KILL_AT:
            os.kill(os.getpid(), signal.SIGKILL)
        note(f"work {work}")


def note(line: str) -> None:
    """One line, written before anything else happens."""
    with open(LOG, "a", encoding="utf-8") as log:
        log.write(line + "\n")


class Told(ByTask):
    """Notes what it is asked."""

    def _generate(self, messages: list[Any], *args: Any, **kwargs: Any) -> Any:
        did(str(messages[0].content).split("<task>")[1].split("</task>")[0])
        return super()._generate(messages, *args, **kwargs)


def told(**answers: Any) -> Told:
    return Told(**by_task(answers).model_dump())


def retrieve(query: str) -> list[Document]:
    did("retrieve")
    beside = Document("The pump hums.")
    if GRAPH == "reflect" and query != BETTER["query"]:
        return [beside]
    return [Document("The fan starts at 60 degrees. It is red."), beside]


RETRIEVER: Any = RunnableLambda(retrieve)
ANSWER = "The fan starts at 60 degrees. [1]"
WHOLE = {"query": "When does the fan start?"}
BETTER = {"query": "start of the fan"}


def grade(prompt: Prompt) -> dict[str, Any]:
    """A passage, or an answer, about the fan is right."""
    good = "fan starts" in prompt.body
    return {"relevant": good, "score": 0.9 if good else 0.1, "reason": "so"}


def grade_all(prompt: Prompt) -> dict[str, Any]:
    """All passages of a call at once."""
    return {"grades": [{"id": one.number, **grade(prompt)} for one in prompt.passages]}


def hop(prompt: Prompt) -> dict[str, Any]:
    """One step, then it is enough."""
    return {"done": "<turn" in prompt.body, "query": "When does the fan start?"}


def plain(saver: Any) -> Any:
    return build_plain_rag(RETRIEVER, told(condense=WHOLE, answer=ANSWER), checkpointer=saver, output="full")


def conversational(saver: Any) -> Any:
    llm = told(
        condense=WHOLE,
        answer=ANSWER,
        summarise_history="They spoke of fans.",
        related_questions={"queries": ["Is it red?"]},
    )
    return build_conversational_rag(RETRIEVER, llm, checkpointer=saver, output="full")


def paper(saver: Any) -> Any:
    llm = told(
        condense=WHOLE,
        retrieve_needed={"retrieve": "yes"},
        continue_answer=first_sentence,
        continue_unaided="END",
        critique=labels(),
        critique_usefulness={"usefulness": 4},
    )
    return build_self_rag(RETRIEVER, llm, checkpointer=saver, output="full")


def reflect(saver: Any) -> Any:
    llm = told(
        condense=WHOLE,
        grade_passages=grade_all,
        rewrite_query=BETTER,
        answer=ANSWER,
        grade_support=grade,
        grade_usefulness=grade,
    )
    return build_self_rag(RETRIEVER, llm, mode="reflect", checkpointer=saver, output="full")


def adaptive(saver: Any) -> Any:
    llm = told(
        condense=WHOLE,
        classify_question={"intent": "question", "complexity": "multi", "reason": "two facts"},
        next_hop=hop,
        answer=ANSWER,
        answer_from_hops=ANSWER,
    )
    return build_adaptive_rag(RETRIEVER, llm, checkpointer=saver, output="full")


GRAPHS: dict[str, Callable[[Any], Any]] = {
    "plain": plain,
    "conversational": conversational,
    "paper": paper,
    "reflect": reflect,
    "adaptive": adaptive,
}


def main() -> None:
    """Run, or go on."""
    with saver(SAVER, WHERE) as checkpointer:
        graph = GRAPHS[GRAPH](checkpointer)
        settings = {"max_history_turns": 1, "related_questions": True} if GRAPH == "conversational" else {}
        given = {"question": "When does it start?"} if HOW == "START" else None
        if given:
            # turns lie behind the thread, so that the question is made to stand alone (and is summarised)
            for turn in ("What is the fan?", "What is the pump?"):
                graph.invoke({"question": turn}, CONFIG, context=settings)
            RUNNING.set()
        # a node that was finished before is not told of again
        for update in graph.stream(given, CONFIG, context=settings, stream_mode="updates", durability="sync"):
            for node in update:
                note(f"node {node}")
        found = graph.get_state(CONFIG).values
        usage = {key: found["usage"][key] for key in ("calls", "tokens")}
        print(json.dumps({key: found[key] for key in ("answer", "status", "notes", "history")} | usage))


if __name__ == "__main__":
    main()
