"""nDCG@10 of BM25 for questions as they are and with a wrong letter in each longer word, corrected and as typed.

    python benchmarks/quality/quality_spelling.py [DATA] [SET ...]

One letter of each English word of five letters or more is swapped with its neighbour, left out, replaced or doubled by
another, at random with a fixed seed; at most 400 questions a set. Writes benchmarks/results/spelling.json.
"""

from __future__ import annotations

import json
import math
import os
import random
import sys
from pathlib import Path

from quality_self_query_sets import DataSet, load

from rag_kit.indexing import BM25Index
from rag_kit.text import Analyzer

HERE = Path(__file__).resolve().parent
RESULT = HERE.parent / "results" / "spelling.json"
SETS = ("scifact", "covidqa", "xquad_en", "timeqa_slice", "limit_small", "pubmedqa_l")
QUESTIONS, K = 400, 10
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def misspell(text: str, rng: random.Random) -> str:
    """Put one mistake into each longer word of a question."""
    words = text.split(" ")
    for place, word in enumerate(words):
        if len(word) < 5 or not (word.isalpha() and word.isascii()):
            continue
        at = rng.randrange(1, len(word) - 1)
        before, letter, after = word[:at], word[at], word[at + 1 :]
        other = rng.choice(LETTERS)
        swapped = before + after[0] + letter + after[1:]
        words[place] = rng.choice(
            [swapped, before + after, before + other + after, before + other + letter + after]
        )
    return " ".join(words)


def ndcg(index: BM25Index, data: DataSet, questions: dict[str, str]) -> float:
    """Mean nDCG@10 of some questions."""
    total = 0.0
    for key, text in questions.items():
        grades = data.grades[key]
        found = [document.id or "" for document, _ in index.search(text, K)]
        gain = sum(grades.get(one, 0) / math.log2(rank + 2) for rank, one in enumerate(found))
        best = sorted(grades.values(), reverse=True)[:K]
        total += gain / sum(grade / math.log2(rank + 2) for rank, grade in enumerate(best))
    return total / len(questions)


def measure(name: str, folder: Path) -> dict[str, float | int | str]:
    """The four figures of a set."""
    data = load(name, folder)
    keys = sorted(data.queries)
    if len(keys) > QUESTIONS:
        keys = random.Random(0).sample(keys, QUESTIONS)
    rng = random.Random(1)
    asked = {key: data.queries[key] for key in keys}
    misspelt = {key: misspell(text, rng) for key, text in asked.items()}
    row: dict[str, float | int | str] = {"set": name, "questions": len(keys)}
    for how, typos in (("as typed", False), ("corrected", True)):
        index = BM25Index.from_documents(data.documents, analyzer=Analyzer(typos=typos))
        row[f"clean, {how}"] = round(ndcg(index, data, asked), 4)
        row[f"misspelt, {how}"] = round(ndcg(index, data, misspelt), 4)
    return row


def main() -> None:
    """Measure the sets and write the result file."""
    default = HERE.parents[2] / "shared" / "data"
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else os.environ.get("RAG_KIT_DATA", default))
    rows = []
    for name in sys.argv[2:] or SETS:
        rows.append(measure(name, folder))
        print(rows[-1], flush=True)
    RESULT.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
