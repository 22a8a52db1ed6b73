"""Whole graphs with the extractive model on questions with and without an answer: right, wrong, declined.

    python benchmarks/quality_graphs.py DATA [--sets timeqa_slice] [--limit 300] [--out FILE]

DATA is a folder with one folder per set. All graphs get the same five passages for a question: BM25's best
(timeqa_slice), or the passages of the set (rgb: for a question with an answer its positive and negative passages in
turn, and the same question with negative passages alone as one without). "Right": an answer string stands in the
answer (NFKC, case folded, without white space); "declined": the answer is the sentence that says so. "Held out" are
the questions of the half on which no evaluator was fitted (evaluator_pairs.half).
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import quality_extractive
from evaluator_pairs import Asked, load, plain
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda

from rag_kit.evaluation import bootstrap_interval
from rag_kit.graphs import build_adaptive_rag, build_crag, build_plain_rag, build_self_rag
from rag_kit.models import chat_model
from rag_kit.text.citations import is_declined

SETS = ("timeqa_slice", "rgb en_fact", "rgb zh_fact")
OUT = Path(__file__).parent / "results" / "graphs.json"
K = 5


@dataclass(frozen=True)
class Case:
    """A question, what is found for it, and the answers; none: the passages do not hold it."""

    question: str
    passages: tuple[Document, ...]
    answers: tuple[str, ...]
    half: int


def found(folder: Path, limit: int | None) -> Iterator[Case]:
    """The questions of a set with what BM25 finds for them; halves are those of evaluator_pairs."""
    collection = quality_extractive.load(folder)
    halves = {one.question: one.half for one in load(folder.parent, folder.name)}
    for row in collection.questions[:limit]:
        passages = tuple(document for document, _ in collection.index.search(row["question"], k=K))
        yield Case(row["question"], passages, tuple(row["answers"]), halves.get(row["question"], 0))


def chosen(asked: list[Asked]) -> Iterator[Case]:
    """The questions of rgb with its passages, and a second time with those that do not answer."""
    for one in asked:
        yield Case(one.question, one.passages[:K], one.answers, one.half)
        others = [
            text for text, label in zip(one.passages, one.labels, strict=True) if not label
        ]  # fmt: skip
        # some "negative" passages of the set hold the answer after all: they cannot stand for its absence
        clean = [
            text
            for text in others
            if not any(plain(answer) in plain(text.page_content) for answer in one.answers)
        ]
        yield Case(one.question, tuple(clean[:K]), (), one.half)


def graphs(retriever: Any) -> dict[str, Any]:
    """The graphs under test, each with its defaults."""
    model = chat_model("extractive")
    return {
        "plain": build_plain_rag(retriever, model),
        "CRAG": build_crag(retriever, model),
        "Self-RAG": build_self_rag(retriever, model),
        "Self-RAG, reflect": build_self_rag(retriever, model, mode="reflect"),
        "Adaptive-RAG": build_adaptive_rag(retriever, model),
    }


def outcome(case: Case, answer: str) -> str:
    """right, wrong, declined rightly or declined wrongly."""
    if is_declined(answer):
        return "declined_wrongly" if case.answers else "declined_rightly"
    if case.answers and any(plain(text) in plain(answer) for text in case.answers):
        return "right"
    return "wrong"


def share(rows: list[tuple[Case, str]], kind: str, keep: Callable[[Case], bool]) -> dict[str, Any]:
    """The share of an outcome among some cases, with its 95% bootstrap interval."""
    values = [float(found == kind) for case, found in rows if keep(case)]
    if not values:
        return {"value": None, "of": 0}
    low, high = bootstrap_interval(values)
    return {"value": sum(values) / len(values), "low": low, "high": high, "of": len(values)}


def summary(rows: list[tuple[Case, str]]) -> dict[str, Any]:
    """Shares over the questions with an answer, and over those without."""
    answered = {
        kind: share(rows, kind, lambda case: bool(case.answers))
        for kind in ("right", "wrong", "declined_wrongly")
    }
    return {**answered, "declined_rightly": share(rows, "declined_rightly", lambda case: not case.answers)}


def measure(data: Path, name: str, limit: int | None) -> list[dict[str, Any]]:
    """Every graph on one set."""
    questions = list(
        chosen(load(data, name, limit)) if name.startswith("rgb ") else found(data / name, limit)
    )
    passages_of = {(case.question, bool(case.answers)): case.passages for case in questions}
    now: list[Case] = []

    def search(query: str) -> list[Document]:
        # whatever a graph searches for, the set knows passages for its questions only
        case = now[0]
        return [document.model_copy(deep=True) for document in passages_of[case.question, bool(case.answers)]]

    retriever: BaseRetriever | RunnableLambda[str, list[Document]] = RunnableLambda(search)
    result = []
    kept: set[int] = set()
    for graph_name, graph in graphs(retriever).items():
        begun = time.perf_counter()
        rows: list[tuple[Case, str]] = []
        calls = tokens = 0
        for case in questions:
            now[:] = [case]
            state = graph.invoke({"question": case.question}, context={"max_calls": 200})
            rows.append((case, outcome(case, state["answer"])))
            calls += state["usage"]["calls"]
            tokens += state["usage"]["tokens"]
        right = {number for number, (_, kind) in enumerate(rows) if kind == "right"}
        kept = kept or right
        result.append(
            {
                "set": name,
                "graph": graph_name,
                "all": summary(rows),
                "held_out": summary([row for row in rows if row[0].half == 1]),
                "kept_of_plain": len(right & kept) / max(len(kept), 1),
                "calls": calls / len(questions),
                "tokens": tokens / len(questions),
            }
        )
        shown = {kind: cell["value"] and round(cell["value"], 3) for kind, cell in result[-1]["all"].items()}
        print(
            f"{name:14} {graph_name:18} {shown} kept {result[-1]['kept_of_plain']:.3f} "
            f"calls {result[-1]['calls']:.1f} ({time.perf_counter() - begun:.0f} s)",
            flush=True,
        )
    return result


def main() -> int:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=SETS)
    parser.add_argument("--limit", type=int)
    parser.add_argument("--out", type=Path, default=OUT)
    arguments = parser.parse_args()
    rows = [row for name in arguments.sets for row in measure(arguments.data, name, arguments.limit)]
    arguments.out.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
