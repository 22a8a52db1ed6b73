"""Model calls and tokens that one question over three passages costs each graph, by a scripted model: exact counts.

python benchmarks/speed/graph_costs.py            print the table
python benchmarks/speed/graph_costs.py --write    write it into the guide, in both languages
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from langchain_core.documents import Document
from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver
from scripted import Model, task_of

from rag_kit.graphs import (
    build_adaptive_rag,
    build_conversational_rag,
    build_crag,
    build_plain_rag,
    build_self_rag,
)

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide"
MARKED = re.compile(
    r"(<!-- begin table: graph-costs[^>]*-->\n).*?(<!-- end table: graph-costs -->)", re.DOTALL
)
PARTS = ("pump", "fan", "valve")
PASSAGES = [
    Document(
        f"The {part} of the plant starts at {40 + number} degrees Celsius and stops at {30 + number} degrees. It is "
        f"driven by a motor of two kilowatts, which stands beside it. The {part} is tested on the first Monday of each "
        "month by the staff of the hall. A test that fails is written into the log, and the maker is called. Its "
        "warranty lasts two years from the day of delivery.",
        metadata={"file": f"{part}.md"},
    )
    for number, part in enumerate(PARTS)
]
QUESTION = "When does the pump start, and how long does its warranty last?"
ANSWER = "The pump starts at 40 degrees Celsius.[1] Its warranty lasts two years.[1]"
YES, NO = (
    {"relevant": good, "score": score, "reason": "It says so."} for good, score in ((True, 0.9), (False, 0.1))
)
ALL = [{"id": number, **YES} for number in range(1, 11)]
NONE = [{"id": number, **NO} for number in range(1, 11)]
LABELS = [
    {"id": number, "relevance": "relevant", "support": "full", "usefulness": 4} for number in range(1, 11)
]
REPLIES: dict[str, Any] = {
    "condense": {"query": QUESTION},
    "classify_question": {"intent": "question", "complexity": "single", "reason": "One thing is asked for."},
    "grade_passages": {"grades": ALL},
    "web_query": {"keywords": ["pump", "start"]},
    "grade_support": YES,
    "grade_usefulness": YES,
    "rewrite_query": {"query": "start of the pump"},
    "retrieve_needed": {"retrieve": "yes"},
    "critique": {"labels": LABELS},
}


def scripted(replies: dict[str, Any]) -> Model:
    """Make a model that answers each task of a prompt as the script says, a list in turn; its last is repeated."""
    asked: list[str] = []

    def reply(messages: list[BaseMessage]) -> str:
        task = task_of(messages)
        reply = replies.get(task, ANSWER)
        if isinstance(reply, list):
            reply = reply[min(asked.count(task), len(reply) - 1)]
        asked.append(task)
        return reply if isinstance(reply, str) else json.dumps(reply)

    return Model(reply=reply, delay=0)


def follow_up(retriever: Any, llm: Any) -> Any:
    """The conversational graph with one turn behind it."""
    graph = build_conversational_rag(retriever, llm, checkpointer=InMemorySaver())
    graph.invoke({"question": QUESTION}, {"configurable": {"thread_id": "1"}})
    return graph


WEB = RunnableLambda(lambda query: [{"url": "https://a.example", "content": PASSAGES[0].page_content}])
HOPS = [
    {"done": False, "query": "pump start?"},
    {"done": False, "query": "warranty?"},
    {"done": True, "query": ""},
]
SEGMENTS = [f"Sentence {number} on the pump." for number in range(99)]
#: Case -> its name in both languages, builder, replies of its own, settings of the run.
CASES: list[tuple[str, str, Callable[..., Any], dict[str, Any], dict[str, Any]]] = [
    ("plain", "普通 RAG", build_plain_rag, {}, {}),
    ("conversational, a follow-up", "对话，追问", follow_up, {}, {}),
    ("CRAG, correct", "CRAG，判为正确", build_crag, {}, {}),
    (
        "CRAG, incorrect: web search", "CRAG，判为错误：网络搜索", partial(build_crag, web_search=WEB),
        {"grade_passages": [{"grades": NONE}, {"grades": ALL}]}, {},
    ),
    ("Adaptive-RAG, one step", "Adaptive-RAG，一步", build_adaptive_rag, {}, {}),
    (
        "Adaptive-RAG, two steps", "Adaptive-RAG，两步", build_adaptive_rag,
        {"classify_question": {**REPLIES["classify_question"], "complexity": "multi"}, "next_hop": HOPS}, {},
    ),
    (
        "Self-RAG, reflect: accepted at once", "Self-RAG，reflect：一次通过",
        partial(build_self_rag, mode="reflect"), {}, {},
    ),
    (
        "Self-RAG, reflect: nothing accepted", "Self-RAG，reflect：始终不通过", partial(build_self_rag, mode="reflect"),
        {"grade_support": NO}, {},
    ),
    (
        "Self-RAG, paper: one segment", "Self-RAG，paper：一段", partial(build_self_rag, mode="paper"),
        {"continue_answer": SEGMENTS}, {"max_segments": 1},
    ),
    (
        "Self-RAG, paper: three segments", "Self-RAG，paper：三段", partial(build_self_rag, mode="paper"),
        {"continue_answer": SEGMENTS}, {},
    ),
]  # fmt: skip
HEADS = {"en": "| graph | model calls | tokens |", "zh": "| 图 | 模型调用次数 | 词元 |"}


def measure() -> list[tuple[int, int]]:
    """Calls and tokens of each case."""
    costs = []
    for _, _, build, replies, context in CASES:
        retriever = RunnableLambda(lambda query: [document.model_copy(deep=True) for document in PASSAGES])
        graph = build(retriever, scripted({**REPLIES, **replies}))
        thread = {"configurable": {"thread_id": "1"}}
        usage = graph.invoke({"question": QUESTION}, thread, context=context)["usage"]
        costs.append((usage["calls"], usage["tokens"]))
    return costs


def table(language: str, costs: list[tuple[int, int]]) -> str:
    """The costs as Markdown; tokens to the hundred."""
    names = [case[language == "zh"] for case in CASES]
    rows = [
        f"| {name} | {calls} | {tokens:,.0f} |" for name, (calls, tokens) in zip(names, costs, strict=True)
    ]
    return "\n".join([HEADS[language], "|---|---|---|", *rows])


def main() -> None:
    """Print the table, or write it into the guide."""
    costs = measure()
    for language in HEADS:
        page = GUIDE / language / "answers.md"
        if "--write" in sys.argv[1:]:
            text = page.read_text(encoding="utf-8")
            made = f"\n{table(language, costs)}\n\n"
            page.write_text(
                MARKED.sub(lambda found, made=made: found[1] + made + found[2], text), encoding="utf-8"
            )
    print(table("en", costs))


if __name__ == "__main__":
    main()
