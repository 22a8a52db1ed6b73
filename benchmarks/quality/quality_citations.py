"""Rates at which the check of citations takes statements for supported, and answers for declines.

    python benchmarks/quality/quality_citations.py DATA

True statements: the sentence of a passage that holds the answer to a question of the set, verbatim; statements of
citation_values.yaml, citation_paraphrases.yaml and citation_pairs.jsonl; the long answers that people wrote to
pubmedqa_l, each against its abstract. False ones: the sentence with another answer of the same passage, of the same
kind where there is one (swapped), with an answer from another passage (foreign), with a negation put in (negated); the
changed statements of the three lists. Sentences that stand in the passage after the change too, and swaps of which one
answer holds the other, are left out. Each sentence of a statement cites the passage; the status is that of the whole
answer. Those marked `aside` were written after the check. Refusals and answers that look like refusals are those of
tests/support/citations. Writes benchmarks/results/citations.json.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from langchain_core.documents import Document
from shared import RESULTS, arguments, lines, save

from rag_kit.evaluation import load_dataset
from rag_kit.text import fold, sentences
from rag_kit.text.citations.check import check_citations
from rag_kit.text.citations.decline import is_declined

HERE = Path(__file__).resolve().parent
SETS = ("xquad_en", "xquad_zh", "cmrc2018_dev")
EXAMPLES = HERE.parents[1] / "tests" / "support" / "citations"
_VERB = re.compile(r"\b(?:is|are|was|were|has|have|had|can|could|may|will|would|should|must)\b(?! not)")
_VERB_ZH = re.compile(r"(?<![不没未无自])(?:是|能|可以|会|在|被|包括|属于|位于|使用|成为|获得|担任)")


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


def negated(sentence: str, random_: random.Random) -> str | None:
    """The sentence with a negation at one of its verbs; None where no verb is known."""
    chinese = re.search("[\u4e00-\u9fff]", sentence) is not None
    places = list((_VERB_ZH if chinese else _VERB).finditer(sentence))
    if not places:
        return None
    place = random_.choice(places)
    if chinese:
        return f"{sentence[: place.start()]}不{sentence[place.start() :]}"
    return f"{sentence[: place.end()]} not{sentence[place.end() :]}"


def foreign(folder: Path, random_: random.Random) -> Iterator[tuple[str, str]]:
    """Passage, and its sentence with an answer of another passage in place of its own."""
    dataset = load_dataset(folder)
    texts = {str(one.metadata["corpus_id"]): one.page_content for one in dataset.documents()}
    golds = [gold for gold in dataset if gold.answers]
    for gold in golds:
        text = texts[next(iter(gold.relevant))]
        held = next((one.text for one in sentences(text) if gold.answers[0] in one.text), None)
        other = random_.choice(golds).answers[0]
        if held and fold(other) not in fold(text):
            yield text, held.replace(gold.answers[0], other, 1)


def status(statement: str, passage: str | Document) -> str:
    """Status of an answer, whose every sentence cites the passage."""
    answer = " ".join(f"{sentence.text}[1]" for sentence in sentences(statement))
    found = check_citations(answer, [passage]).status
    return {"grounded": "supported", "flagged": "unsupported"}.get(found, found)


def row(what: str, name: str, truth: bool, statuses: list[str]) -> dict[str, Any]:
    """Shares of a kind of statement: false alarms are true statements flagged, misses false ones that pass."""
    count = Counter(statuses)
    passed, flagged = (count[key] / len(statuses) for key in ("supported", "unsupported"))
    error = {"false alarms": flagged} if truth else {"misses": passed}
    shares = {"passed": passed, "flagged": flagged, "undecided": 1 - passed - flagged}
    return {"what": what, "set": name, "statements": len(statuses), **shares, **error}


def list_rows(name: str, areas: dict[str, list[dict[Any, Any]]]) -> Iterator[dict[str, Any]]:
    """Rows of a list of passages with true and false statements, those put aside by themselves."""
    for aside in (False, True):
        for truth in (True, False):
            for area in [name] if name == "values" else areas:
                cases = [
                    case
                    for key, group in areas.items()
                    for case in group
                    if area in (key, name) and aside == (case.get("aside", key == "aside"))
                ]
                if statuses := [
                    status(one, _document(case)) for case in cases for one in case.get(truth, ())
                ]:
                    what = f"{'true' if truth else 'changed'} {name}{', put aside' if aside else ''}"
                    yield row(what, "all" if area == name else area, truth, statuses)


def pairs() -> dict[str, list[dict[Any, Any]]]:
    """The lists of citation_pairs.jsonl by their names, in the form of the YAML files."""
    areas: dict[str, list[dict[Any, Any]]] = defaultdict(list)
    for case in lines(HERE / "citation_pairs.jsonl"):
        areas[case["list"]].append({**case, True: case.get("true", ()), False: case.get("false", ())})
    return areas


def _document(case: dict[Any, Any]) -> Document:
    return Document(case["passage"], metadata={key: case[key] for key in ("title", "heading") if key in case})


def set_rows(data: Path, name: str) -> Iterator[dict[str, Any]]:
    """Rows of a set of questions with answers."""
    random_ = random.Random(48)
    cases = list(swaps(data / name))
    yield row("verbatim", name, True, [status(said, text) for text, said, _ in cases])
    yield row("swapped", name, False, [status(said, text) for text, _, said in cases])
    yield row("foreign", name, False, [status(said, text) for text, said in foreign(data / name, random_)])
    changed = [(text, one) for text, said, _ in cases if (one := negated(said, random_))]
    yield row("negated", name, False, [status(said, text) for text, said in changed])


def human_row(data: Path) -> dict[str, Any]:
    """The long answers of pubmedqa_l, each with its abstract as the passage that every sentence cites."""
    folder = data / "pubmedqa_l"
    texts = {one["_id"]: one["text"] for one in lines(folder / "corpus.jsonl")}
    statuses = [status(one["long_answer"], texts[one["doc_ids"][0]]) for one in lines(folder / "qa.jsonl")]
    return row("people's answers", "pubmedqa_l", True, statuses)


def decline_rows() -> Iterator[dict[str, Any]]:
    """Refusals that are missed, and answers that are taken for refusals; a refusal that is found passes."""
    for kind, truth in (("refusals", True), ("answers", False)):
        for language in ("en", "zh"):
            texts = (EXAMPLES / f"{kind}_{language}.txt").read_text(encoding="utf-8").splitlines()
            share = sum(map(is_declined, texts)) / len(texts)
            error = {"misses": 1 - share} if truth else {"false alarms": share}
            yield {
                "what": f"declines: {kind}",
                "set": language,
                "statements": len(texts),
                "passed": share,
                **error,
            }


def main() -> None:
    """Measure, print, write."""
    parser = arguments(__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--out", type=Path, default=RESULTS / "citations.json")
    options = parser.parse_args()
    rows = [one for name in SETS for one in set_rows(options.data, name)]
    rows.append(human_row(options.data))
    for name in ("values", "paraphrases"):
        areas = yaml.safe_load((HERE / f"citation_{name}.yaml").read_text(encoding="utf-8"))
        rows.extend(list_rows(name, areas))
    rows.extend(list_rows("pairs", pairs()))
    rows.extend(decline_rows())
    for one in rows:
        print(json.dumps(one, ensure_ascii=False))
    save(options.out, rows)


if __name__ == "__main__":
    main()
