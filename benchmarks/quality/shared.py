"""Helpers of several measures of quality: files of JSON lines, samples of sets, and scores of rankings."""

from __future__ import annotations

import gzip
import json
import os
import random
import re
import sys
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import ir_measures
from langchain_core.documents import Document

from rag_kit.evaluation import EvaluationSet, Example, load_dataset
from rag_kit.indexing import split

sys.path.append(str(Path(__file__).resolve().parents[1]))
from measured import AT_START as AT_START
from measured import RESULTS as RESULTS
from measured import arguments as arguments
from measured import save as save

DATA = Path(os.environ.get("RAG_KIT_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))
LONG = 3000  # characters; longer documents are split, as at ingestion
CHUNK = 1000  # characters
SEED = 36


def lines(path: Path) -> Iterator[dict[str, Any]]:
    """The records of a file of JSON lines, packed where its name ends so."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as file:
        yield from map(json.loads, file)


def plain(text: str) -> str:
    """Text as answers are looked for in it."""
    return re.sub(r"\s+", "", unicodedata.normalize("NFKC", text).casefold())


def pieces(dataset: EvaluationSet) -> list[Document]:
    """The documents of a set, long ones split."""
    found: list[Document] = []
    for document in dataset.documents():
        found.extend(split([document]) if len(document.page_content) > LONG else [document])
    return found


def sample(folder: Path, questions: int, documents: int) -> tuple[list[Example], list[Document]]:
    """Draw questions of a set, and passages of their relevant documents and of others.

    Long documents are read in chunks; ``metadata["document"]`` of each passage is the id of its document.
    """
    data, chance = load_dataset(folder), random.Random(SEED)
    asked = [example for example in data.examples if example.relevant]
    chance.shuffle(asked)
    asked = asked[:questions]
    wanted = {key for example in asked for key in example.relevant}
    corpus = list(data.corpus or ())
    others = [row for row in corpus if row.id not in wanted]
    room = max(0, documents - len(wanted))
    kept = [row for row in corpus if row.id in wanted] + chance.sample(others, min(room, len(others)))
    whole = [Document(row.text, id=row.id, metadata={"document": row.id}) for row in kept]
    if sorted(len(row.text) for row in kept)[len(kept) // 2] < 3 * CHUNK:
        return asked, whole
    return asked, split(whole, splitter="recursive", chunk_size=CHUNK, chunk_overlap=0)


def ndcg(found: Sequence[str], relevant: Mapping[str, int]) -> float:
    """nDCG@10 of document ids, best first; a document counts once, where it comes first."""
    run = [ir_measures.ScoredDoc("q", key, -place) for place, key in enumerate(dict.fromkeys(found))]
    judged = [ir_measures.Qrel("q", key, grade) for key, grade in relevant.items()]
    return float(ir_measures.calc_aggregate([ir_measures.nDCG @ 10], judged, run)[ir_measures.nDCG @ 10])
