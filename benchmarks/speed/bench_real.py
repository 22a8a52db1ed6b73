"""A real language model at an endpoint: do structured calls end and fit, and what does a question cost each graph?

The endpoint is that of ``RAG_KIT_CHAT_MODEL`` and ``RAG_KIT_BASE_URL``; nothing is asserted of what it says. Figures go
to results/real.json, and the table of costs is printed as Markdown:
``RAG_KIT_CHAT_MODEL=openai:NAME RAG_KIT_BASE_URL=http://127.0.0.1:8000/v1 python benchmarks/speed/bench_real.py``.
"""

from __future__ import annotations

from harness import Row, at_least, at_most  # isort: skip  (sets the threads first)

import json
import os
import statistics
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langgraph.checkpoint.memory import InMemorySaver

from rag_kit.concurrency import fan_out
from rag_kit.errors import ModelError
from rag_kit.graphs import (
    build_adaptive_rag,
    build_conversational_rag,
    build_crag,
    build_plain_rag,
    build_self_rag,
)
from rag_kit.models import chat_model, structured_call
from rag_kit.models.wrapped import bare_model, endpoint_of
from rag_kit.prompts import load_prompt, render_passages
from rag_kit.prompts.library import PromptLibrary
from rag_kit.prompts.rendering import render_history
from rag_kit.retrieval import BM25Retriever

RESULT = Path(__file__).resolve().parent.parent / "results" / "real.json"
CALLS = 300
AT_ONCE = 4
_SCHEMA = "Table pumps (name TEXT, start_celsius INTEGER, hall INTEGER). Table fans (name TEXT, fee REAL)."
_LANGUAGES: dict[str, dict[str, Any]] = {
    "en": {
        "passages": [
            "The pump in hall 3 starts at 40 degrees Celsius and stops at 35 degrees.",
            "The fan in hall 3 starts when the gas reaches 20 ppm. It is tested on the first Monday of each month.",
            "Whoever rents hall 3 pays a fee of 15 euros an hour; clubs pay 9 euros.",
        ],
        "questions": [
            "When does the pump in hall 3 start?",
            "What do clubs pay for two hours in hall 3?",
            "Which is tested monthly, the pump or the fan, and when does it start?",
        ],
        "statement": "The pump starts at 40 degrees Celsius.",
        "history": [("user", "Is there a pump?"), ("assistant", "Yes, in hall 3.")],
    },
    "zh": {
        "passages": [
            "三号厅的水泵在40摄氏度启动，低于35摄氏度时停止。",
            "三号厅的风扇在气体浓度达到20 ppm时启动，每月第一个星期一测试。",
            "租用三号厅每小时收费15欧元，俱乐部收费9欧元。",
        ],
        "questions": [
            "三号厅的水泵什么时候启动？",
            "俱乐部租用三号厅两小时要多少钱？",
            "水泵和风扇哪一个每月测试？",
        ],
        "statement": "水泵在40摄氏度启动。",
        "history": [("user", "有水泵吗？"), ("assistant", "有，在三号厅。")],
    },
}


class Requests(BaseCallbackHandler):
    """Notes of each request how it asked, its bound and how many tokens came."""

    def __init__(self) -> None:
        self.sent: dict[Any, tuple[str, int | None]] = {}
        self.done: list[dict[str, Any]] = []

    def on_chat_model_start(self, serialized: Any, messages: Any, *, run_id: Any, **kwargs: Any) -> None:
        sent = kwargs.get("invocation_params") or {}
        form = (sent.get("response_format") or {}).get("type", "tools" if sent.get("tools") else "text")
        bound = (sent.get("extra_body") or {}).get("max_tokens")
        self.sent[run_id] = form, bound or sent.get("max_completion_tokens") or sent.get("max_tokens")

    def on_llm_end(self, response: Any, *, run_id: Any, **kwargs: Any) -> None:
        message = response.generations[0][0].message
        usage = message.usage_metadata or {}
        form, bound = self.sent.pop(run_id, ("?", None))
        out = usage.get("output_tokens", 0)
        self.done.append({"form": form, "bound": bound, "in": usage.get("input_tokens", 0), "out": out})


def values_of(prompt: Any, language: str, question: str) -> dict[str, Any]:
    """Something for each variable of a prompt."""
    words = _LANGUAGES[language]
    passages = render_passages(words["passages"])
    known: dict[str, Any] = {
        "question": question, "passages": passages, "surroundings": passages, "statement": words["statement"],
        "statements": render_passages([words["statement"]] * 2), "history": render_history(words["history"]),
        "answer": words["statement"], "count": 3, "number": 3, "most": 3, "max_rows": 10, "dialect": "sqlite",
        "schema": _SCHEMA, "today": "2026-11-28", "target": "zh" if language == "en" else "en",
    }  # fmt: skip
    return {name: known.get(name, words["statement"]) for name in prompt.input_variables}


def measure_calls(model: Any, calls: int) -> dict[str, Any]:
    """Structured calls over all prompts that have a schema, in both languages: how many gave a valid object."""
    prompts = [load_prompt(name, language=tongue) for name, tongue in PromptLibrary().entries()]
    prompts = [prompt for prompt in prompts if prompt.output_schema is not None]
    watch, failures, jobs = Requests(), Counter[str](), []
    for number in range(calls):
        prompt = prompts[number % len(prompts)]
        language = prompt.metadata["language"]
        questions = _LANGUAGES[language]["questions"]
        values = values_of(prompt, language, questions[number // len(prompts) % len(questions)])
        config = {"callbacks": [watch]}
        jobs.append(
            (prompt.title, partial(structured_call, model, prompt, values, config=config, timeout=300))
        )
    outcomes = fan_out([job for _, job in jobs], on_error="skip", max_concurrency=AT_ONCE).outcomes
    for (title, _), outcome in zip(jobs, outcomes, strict=True):
        if outcome.error is not None:
            failures[f"{title}: {type(outcome.error).__name__}"] += 1
            print("   ", title, outcome.error)
    over = [request for request in watch.done if request["bound"] and request["out"] > request["bound"]]
    return {
        "calls": calls,
        "valid": calls - sum(failures.values()),
        "failures": dict(failures),
        "requests": dict(Counter(request["form"] for request in watch.done)),
        "without_bound": sum(request["bound"] is None for request in watch.done),
        "over_bound": len(over),
        "longest": max((request["out"] for request in watch.done), default=0),
    }


def measure_graphs(model: Any, rounds: int) -> list[dict[str, Any]]:
    """Calls and tokens of a question over three passages, in each graph."""
    rows = []
    builders = {
        "plain RAG": build_plain_rag,
        "conversational, a follow-up": partial(build_conversational_rag, checkpointer=InMemorySaver()),
        "CRAG": build_crag,
        "Adaptive-RAG": build_adaptive_rag,
        "Self-RAG, reflect": partial(build_self_rag, mode="reflect"),
        "Self-RAG, paper": partial(build_self_rag, mode="paper"),
    }
    for name, build in builders.items():
        costs, errors, statuses = [], Counter[str](), Counter[str]()
        for language in _LANGUAGES:
            words = _LANGUAGES[language]
            retriever = BM25Retriever.from_documents([Document(text) for text in words["passages"]], k=3)
            graph = build(retriever, model)
            for question in words["questions"][:rounds]:
                watch = Requests()
                thread = {"configurable": {"thread_id": question}}
                try:
                    if "follow-up" in name:
                        graph.invoke({"question": words["questions"][-1]}, thread)
                    result = graph.invoke({"question": question}, {**thread, "callbacks": [watch]})
                    statuses[result["status"]] += 1
                except (ModelError, RuntimeError) as error:
                    errors[type(error).__name__] += 1
                    print("   ", name, language, error)
                costs.append([len(watch.done), *(sum(r[key] for r in watch.done) for key in ("in", "out"))])
        calls, sent, got = zip(*costs, strict=True)
        means = {"calls": statistics.mean(calls), "in": statistics.mean(sent), "out": statistics.mean(got)}
        ends = {"fewest": min(calls), "most": max(calls), "errors": dict(errors), "statuses": dict(statuses)}
        rows.append({"graph": name, **means, **ends})
        print("   ", rows[-1], flush=True)
    return rows


def table(rows: list[dict[str, Any]]) -> str:
    """The costs as a Markdown table for the guide."""
    lines = ["| graph | calls | tokens in | tokens out | fewest and most calls |", "|---|---|---|---|---|"]
    for row in rows:
        cells = [row["graph"], f"{row['calls']:.1f}", f"{row['in']:,.0f}", f"{row['out']:,.0f}"]
        lines.append(f"| {' | '.join(cells)} | {row['fewest']} – {row['most']} |")
    return "\n".join(lines)


def run(quick: bool = False) -> list[Row]:
    """Measure the configured endpoint; refused where there is none."""
    if not os.environ.get("RAG_KIT_BASE_URL"):
        raise SystemExit("Set RAG_KIT_CHAT_MODEL and RAG_KIT_BASE_URL to an endpoint that runs a model.")
    model = chat_model(temperature=0.0, timeout=300)
    found = measure_calls(model, 40 if quick else CALLS)
    first = endpoint_of(bare_model(model)).first_method
    print("   ", {**found, "first_method": first}, flush=True)
    graphs = measure_graphs(model, 1 if quick else 3)
    print(table(graphs), flush=True)
    if not quick:
        content = {"structured": found, "graphs": graphs}
        RESULT.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    failed = sum(sum(row["errors"].values()) for row in graphs)
    return [
        at_least("structured calls with a valid object", found["valid"] / found["calls"], 0.99),
        at_most(
            "replies longer than their bound, and requests without one",
            found["over_bound"] + found["without_bound"],
            0,
        ),
        at_most("runs of graphs that ended in an error", failed, 0),
    ]


if __name__ == "__main__":
    for row in run():
        print(row)
