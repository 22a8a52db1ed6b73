"""The theoretical maximum of a keyword score."""

from __future__ import annotations

import math

import pytest

from rag_kit.documents import get_provenance
from rag_kit.indexing import BM25Index
from rag_kit.retrieval import BM25Retriever

TEXTS = ["red fox", "red dog", "blue bird", "green bird sings"]


def test_by_hand() -> None:
    """The sum of the idf of the query's terms, repeats counted, unknown ones as rarest."""
    index = BM25Index.from_texts(TEXTS)
    red, fox, unknown = math.log1p(2.5 / 2.5), math.log1p(3.5 / 1.5), math.log1p(4.5 / 0.5)
    assert index.maximum("red fox") == pytest.approx(red + fox)
    assert index.maximum("fox fox zebra") == pytest.approx(2 * fox + unknown)
    assert index.maximum("") == 0
    assert BM25Index().maximum("fox") == 0


@pytest.mark.parametrize("variant", ["lucene", "okapi"])
def test_no_score_exceeds_it(variant: str) -> None:
    """However often a document repeats the query's terms, it stays below, and comes near."""
    index = BM25Index.from_texts([*TEXTS, "fox " * 5000], variant=variant, b=0.0)
    top = index.search("red fox")[0][1]
    highest = index.maximum("red fox")
    assert top < highest
    [(_, flooded)] = index.search("fox", k=1)
    assert flooded == pytest.approx(index.maximum("fox"), rel=1e-3)


def test_follows_writes() -> None:
    """A document more changes what a term is worth."""
    index = BM25Index.from_texts(TEXTS)
    before = index.maximum("fox")
    index.add([index.get(index.ids)[0].model_copy(update={"id": "again"})])
    assert index.maximum("fox") < before


def test_retriever_hands_it_on() -> None:
    """The keyword retriever's stage holds it, for fusions to use."""
    retriever = BM25Retriever.from_texts(TEXTS)
    [found, *_] = retriever.invoke("fox")
    [stage] = get_provenance(found)["stages"]
    assert stage["max_score"] == pytest.approx(retriever.index.maximum("fox"))
