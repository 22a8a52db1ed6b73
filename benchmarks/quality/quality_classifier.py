"""How often the rule classifier says one search, several steps, a question back, or talk.

    RAG_KIT_DATA=... python benchmarks/quality/quality_classifier.py

The sets are asked of the classifier by question alone. strategyqa's questions all need several facts, most of them
without showing it in their words; timeqa_slice, xquad and cmrc2018_dev are questions about one passage each, so
"several steps" and "a question back" are wrong there. For strategyqa the share is given by the number of steps of
the gold decomposition too.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from rag_kit.graphs.adaptive.nodes import classify_by_rule, route_of
from rag_kit.graphs.adaptive.state import Route

DATA = Path(os.environ.get("RAG_KIT_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))
SETS = ("timeqa_slice", "xquad_en", "xquad_zh", "cmrc2018_dev")
ROUTES: tuple[Route, ...] = ("direct", "single", "multi", "clarify")


def rows(file: Path) -> list[dict[str, object]]:
    """The objects of a JSON-lines file."""
    return [json.loads(line) for line in file.open(encoding="utf-8")]


def table_row(name: str, questions: Sequence[str]) -> str:
    """One line in Markdown: the share of each way, in percent."""
    counts = Counter(route_of(classify_by_rule(question)) for question in questions)
    shares = " | ".join(f"{100 * counts[route] / len(questions):.1f}" for route in ROUTES)
    return f"| {name} | {len(questions)} | {shares} |"


def measure() -> None:
    """Print a table in Markdown."""
    print("| set | questions | " + " | ".join(ROUTES) + " |")
    print("|---" * (len(ROUTES) + 2) + "|")
    hidden = rows(DATA / "strategyqa" / "train.jsonl")
    print(table_row("strategyqa", [str(row["question"]) for row in hidden]))
    for least, most in ((1, 2), (3, 3), (4, 9)):
        part = [
            str(row["question"])
            for row in hidden
            if isinstance(row["decomposition"], list) and least <= len(row["decomposition"]) <= most
        ]
        print(
            table_row(
                f"strategyqa, {least} to {most} steps" if least < most else f"strategyqa, {least} steps", part
            )
        )
    for name in SETS:
        print(table_row(name, [str(row["text"]) for row in rows(DATA / name / "queries.jsonl")]))


if __name__ == "__main__":
    measure()
