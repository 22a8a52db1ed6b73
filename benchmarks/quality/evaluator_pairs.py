"""Labelled pairs (question, passage, whether the passage answers) of public sets, for retrieval evaluators.

- rgb: the positive and the negative passages of each question, as the set's authors chose them;
- scifact: a claim and BM25's ten best abstracts; those with labelled evidence answer;
- question sets: a question and BM25's ten best passages; those in which the answer was marked answer. A passage that
  holds an answer string but was not marked is left out: nobody knows. Questions without an answer are in: all their
  passages do not answer.

Pairs of one question stand together. `half` puts each question, with all others of its document, into one of two
halves.
"""

from __future__ import annotations

import gzip
import json
import re
import unicodedata
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langchain_core.documents import Document

from rag_kit.evaluation import load_dataset
from rag_kit.indexing import BM25Index, split
from rag_kit.text.evidence.sentences import PassageText, passage_text

K = 10
LONG = 3_000  # characters; longer documents are split, as at ingestion
SETS = ("rgb en_fact", "rgb zh_fact", "rgb zh_int", "scifact claims", "timeqa_slice")
OTHERS = ("xquad_en", "xquad_zh", "cmrc2018_dev", "covidqa")


@dataclass(frozen=True)
class Asked:
    """A question with the passages to judge.

    Attributes:
        question: Its text.
        passages: In the order in which they would be found.
        labels: Whether each answers.
        half: 0 (to fit on) or 1 (to report).
        answers: The answers, where the set has some.
    """

    question: str
    passages: tuple[Document, ...]
    labels: tuple[bool, ...]
    half: int
    answers: tuple[str, ...] = ()

    def text(self, place: int) -> PassageText:
        """A passage as the extractive model sees it."""
        return passage_text(place + 1, self.passages[place].page_content, self.passages[place].metadata)


def load(data: Path, name: str, limit: int | None = None) -> list[Asked]:
    """The questions of a set with their labelled passages."""
    if name.startswith("rgb "):
        found = list(_rgb(data / "rgb", name.split()[1]))
    elif name == "scifact claims":
        found = list(_claims(data / "scifact"))
    else:
        found = list(_questions(data / name, limit))
    return found[:limit]


def half(key: str) -> int:
    """0 or 1, the same each time."""
    return zlib.crc32(key.encode()) % 2


def plain(text: str) -> str:
    """Text as answers are looked for in it."""
    return re.sub(r"\s+", "", unicodedata.normalize("NFKC", text).casefold())


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    for line in raw.decode("utf-8").rstrip("\n").split("\n"):
        yield json.loads(line)


def _flat(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    return [text for item in value for text in _flat(item)]


def _rgb(folder: Path, name: str) -> Iterator[Asked]:
    path = next(path for path in sorted(folder.iterdir()) if path.name.startswith(name))
    for row in _lines(path):
        # alternating, so that their order tells nothing
        lots = [
            [(text, kind == "positive") for text in _flat(row[kind])] for kind in ("positive", "negative")
        ]
        mixed = [
            pair for place in range(max(map(len, lots))) for lot in lots for pair in lot[place : place + 1]
        ]
        yield Asked(
            row["query"],
            tuple(Document(text) for text, _ in mixed),
            tuple(label for _, label in mixed),
            half(f"{name} {row['id']}"),
            tuple(_flat(row["answer"])),
        )


def _claims(folder: Path) -> Iterator[Asked]:
    index = BM25Index.from_documents(load_dataset(folder).documents())
    evidence: dict[str, set[str]] = {}
    claims: dict[str, str] = {}
    for row in _lines(folder / "claims.jsonl"):
        claims[row["claim_id"]] = row["claim"]
        evidence.setdefault(row["claim_id"], set()).update([row["doc_id"]] if row["label"] else [])
    for number, claim in claims.items():
        found = [document for document, _ in index.search(claim, k=K)]
        labels = tuple(document.metadata["corpus_id"] in evidence[number] for document in found)
        yield Asked(claim, tuple(found), labels, half(f"claim {number}"))


def _questions(folder: Path, limit: int | None) -> Iterator[Asked]:
    dataset = load_dataset(folder)
    pieces: list[Document] = []
    for document in dataset.documents():
        pieces.extend(split([document]) if len(document.page_content) > LONG else [document])
    index = BM25Index.from_documents(pieces)
    titles = {document.metadata["corpus_id"]: document.metadata.get("title") or "" for document in pieces}
    for gold in [example for example in dataset if example.answerable is not None][:limit]:
        question = gold.question
        marked = {document for document, grade in gold.relevant.items() if grade > 0}
        passages, labels = [], []
        for document, _ in index.search(question, k=K):
            holds = any(plain(answer) in plain(document.page_content) for answer in gold.answers)
            inside = document.metadata["corpus_id"] in marked
            if inside == holds:
                passages.append(document)
                labels.append(holds)
        key = next(iter(marked), gold.id).split("#")[0]
        key = key if "#" in gold.id else titles.get(key) or key
        yield Asked(question, tuple(passages), tuple(labels), half(key), tuple(gold.answers))
