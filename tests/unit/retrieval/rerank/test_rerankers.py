"""The rerankers that need no language model: cross-encoder, embedding, MMR, metadata signals."""

from __future__ import annotations

import datetime
import json
import math
from typing import Any

import numpy as np
import pytest
from langchain_core.cross_encoders import BaseCrossEncoder
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.runnables import RunnableLambda
from langchain_core.vectorstores.utils import maximal_marginal_relevance
from support.embedding import WordEmbeddings
from support.rewriters import both, corpus, ids, notes

from rag_kit.documents import get_provenance, with_provenance
from rag_kit.errors import InvalidInputError
from rag_kit.retrieval import CrossEncoderReranker, RerankRetriever
from rag_kit.retrieval.rerank.scorers import EmbeddingReranker, MMRReranker, marginal_relevance
from rag_kit.retrieval.rerank.signals import Authority, MetadataReranker, Recency, Signal, read_date

DOCS = corpus(a="fan fan noise", b="the loud fan", c="fan")
NOW = datetime.date(2026, 1, 1)


class Shared(BaseCrossEncoder):
    """Counts shared words; keeps what it was given."""

    def __init__(self, kind: Any = list) -> None:
        self.kind, self.pairs = kind, []  # type: ignore[var-annotated]

    def score(self, text_pairs: list[tuple[str, str]]) -> Any:
        self.pairs.append(text_pairs)
        return self.kind([len(set(a.split()) & set(b.split())) for a, b in text_pairs])


class Table(Embeddings):
    """Vectors by text."""

    def __init__(self, **vectors: list[float]) -> None:
        self.vectors = vectors

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.vectors[text] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return self.vectors[text]


def made(reranker: Any, docs: list[Document] = DOCS, **settings: Any) -> RerankRetriever:
    return RerankRetriever(retriever=RunnableLambda(lambda query: docs), reranker=reranker, **settings)


def scored(*rows: tuple[str, float | None, dict[str, Any]]) -> list[Document]:
    """Documents with scores in their provenance."""
    return [
        with_provenance(
            Document(name, id=name, metadata=metadata),
            score=score, rank=rank, stage="bm25", retriever="r", query="q",
        )
        for rank, (name, score, metadata) in enumerate(rows, start=1)
    ]  # fmt: skip


@pytest.mark.parametrize(
    "kind", [list, tuple, np.array, lambda s: np.array(s, dtype="float32").reshape(-1, 1)]
)
async def test_cross_encoder(kind: Any) -> None:
    """All pairs go to the model in one call; any sequence or array of numbers is read, as plain floats."""
    model = Shared(kind)
    for reranker in (model, CrossEncoderReranker(model)):
        found = await both(made(reranker), "the loud fan")
        assert ids(found) == ["b", "a", "c"]
        assert [get_provenance(doc)["score"] for doc in found] == [3.0, 1.0, 1.0]
        json.dumps(found[0].metadata)
    assert model.pairs[0] == [("the loud fan", doc.page_content) for doc in DOCS] and len(model.pairs) == 4
    with pytest.raises(InvalidInputError, match="cross-encoder"):
        CrossEncoderReranker("bge")


async def test_embedding() -> None:
    """The score is the cosine, as a plain float; a zero vector counts 0."""
    model = Table(q=[3.0, 4.0], near=[6.0, 8.0], far=[-3.0, -4.0], zero=[0.0, 0.0])
    docs = [Document(text, id=text) for text in ("far", "zero", "near")]
    for reranker in (model, EmbeddingReranker(model)):
        found = await both(made(reranker, docs), "q")
        assert ids(found) == ["near", "zero", "far"]
        scores = [get_provenance(doc)["score"] for doc in found]
        assert scores == pytest.approx([1, 0, -1]) and {type(score) for score in scores} == {float}


async def test_embeddings_that_do_not_fit() -> None:
    """Vectors of another number or size are a failure, so the order stays."""
    found = await both(made(Table(q=[1.0, 0.0], a=[1.0], b=[2.0]), corpus(a="a", b="b")), "q")
    assert ids(found) == ["a", "b"] and "vectors of one size" in notes(found)[0]


async def test_mmr_by_hand() -> None:
    """Carbonell & Goldstein by hand: the near-duplicate of the best comes last.

    Cosines to q: a 1, b .995, c .6. Second choice with lambda .5: b .4975 - .4975 = 0; c .3 - .3 = 0 ... with
    lambda .4: b .398 - .597 = -.199, c .24 - .36 = -.12, so c. Third: b .398 - .6 * max(.995, cos(b, c)) = -.199.
    """
    model = Table(q=[1.0, 0.0], a=[1.0, 0.0], b=[0.995, math.sqrt(1 - 0.995**2)], c=[0.6, -0.8])
    docs = [Document(text, id=text) for text in "abc"]
    found = await both(made(MMRReranker(model, lambda_mult=0.4), docs), "q")
    assert ids(found) == ["a", "c", "b"]
    scores = [get_provenance(doc)["score"] for doc in found]
    assert scores == pytest.approx([0.4, 0.24 - 0.36, 0.4 * 0.995 - 0.6 * 0.995], abs=1e-9)
    assert get_provenance(found[1])["stages"][-1]["relevance"] == pytest.approx(0.6)
    assert ids(await both(made(MMRReranker(model, lambda_mult=1), docs), "q")) == ["a", "b", "c"]


def test_mmr_equals_langchain_on_random_vectors() -> None:
    """The order is LangChain's when no two values are equal."""
    rng = np.random.default_rng(7)
    for lambda_mult in (0.1, 0.5, 0.9):
        vectors, query = rng.normal(size=(40, 16)), rng.normal(size=16)
        unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        order, _ = marginal_relevance(unit @ (query / np.linalg.norm(query)), unit, lambda_mult)
        assert order == maximal_marginal_relevance(query, vectors.tolist(), lambda_mult=lambda_mult, k=40)


async def test_mmr_keeps_the_order_but_for_repeats_by_default() -> None:
    """A poor passage does not overtake a good one by being unlike it; a repeat comes after its equal."""

    def vector(relevance: float, axis: int) -> list[float]:
        rest = [0.0, 0.0, 0.0]
        rest[axis] = math.sqrt(1 - relevance**2)
        return [relevance, *rest]

    model = Table(
        q=[1.0, 0.0, 0.0, 0.0],
        best=vector(0.7, 0),
        again=vector(0.7, 0),
        other=vector(0.69, 1),
        far=vector(0.2, 2),
    )
    docs = [Document(text, id=text) for text in ("best", "again", "other", "far")]
    assert ids(await both(made(MMRReranker(model), docs), "q")) == ["best", "other", "again", "far"]


def test_recency_by_hand() -> None:
    """A half-life halves: 1 today, a half after it, a quarter after two, 1 for a date to come."""
    recency = Recency(field="when", half_life=10, now=NOW)
    for when, value in (
        ("2026-01-01", 1.0),
        ("2025-12-22", 0.5),
        (datetime.date(2025, 12, 12), 0.25),
        ("2027-01-01", 1.0),
        ("soon", None),
        (None, None),
    ):
        assert recency.value(Document("t", metadata={"when": when})) == value


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (2024, "2024-01-01"), ("2024", "2024-01-01"), ("2024-03", "2024-03-01"), ("2024/3/5", "2024-03-05"),
        ("2024.3.5", "2024-03-05"), ("2024年3月5日", "2024-03-05"), ("2024年3月", "2024-03-01"),
        ("2024年", "2024-01-01"), ("20240305", "2024-03-05"), ("2024-03-05T10:00:00Z", "2024-03-05"),
        ("2024-03-05 10:00:00", "2024-03-05"), (1709632800, "2024-03-05"),
        (datetime.datetime(2024, 3, 5, 23), "2024-03-05"), (datetime.date(2024, 3, 5), "2024-03-05"),
        ("2024-13-05", None), ("last year", None), (True, None), (float("nan"), None), (1e300, None),
        ([2024], None), ("", None),
    ],
)  # fmt: skip
def test_dates(value: Any, expected: str | None) -> None:
    """Dates in any common form are read; what is none is none, without an exception."""
    found = read_date(value)
    assert (found.date().isoformat() if found else None) == expected
    assert found is None or found.tzinfo is not None


async def test_metadata_signals() -> None:
    """The new score is the stated weighted mean: min-max score, recency, authority; the parts are shown."""
    docs = scored(
        ("a", 4.0, {"date": "2025-12-22", "source": "forum"}),
        ("b", 2.0, {"date": "2026-01-01", "source": "handbook"}),
        ("c", 3.0, {"source": ["odd"]}),
    )
    reranker = MetadataReranker(
        [
            Recency(half_life=10, now=NOW, weight=1),
            Authority({"handbook": 1.0, "forum": 0.2}, weight=0.5, missing=0.4),
        ],
        score_weight=2,
    )
    found = await both(made(reranker, docs), "q")
    wanted = {
        "a": (2 * 1 + 0.5 + 0.5 * 0.2) / 3.5,
        "b": (0 + 1 + 0.5) / 3.5,
        "c": (2 * 0.5 + 0 + 0.5 * 0.4) / 3.5,
    }
    assert {str(doc.id): get_provenance(doc)["score"] for doc in found} == pytest.approx(wanted)
    assert ids(found) == ["a", "b", "c"]
    assert get_provenance(found[0])["stages"][-1]["parts"] == {
        "score": 1.0, "recency:date": 0.5, "authority:source": 0.2
    }  # fmt: skip
    assert ids(await both(made(MetadataReranker([Recency(half_life=10, now=NOW)], score_weight=0), docs), "q")) == [
        "b", "a", "c"
    ]  # fmt: skip


async def test_shown_documents_come_later() -> None:
    """Ids that the call names as shown already lose the penalty."""
    docs = scored(("a", 4.0, {}), ("b", 3.0, {}), ("c", 2.0, {}), ("d", 0.0, {}))
    retriever = made(MetadataReranker(shown_penalty=0.6), docs)
    found = await both(retriever, "q", shown=["a"])
    assert ids(found) == ["b", "c", "a", "d"]
    assert get_provenance(found[2])["score"] == pytest.approx(0.4)
    assert get_provenance(found[2])["stages"][-1]["shown"] is True
    with pytest.raises(InvalidInputError, match="list of document ids"):
        retriever.invoke("q", None, shown="abc")


async def test_metadata_without_scores() -> None:
    """Without scores the ranks count, and that is told."""
    found = await both(made(MetadataReranker([Recency(now=NOW)])), "q")
    assert ids(found) == ["a", "b", "c"] and any("ranks were used" in note for note in notes(found))


async def test_own_signal() -> None:
    """A signal of one's own; one that leaves the range 0 to 1 is refused."""

    class Length(Signal):
        name = "length"
        most = 1.0

        def value(self, doc: Document) -> float | None:
            return self.most * len(doc.page_content) / 100

    length = Length(field="any", weight=1.0, missing=0.0)
    assert ids(await both(made(MetadataReranker([length], score_weight=0)), "q")) == ["a", "b", "c"]
    length.most = 100.0
    with pytest.raises(InvalidInputError, match="value of length"):
        made(MetadataReranker([length])).invoke("q")


def test_wrong_settings() -> None:
    """Wrong arguments are refused at construction, by name."""
    words = WordEmbeddings()
    for make, says in (
        (lambda: EmbeddingReranker("minilm"), "Embeddings"),
        (lambda: MMRReranker(words, lambda_mult=2), "lambda_mult=2"),
        (lambda: MMRReranker(words, depth=0), "depth=0"),
        (lambda: MetadataReranker(["recency"]), "Signal"),  # type: ignore[list-item]
        (lambda: MetadataReranker([], score_weight=0), "nothing to rank by"),
        (lambda: MetadataReranker(shown_penalty=-1), "shown_penalty=-1"),
        (lambda: Recency(half_life=0), "half_life=0"),
        (lambda: Recency(now="x"), "now='x'"),
        (lambda: Recency(field=""), "field=''"),
        (lambda: Recency(weight=0), "weight=0"),
        (lambda: Authority({"a": 2.0}), r"values\['a'\]=2.0"),
    ):
        with pytest.raises(InvalidInputError, match=says):
            make()
