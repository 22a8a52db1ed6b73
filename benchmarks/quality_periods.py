"""CRAG with and without its reading of periods, on questions of timeqa_slice, by halves of the questions.

    python benchmarks/quality_periods.py DATA

Half 0 is what the rules were made by, half 1 was looked at only for the figures: crc32 of the question's id, modulo 2.
Printed for each half: right answers, wrong ones, unanswerable questions declined, and the difference that the
reading makes, paired, with its 95% bootstrap interval. Plain RAG stands beside it.
"""

from __future__ import annotations

import argparse
import sys
import zlib
from pathlib import Path
from typing import Any

import quality_graphs
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda

from rag_kit.evaluation import bootstrap_interval
from rag_kit.evaluation.dataset import load_dataset
from rag_kit.graphs import LexicalEvaluator, build_crag, build_plain_rag
from rag_kit.models import chat_model

SET = "timeqa_slice"


def main() -> int:
    """Ask and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    folder = parser.parse_args().data / SET
    dataset = load_dataset(folder)
    halves = {dataset.queries[name]: zlib.crc32(name.encode()) % 2 for name in dataset.qa}
    cases = list(quality_graphs.found(folder, None))
    now: list[quality_graphs.Case] = []

    def search(query: str) -> list[Document]:
        return [document.model_copy(deep=True) for document in now[0].passages]

    retriever: Any = RunnableLambda(search)
    model = chat_model("extractive")
    graphs = {
        "plain": build_plain_rag(retriever, model),
        "CRAG, period=None": build_crag(retriever, model, evaluator=LexicalEvaluator(period=None)),
        "CRAG": build_crag(retriever, model, evaluator=LexicalEvaluator()),
    }
    outcomes: dict[str, list[str]] = {}
    for name, graph in graphs.items():
        kinds = []
        for case in cases:
            now[:] = [case]
            kinds.append(quality_graphs.outcome(case, graph.invoke({"question": case.question})["answer"]))
        outcomes[name] = kinds
    for half in (0, 1):
        print(f"half {half}{' (the rules were made by it)' if half == 0 else ''}")
        here = [place for place, case in enumerate(cases) if halves[case.question] == half]
        answerable = [place for place in here if cases[place].answers]
        without = [place for place in here if not cases[place].answers]
        plain = [place for place in answerable if outcomes["plain"][place] == "right"]
        for name, kinds in outcomes.items():
            kept = sum(kinds[place] == "right" for place in plain)
            print(
                f"  {name:18} right {_share(kinds, answerable, 'right')}, wrong {_share(kinds, answerable, 'wrong')}, "
                f"declined rightly {_share(kinds, without, 'declined_rightly')}, kept of plain {kept} of {len(plain)}"
            )
        for kind, places in (("right", answerable), ("wrong", answerable), ("declined_rightly", without)):
            before, after = outcomes["CRAG, period=None"], outcomes["CRAG"]
            gain = [float(after[place] == kind) - float(before[place] == kind) for place in places]
            low, high = bootstrap_interval(gain)
            print(f"  the reading of periods: {kind} {sum(gain) / len(gain):+.1%} ({low:+.1%}, {high:+.1%})")
    return 0


def _share(kinds: list[str], places: list[int], kind: str) -> str:
    count = sum(kinds[place] == kind for place in places)
    return f"{count} of {len(places)} ({count / len(places):.1%})"


if __name__ == "__main__":
    sys.exit(main())
