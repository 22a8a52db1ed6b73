"""What the check of citations takes for supported: verbatim sentences, swapped answers, and statements in other words.

    python benchmarks/quality_citations.py DATA

Verbatim: the sentence of a passage that holds the answer to a question of the set, which the check must keep.
Swapped: the same sentence with the answer replaced by another answer of the same passage, of the same kind
where there is one (a number for a number, a name for a name, a phrase for the phrase nearest in length).
Sentences that stand in the passage after the swap too, and swaps of which one answer holds the other, are left
out. Paraphrases: the statements of citation_paraphrases.yaml, true and false, and those in another language
than their passage; those marked `aside` were written after the check. Writes benchmarks/results/citations.json.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from rag_kit.evaluation import load_dataset
from rag_kit.text import fold, sentences
from rag_kit.text.citations.check import check_citations

HERE = Path(__file__).resolve().parent
RESULT = HERE / "results" / "citations.json"
SETS = ("xquad_en", "xquad_zh", "cmrc2018_dev")


def kind(answer: str) -> str:
    """A number, a name, or a phrase."""
    if re.search(r"\d", answer):
        return "number"
    return "name" if re.match(r"[A-Z]", answer) else "phrase"


def swaps(folder: Path) -> Iterator[tuple[str, str, str]]:
    """Passage, sentence with an answer, and the sentence with another answer of the passage in its place."""
    dataset = load_dataset(folder)
    texts = {str(one.metadata["corpus_id"]): one.page_content for one in dataset.documents()}
    answers: dict[str, list[str]] = defaultdict(list)
    for gold in dataset:
        for name, grade in gold.relevant.items():
            answers[name].extend(gold.answers[:1] if grade > 0 else ())
    for name, found in answers.items():
        text = texts[name]
        for answer in dict.fromkeys(found):
            place = text.find(answer)
            held = next((s for s in sentences(text) if s.start <= place < place + len(answer) <= s.end), None)
            others = [
                one
                for one in found
                if fold(one) not in fold(answer) and fold(answer) not in fold(one) and one in text
            ]
            if place < 0 or held is None or not others:
                continue
            others.sort(key=lambda one: (kind(one) != kind(answer), abs(len(one) - len(answer))))
            at = place - held.start
            changed = held.text[:at] + others[0] + held.text[at + len(answer) :]
            if fold(changed) not in fold(text):
                yield text, held.text, changed


def status(statement: str, passage: str) -> str:
    """Status of the statement as the answer's only citation."""
    found = check_citations(f"{statement}[1]", [passage]).citations
    return found[0].status if len(found) == 1 else "split"


def counted(pairs: list[tuple[str, str]]) -> dict[str, Any]:
    """Number of statements and the share of each status."""
    count = Counter(status(statement, passage) for passage, statement in pairs)
    return {"statements": len(pairs), **{name: number / len(pairs) for name, number in sorted(count.items())}}


def paraphrases(language: str, truth: bool, aside: bool) -> list[tuple[str, str]]:
    """Passage and statement."""
    cases = yaml.safe_load((HERE / "citation_paraphrases.yaml").read_text(encoding="utf-8"))[language]
    cases = [case for case in cases if case.get("aside", False) == aside]
    return [(case["passage"], one) for case in cases for one in case[truth]]


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("--out", type=Path, default=RESULT)
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for name in SETS:
        cases = list(swaps(options.data / name))
        rows.append({"what": "verbatim", "set": name, **counted([(text, said) for text, said, _ in cases])})
        rows.append({"what": "swapped", "set": name, **counted([(text, said) for text, _, said in cases])})
    for truth in (True, False):
        for aside in (False, True):
            what = f"{'true' if truth else 'false'} paraphrase{', put aside' if aside else ''}"
            rows.extend(
                {"what": what, "set": language, **counted(paraphrases(language, truth, aside))}
                for language in ("en", "zh")
            )
    rows.append({"what": "another language", "set": "other", **counted(paraphrases("other", True, False))})
    for row in rows:
        print(json.dumps(row))
    options.out.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
