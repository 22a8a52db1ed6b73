"""Whole graphs with the extractive model on questions with and without an answer: right, wrong, declined.

    python benchmarks/quality/quality_graphs.py DATA [--sets timeqa_slice] [--limit 300] [--out FILE]

DATA is a folder with one folder per set. All graphs get the same five passages for a question: BM25's best
(of the larger sets the first 300 questions), or the passages of the set (rgb: for a question with an answer its
positive and negative passages in turn, and the same question with negative passages alone as one without). "Right": an
answer string stands in the answer (NFKC, case folded, without white space); "declined": the answer is the sentence that
says so. Beside plain RAG, paired: right answers more or fewer, as a share of all questions, and declines more or fewer
of the questions without an answer.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any

import quality_extractive
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda
from shared import RESULTS, lines, plain, save

from rag_kit.evaluation.statistics import bootstrap_interval
from rag_kit.graphs import build_adaptive_rag, build_crag, build_plain_rag, build_self_rag
from rag_kit.models import chat_model
from rag_kit.text.citations.decline import is_declined

SETS = (
    "timeqa_slice", "rgb en_fact", "rgb zh_fact", "rgb zh_int", "xquad_en", "xquad_zh", "cmrc2018_dev", "covidqa",
)  # fmt: skip
LARGE = ("xquad_en", "xquad_zh", "cmrc2018_dev", "covidqa")
OUT = RESULTS / "graphs.json"
K = 5


@dataclass(frozen=True)
class Case:
    """A question, what is found for it, and the answers; none: the passages do not hold it."""

    question: str
    passages: tuple[Document, ...]
    answers: tuple[str, ...]


def cases(data: Path, name: str, limit: int | None = None) -> list[Case]:
    """The questions of a set with what is found for them."""
    if name.startswith("rgb "):
        return list(chosen(data / "rgb", name.split()[1], limit))
    collection = quality_extractive.load(data / name)
    most = limit or (300 if name in LARGE else None)
    return [
        Case(
            gold.question,
            tuple(document for document, _ in collection.index.search(gold.question, k=K)),
            tuple(gold.answers),
        )
        for gold in collection.questions[:most]
    ]


def chosen(folder: Path, name: str, limit: int | None) -> Iterator[Case]:
    """The questions of rgb with its passages, and a second time with those that do not answer."""
    path = next(path for path in sorted(folder.iterdir()) if path.name.startswith(name))
    for row in islice(lines(path), limit):
        positive, negative, answers = (texts(row[key]) for key in ("positive", "negative", "answer"))
        # alternating, so that their order tells nothing
        mixed = [text for pair in zip_longest(positive, negative) for text in pair if text is not None]
        # some "negative" passages of the set hold the answer after all: they cannot stand for its absence
        clean = [text for text in negative if not any(plain(answer) in plain(text) for answer in answers)]
        yield Case(row["query"], tuple(map(Document, mixed[:K])), tuple(answers))
        yield Case(row["query"], tuple(map(Document, clean[:K])), ())


def texts(value: Any) -> list[str]:
    """The texts of a field that nests them in lists."""
    return [value] if isinstance(value, str) else [text for item in value for text in texts(item)]


def graphs(retriever: Any) -> dict[str, Any]:
    """The graphs under test, each with its defaults."""
    model = chat_model("extractive")
    return {
        "plain": build_plain_rag(retriever, model),
        "CRAG": build_crag(retriever, model),
        "Self-RAG, reflect": build_self_rag(retriever, model, mode="reflect"),
        "Self-RAG, paper": build_self_rag(retriever, model, mode="paper"),
        "Adaptive-RAG": build_adaptive_rag(retriever, model),
    }


def outcome(case: Case, answer: str) -> str:
    """right, wrong, declined rightly or declined wrongly."""
    if is_declined(answer):
        return "declined_wrongly" if case.answers else "declined_rightly"
    if case.answers and any(plain(text) in plain(answer) for text in case.answers):
        return "right"
    return "wrong"


def share(values: list[float]) -> dict[str, Any]:
    """A mean with its 95% bootstrap interval."""
    if not values:
        return {"value": None, "of": 0}
    low, high = bootstrap_interval(values)
    return {"value": sum(values) / len(values), "low": low, "high": high, "of": len(values)}


def summary(questions: list[Case], kinds: list[str], plain_kinds: list[str]) -> dict[str, Any]:
    """Shares over the questions with and without an answer, and what is gained and lost beside plain RAG."""

    def counted(kind: str, before: list[str] | None, answered: bool | None) -> dict[str, Any]:
        return share(
            [
                float(now == kind) - (0.0 if before is None else float(before[place] == kind))
                for place, now in enumerate(kinds)
                if answered is None or answered == bool(questions[place].answers)
            ]
        )

    return {
        **{kind: counted(kind, None, True) for kind in ("right", "wrong", "declined_wrongly")},
        "declined_rightly": counted("declined_rightly", None, False),
        "right_beside_plain": counted("right", plain_kinds, None),
        "declined_beside_plain": counted("declined_rightly", plain_kinds, False),
    }


def measure(data: Path, name: str, limit: int | None) -> list[dict[str, Any]]:
    """Every graph on one set."""
    questions = cases(data, name, limit)
    now: list[Case] = []

    def search(query: str) -> list[Document]:
        # whatever a graph searches for, the set knows passages for its questions only
        return [document.model_copy(deep=True) for document in now[0].passages]

    result = []
    plain_kinds: list[str] = []
    for graph_name, graph in graphs(RunnableLambda(search)).items():
        begun = time.perf_counter()
        kinds: list[str] = []
        calls = 0
        for case in questions:
            now[:] = [case]
            state = graph.invoke({"question": case.question}, context={"max_calls": 200})
            kinds.append(outcome(case, state["answer"]))
            calls += state["usage"]["calls"]
        plain_kinds = plain_kinds or kinds
        figures = summary(questions, kinds, plain_kinds)
        result.append({"set": name, "graph": graph_name, **figures, "calls": calls / len(questions)})
        shown = {kind: cell["value"] and round(cell["value"], 3) for kind, cell in figures.items()}
        print(f"{name:14} {graph_name:18} {shown} ({time.perf_counter() - begun:.0f} s)", flush=True)
    return result


def main() -> int:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=SETS)
    parser.add_argument("--limit", type=int)
    parser.add_argument("--out", type=Path, help="default with --limit: no file, else the committed results")
    arguments = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for name in arguments.sets:
        rows += measure(arguments.data, name, arguments.limit)
        if out := arguments.out or (None if arguments.limit else OUT):
            save(out, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
