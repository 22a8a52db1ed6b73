"""Answers of the extractive model on public question sets, when it declines, and the check of its citations.

    python benchmarks/quality/quality_extractive.py DATA [--sets xquad_en timeqa_slice] [--limit 300]

DATA is a folder with one folder per set (corpus.jsonl[.gz], qa.jsonl). The way of a question is the real one: BM25,
the five best passages, the prompt ``answer``, the model, at most three sentences. "Right": an answer string stands in
the answer (NFKC, case folded, without white space). "Foreign": the questions of one set asked of another's passages.
"Mutated": one change in a supported statement (number, name, index, negation) that the check must notice.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langchain_core.documents import Document

from rag_kit.evaluation import load_dataset
from rag_kit.indexing import BM25Index, split
from rag_kit.models.extractive.model import ExtractiveChatModel
from rag_kit.prompts import load_prompt, render_passages
from rag_kit.text import detect_language, sentences
from rag_kit.text.citations.check import check_citations
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
LONG = 3000  # characters; longer documents are split, as at ingestion


@dataclass(frozen=True)
class Collection:
    """The passages of a set, indexed, and its questions."""

    index: BM25Index
    questions: list[dict[str, Any]]


def load(folder: Path) -> Collection:
    """A set with its documents as the kit's evaluation makes them: title, a new line, text."""
    dataset = load_dataset(folder)
    pieces: list[Document] = []
    for document in dataset.documents():
        pieces.extend(split([document]) if len(document.page_content) > LONG else [document])
    questions = [
        {
            "question": gold.question,
            "answers": list(gold.answers),
            "doc_ids": [name for name, grade in gold.relevant.items() if grade > 0],
        }
        for gold in dataset
        if gold.answerable is not None
    ]
    return Collection(BM25Index.from_documents(pieces), questions)


def plain(text: str) -> str:
    return re.sub(r"\s+", "", unicodedata.normalize("NFKC", text).casefold())


class Asker:
    """BM25, the prompt and the model, as the plain graph runs them."""

    def __init__(self) -> None:
        self.model = ExtractiveChatModel()
        self.prompts = {language: load_prompt("answer", language=language) for language in ("en", "zh")}

    def __call__(
        self, question: str, index: BM25Index, skip: frozenset[str] = frozenset()
    ) -> tuple[str, list[Document]]:
        found = [document for document, _ in index.search(question, k=5 + 7 * bool(skip))]
        found = [document for document in found if document.metadata["corpus_id"] not in skip][:5]
        prompt = self.prompts[detect_language(question)]
        messages = prompt.format_messages(question=question, passages=render_passages(found))
        return str(self.model.invoke(messages).content), found


def quality(name: str, collection: Collection, ask: Asker, limit: int) -> dict[str, Any]:
    count: Counter[str] = Counter()
    checked: Counter[str] = Counter()
    for row in collection.questions[:limit]:
        reply, found = ask(row["question"], collection.index)
        answerable = bool(row["answers"])
        declined = is_declined(reply)
        right = answerable and any(plain(answer) in plain(reply) for answer in row["answers"])
        count["answerable"] += answerable
        count["right"] += right
        count["declined_wrongly"] += answerable and declined
        count["unanswerable"] += not answerable
        count["declined_rightly"] += not answerable and declined
        count["too_long"] += len(sentences(reply)) > 3
        if not declined:
            report = check_citations(reply, [document.page_content for document in found])
            checked["citations"] += len(report.citations)
            checked["held"] += sum(one.status == "supported" for one in report.citations)
            checked[report.status] += 1
    return {
        "set": name,
        **count,
        "right_rate": count["right"] / max(count["answerable"], 1),
        "check": dict(checked),
    }


def foreign(
    name: str, other: str, collections: dict[str, Collection], ask: Asker, limit: int
) -> dict[str, Any]:
    declined = total = 0
    for row in collections[name].questions[:limit]:
        reply, _ = ask(row["question"], collections[other].index)
        declined += is_declined(reply)
        total += 1
    return {"set": f"{name} asked of {other}", "declined": declined / max(total, 1), "questions": total}


def without_gold(name: str, collection: Collection, ask: Asker, limit: int) -> dict[str, Any]:
    """The same collection without the passages that hold the answer: the hardest case."""
    declined = total = 0
    for row in collection.questions[:limit]:
        if row["answers"]:
            reply, _ = ask(row["question"], collection.index, frozenset(row["doc_ids"]))
            declined += is_declined(reply)
            total += 1
    return {"set": f"{name} without its answers", "declined": declined / max(total, 1), "questions": total}


def mutations(
    statement: str, number: int, passages: list[str], pick: random.Random
) -> Iterator[tuple[str, str]]:
    """Kind of change and the changed statement with its mark."""
    body = statement.rstrip()
    digits = list(re.finditer(r"\d+", body))
    if digits:
        at = pick.choice(digits)
        yield (
            "number",
            f"{body[: at.start()]}{int(at.group()) + pick.randint(1, 9)}{body[at.end() :]}[{number}]",
        )
    text = " ".join(passages)
    if detect_language(body) == "en":
        names = list(re.finditer(r"(?<=[a-z,] )[A-Z][a-z]{3,}", body))
        others = sorted(set(re.findall(r"(?<=[a-z,] )[A-Z][a-z]{3,}", text)) - {m.group() for m in names})
        if names and others:
            at = pick.choice(names)
            yield "name", f"{body[: at.start()]}{pick.choice(others)}{body[at.end() :]}[{number}]"
        verb = re.search(r"\b(?:is|are|was|were|has|have|had|can|will)\b", body)
        if verb:
            yield "negation", f"{body[: verb.end()]} not{body[verb.end() :]}[{number}]"
        gone = re.search(r"\b(?:not|never) ", body)
        if gone:
            yield "negation removed", f"{body[: gone.start()]}{body[gone.end() :]}[{number}]"
    else:
        verb = re.search(r"是|有|能|为了?", body)
        if verb:
            yield "negation", f"{body[: verb.start()]}不{body[verb.start() :]}[{number}]"
        gone = re.search(r"不(?=[是能会可])|没(?=有)|未", body)
        if gone:
            yield "negation removed", f"{body[: gone.start()]}{body[gone.end() :]}[{number}]"
        names = list(
            re.finditer(r"[\u3400-\u9fff]{2,6}·[\u3400-\u9fff]{2,6}|(?<=[《“])[\u3400-\u9fff]{2,10}", body)
        )
        others = sorted(
            set(
                re.findall(r"[\u3400-\u9fff]{2,6}·[\u3400-\u9fff]{2,6}|(?<=[《“])[\u3400-\u9fff]{2,10}", text)
            )
            - {m.group() for m in names}
        )
        if names and others:
            at = pick.choice(names)
            yield "name", f"{body[: at.start()]}{pick.choice(others)}{body[at.end() :]}[{number}]"
    other = [n for n in range(1, len(passages) + 1) if n != number]
    if other:
        yield "index", f"{body}[{pick.choice(other)}]"
    yield "index outside", f"{body}[{len(passages) + 4}]"


def mutated(name: str, collection: Collection, ask: Asker, limit: int) -> dict[str, Any]:
    pick = random.Random(0)
    tried: Counter[str] = Counter()
    noticed: Counter[str] = Counter()
    for row in collection.questions[:limit]:
        reply, found = ask(row["question"], collection.index)
        texts = [document.page_content for document in found]
        for one in check_citations(reply, texts).citations[:1]:
            for kind, changed in mutations(one.statement, one.number, texts, pick):
                if kind == "index":  # a passage that holds the sentence too is no wrong index
                    target = int(re.findall(r"\[(\d+)\]$", changed)[0])
                    if plain(one.statement).rstrip(".。") in plain(texts[target - 1]):
                        continue
                tried[kind] += 1
                noticed[kind] += check_citations(changed, texts).status != "grounded"
    return {"set": f"{name} mutated", **{kind: f"{noticed[kind]}/{tried[kind]}" for kind in tried}}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("--sets", nargs="*", default=list(SETS))
    parser.add_argument("--limit", type=int, default=100_000)
    parser.add_argument("--part", choices=("quality", "foreign", "mutated", "all"), default="all")
    options = parser.parse_args()
    wanted = set(options.sets) | {
        other for name, other in FOREIGN if name in options.sets and options.part in ("foreign", "all")
    }
    collections = {name: load(options.data / name) for name in sorted(wanted)}
    ask = Asker()
    for name in options.sets:
        if options.part in ("quality", "all"):
            print(
                json.dumps(quality(name, collections[name], ask, options.limit), ensure_ascii=False),
                flush=True,
            )
        if options.part in ("foreign", "all"):
            print(json.dumps(without_gold(name, collections[name], ask, min(options.limit, 400))), flush=True)
        if options.part in ("mutated", "all"):
            print(json.dumps(mutated(name, collections[name], ask, min(options.limit, 400))), flush=True)
    if options.part in ("foreign", "all"):
        for name, other in FOREIGN:
            if name in options.sets:
                print(json.dumps(foreign(name, other, collections, ask, min(options.limit, 400))), flush=True)


if __name__ == "__main__":
    main()
