"""Samples of retrieval sets small enough for embedding models that are slow, and their scores."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import ir_measures
from langchain_core.documents import Document

from rag_kit.evaluation import Example
from rag_kit.evaluation.ranking.benchmark import load_dataset
from rag_kit.indexing import split

SETS = ("scifact", "timeqa_slice", "xquad_en", "covidqa", "limit_small", "xquad_zh", "cmrc2018_dev")
CHUNK = 1000  # characters
SEED = 36


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


def ndcg(found: Sequence[str], relevant: dict[str, int]) -> float:
    """nDCG@10 of document ids, best first; a document counts once, where it comes first."""
    run = [ir_measures.ScoredDoc("q", key, -place) for place, key in enumerate(dict.fromkeys(found))]
    judged = [ir_measures.Qrel("q", key, grade) for key, grade in relevant.items()]
    return float(ir_measures.calc_aggregate([ir_measures.nDCG @ 10], judged, run)[ir_measures.nDCG @ 10])
