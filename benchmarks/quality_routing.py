"""How often questions of four collections are routed to their own, and questions of none to none.

    RAG_KIT_DATA=... python benchmarks/quality_routing.py

Each collection is one source with a description of one line and 0, 5 or 20 of its questions as examples. Others of
its questions are routed, and twenty that belong to none. ``right`` is the share that goes to its own collection,
``none`` the share of the twenty that goes nowhere.
"""

from __future__ import annotations

import json
import os
import random
from pathlib import Path

from langchain_core.runnables import RunnableLambda

from rag_kit.models import embedding_model
from rag_kit.retrieval.routing.retriever import RoutingRetriever

DATA = Path(os.environ.get("RAG_KIT_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
DESCRIPTIONS = {
    "scifact": "Abstracts of biomedical research papers, for checking scientific claims on cells, genes, drugs and "
    "diseases",
    "covidqa": "Papers on COVID-19, coronaviruses, epidemics, transmission and vaccines",
    "timeqa_slice": "Wikipedia pages on people, teams and organisations: who held which office or played for which "
    "club in which year",
    "limit_small": "Profiles of people and what they like",
}
ELSEWHERE = [
    "How do I reset the password of my router?",
    "What is the capital of Australia?",
    "Best recipe for apple pie",
    "How do I sort a list in Python?",
    "When does the train to Berlin leave?",
    "Translate good morning into French",
    "What is the refund policy for shoes?",
    "Explain the offside rule",
    "How tall is Mount Everest?",
    "Who painted the Mona Lisa?",
    "How many litres are in a gallon?",
    "Which phone has the best camera?",
    "Write a poem about the sea",
    "What is the interest rate of a mortgage?",
    "How do I change a bicycle tyre?",
    "What does this contract say about notice periods?",
    "Is it going to rain tomorrow?",
    "How to prune roses",
    "What are the opening hours of the museum?",
    "Convert 100 dollars to yen",
]
THRESHOLDS = (0.0, 0.1, 0.15, 0.2, 0.25, 0.3)


def questions(name: str) -> list[str]:
    """Sixty questions of a collection, the same each time."""
    rows = [json.loads(line) for line in (DATA / name / "queries.jsonl").open(encoding="utf-8")]
    return random.Random(0).sample([row["text"] for row in rows], 60)


def measure() -> None:
    """Print a table in Markdown."""
    asked = {name: questions(name) for name in DESCRIPTIONS}
    embeddings = embedding_model("minilm")
    nowhere = RunnableLambda(lambda query: [])
    print("| way | examples | " + " | ".join(f"right / none at {t:g}" for t in THRESHOLDS) + " |")
    print("|---" * (len(THRESHOLDS) + 2) + "|")
    for way in ("similarity", "keywords"):
        settings = {"embeddings": embeddings, "threshold": -1} if way == "similarity" else {}
        for count in (0, 5, 20):
            sources = {
                name: (nowhere, text, asked[name][:count] if count else ())
                for name, text in DESCRIPTIONS.items()
            }
            router = RoutingRetriever(sources=sources, how=way, **settings)
            inside = [(name, router.route(q)) for name, texts in asked.items() for q in texts[20:]]
            outside = [router.route(question) for question in ELSEWHERE]
            cells = []
            for threshold in THRESHOLDS:
                right = sum(
                    route.names[:1] == (name,) and _passes(route, threshold) for name, route in inside
                )
                none = sum(not _passes(route, threshold) for route in outside)
                cells.append(f"{right / len(inside):.2f} / {none / len(outside):.2f}")
            print(f"| {way} | {count} | " + " | ".join(cells) + " |")


def _passes(route: object, threshold: float) -> bool:
    names, scores = route.names, route.scores  # type: ignore[attr-defined]
    return bool(names) and scores[names[0]] >= threshold


if __name__ == "__main__":
    measure()
