"""Answers of the extractive model on public question sets, and when it declines.

    python benchmarks/quality/quality_extractive.py DATA [--sets xquad_en timeqa_slice] [--limit 300]

DATA is a folder with one folder per set (corpus.jsonl[.gz], qa.jsonl). The way of a question is the real one: BM25,
the five best passages, the prompt ``answer``, the model, at most three sentences. "Right": an answer string stands in
the answer (NFKC, case folded, without white space). "Foreign": the questions of one set asked of another's passages.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shared import arguments, pieces, plain

from rag_kit.evaluation import Example, load_dataset
from rag_kit.indexing import BM25Index
from rag_kit.models.extractive.model import ExtractiveChatModel
from rag_kit.prompts import load_prompt, render_passages
from rag_kit.text import detect_language
from rag_kit.text.citations.decline import is_declined

SETS = ("xquad_en", "xquad_zh", "cmrc2018_dev", "timeqa_slice", "covidqa")
FOREIGN = (
    ("xquad_en", "pubmedqa_l"),
    ("xquad_en", "covidqa"),
    ("xquad_en", "timeqa_slice"),
    ("timeqa_slice", "xquad_en"),
    ("covidqa", "xquad_en"),
    ("covidqa", "pubmedqa_l"),
    ("xquad_zh", "cmrc2018_dev"),
    ("cmrc2018_dev", "xquad_zh"),
)
MODEL = ExtractiveChatModel()
MOST = 400  # questions without the passages that answer, or of another set


@dataclass(frozen=True)
class Collection:
    """The passages of a set, indexed, and its questions."""

    index: BM25Index
    questions: list[Example]


def load(folder: Path) -> Collection:
    """A set with its documents as the kit's evaluation makes them: title, a new line, text."""
    dataset = load_dataset(folder)
    questions = [gold for gold in dataset if gold.answerable is not None]
    return Collection(BM25Index.from_documents(pieces(dataset)), questions)


def ask(question: str, index: BM25Index, skip: frozenset[str] = frozenset()) -> str:
    """The answer by BM25, the prompt and the model, as the plain graph runs them, without some documents."""
    found = [document for document, _ in index.search(question, k=5 + 7 * bool(skip))]
    found = [document for document in found if document.metadata["corpus_id"] not in skip][:5]
    prompt = load_prompt("answer", language=detect_language(question))
    messages = prompt.format_messages(question=question, passages=render_passages(found))
    return str(MODEL.invoke(messages).content)


def quality(name: str, collection: Collection, limit: int) -> dict[str, Any]:
    """Right answers and declines."""
    count: Counter[str] = Counter()
    for gold in collection.questions[:limit]:
        reply = ask(gold.question, collection.index)
        answerable, declined = bool(gold.answers), is_declined(reply)
        right = any(plain(answer) in plain(reply) for answer in gold.answers)
        count.update(answerable=answerable, right=right, declined_wrongly=answerable and declined)
        count.update(unanswerable=not answerable, declined_rightly=not answerable and declined)
    return {"set": name, **count, "right_rate": count["right"] / max(count["answerable"], 1)}


def without_gold(name: str, collection: Collection, limit: int) -> dict[str, Any]:
    """The same collection without the passages that hold the answer: the hardest case."""
    replies = [
        ask(
            gold.question,
            collection.index,
            frozenset(key for key, grade in gold.relevant.items() if grade > 0),
        )
        for gold in collection.questions[:limit]
        if gold.answers
    ]
    return declines(f"{name} without its answers", replies)


def foreign(name: str, other: str, collections: dict[str, Collection], limit: int) -> dict[str, Any]:
    """The questions of a set asked of the passages of another."""
    index = collections[other].index
    replies = [ask(gold.question, index) for gold in collections[name].questions[:limit]]
    return declines(f"{name} asked of {other}", replies)


def declines(name: str, replies: list[str]) -> dict[str, Any]:
    """The share of replies that decline."""
    declined = sum(is_declined(reply) for reply in replies)
    return {"set": name, "declined": declined / max(len(replies), 1), "questions": len(replies)}


def main() -> None:
    """Measure the chosen sets, and print."""
    parser = arguments(__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--sets", nargs="*", default=list(SETS))
    parser.add_argument("--limit", type=int, default=100_000)
    parser.add_argument("--part", choices=("quality", "foreign", "all"), default="all")
    options = parser.parse_args()
    few = min(options.limit, MOST)
    pairs = [pair for pair in FOREIGN if pair[0] in options.sets and options.part != "quality"]
    wanted = {*options.sets, *(other for _, other in pairs)}
    collections = {name: load(options.data / name) for name in sorted(wanted)}
    for name in options.sets:
        if options.part != "foreign":
            print(json.dumps(quality(name, collections[name], options.limit)), flush=True)
        if options.part != "quality":
            print(json.dumps(without_gold(name, collections[name], few)), flush=True)
    for name, other in pairs:
        print(json.dumps(foreign(name, other, collections, few)), flush=True)


if __name__ == "__main__":
    main()
