"""What decides between an answer and a decline: the extractive model's own support, and the evaluator's confidence.

    python benchmarks/quality_declines.py DATA

timeqa_slice: BM25's five best passages, 38 of the 282 questions have no answer. rgb: five passages of both kinds, and
the same question with five of the negative ones, which have no answer. "Right": an answer string stands in what the
model says before it may decline. A threshold is set on one half of the questions so that it keeps 80% (90%) of the
right answers there; reported is the other half, both ways: right answers kept, unanswerable ones declined.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

import evaluator_pairs
import quality_extractive
from evaluator_pairs import Asked, plain

from rag_kit.graphs.evaluators.measuring import kept_above, roc_auc
from rag_kit.models.extractive.evidence import PassageText, collect, passage_text
from rag_kit.models.extractive.question import analyse
from rag_kit.models.extractive.select import choose
from rag_kit.models.extractive.support import strength
from rag_kit.models.extractive.usefulness import usefulness

SETS = ("timeqa_slice", "rgb en_fact", "rgb zh_fact", "rgb zh_int")
SHOWN = 5


def cases(data: Path, name: str) -> Iterator[tuple[Asked, list[PassageText], bool]]:
    """A question, the passages shown, and whether it has an answer."""
    questions = evaluator_pairs.load(data, name)
    if not name.startswith("rgb"):
        index = quality_extractive.load(data / name).index
        for asked in questions:
            found = [document for document, _ in index.search(asked.question, k=SHOWN)]
            shown = [
                passage_text(number, one.page_content, one.metadata) for number, one in enumerate(found, 1)
            ]
            yield asked, shown, bool(asked.answers)
        return
    for asked in questions:
        texts = [asked.text(place) for place in range(len(asked.passages))]
        noise = [text for text, label in zip(texts, asked.labels, strict=True) if not label]
        yield asked, texts[:SHOWN], True
        if noise:
            yield asked, noise[:SHOWN], False


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    options = parser.parse_args()
    for name in SETS:
        rows = []
        for asked, texts, answerable in cases(options.data, name):
            if not texts:
                continue
            question = analyse(asked.question)
            found = collect(question, texts)
            picked = choose(question, found)
            said = plain(" ".join(one.text for one in picked))
            right = answerable and any(plain(answer) in said for answer in asked.answers)
            support = strength(question, texts, found, picked)
            confidence = max(one.value for one in usefulness(asked.question, texts))
            rows.append((asked.half, answerable, right, support, confidence))
        half, answerable, right = (np.array([row[place] for row in rows]) for place in range(3))
        counted = right | ~answerable
        print(f"{name}: {right.sum()} right of {answerable.sum()}, {(~answerable).sum()} without an answer")
        for label, place in (("support", 3), ("evaluator", 4)):
            values = np.array([row[place] for row in rows])
            cells = [f"AUC {roc_auc(values[counted], right[counted]):.2f}"]
            for share in (0.8, 0.9):
                kept, declined = [], []
                for test in (0, 1):
                    first, other = half != test, half == test
                    limit = kept_above(values[first], right[first], share)
                    kept.append((values[other & right] >= limit).mean())
                    declined.append((values[other & ~answerable] < limit).mean())
                cells.append(
                    f"set to keep {share:.0%}: kept {np.mean(kept):.0%} ({kept[0]:.0%}, {kept[1]:.0%}), "
                    f"declined {np.mean(declined):.0%} ({declined[0]:.0%}, {declined[1]:.0%})"
                )
            print(f"  {label:9} {'; '.join(cells)}", flush=True)


if __name__ == "__main__":
    main()
