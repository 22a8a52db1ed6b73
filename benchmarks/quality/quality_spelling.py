"""nDCG@10 of BM25 for questions as they are and with a wrong letter in each longer word, corrected and as typed.

    python benchmarks/quality/quality_spelling.py [DATA] [SET ...]

One letter of each English word of five letters or more is swapped with its neighbour, left out, replaced or doubled by
another, at random with a fixed seed; at most 400 questions a set. Writes benchmarks/results/spelling.json.
"""

from __future__ import annotations

import random
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

from shared import DATA, RESULTS, ndcg, save

from rag_kit.evaluation import Example, load_dataset
from rag_kit.indexing import BM25Index
from rag_kit.text import Analyzer

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


def score(index: BM25Index, asked: Sequence[Example], texts: Sequence[str]) -> float:
    """Mean nDCG@10 of some questions, asked by these texts."""
    found = ([document.id or "" for document, _ in index.search(text, K)] for text in texts)
    return round(statistics.mean(ndcg(ids, one.relevant) for ids, one in zip(found, asked, strict=True)), 4)


def measure(name: str, folder: Path) -> dict[str, float | int | str]:
    """The four figures of a set."""
    data = load_dataset(folder / name)
    asked = sorted((one for one in data if one.relevant), key=lambda one: one.id)
    if len(asked) > QUESTIONS:
        asked = random.Random(0).sample(asked, QUESTIONS)
    rng = random.Random(1)
    texts = [one.question for one in asked]
    misspelt = [misspell(text, rng) for text in texts]
    row: dict[str, float | int | str] = {"set": name, "questions": len(asked)}
    for how, typos in (("as typed", False), ("corrected", True)):
        index = BM25Index.from_documents(data.documents(), analyzer=Analyzer(typos=typos))
        row[f"clean, {how}"] = score(index, asked, texts)
        row[f"misspelt, {how}"] = score(index, asked, misspelt)
    return row


def main() -> None:
    """Measure the sets and write the result file."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else DATA
    rows = []
    for name in sys.argv[2:] or SETS:
        rows.append(measure(name, folder))
        print(rows[-1], flush=True)
    save(RESULTS / "spelling.json", rows)


if __name__ == "__main__":
    main()
