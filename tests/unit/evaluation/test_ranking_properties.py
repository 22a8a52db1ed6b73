"""Ranking metrics of cells are those of ir-measures, whatever the ranking: by documents, by chunks, by both."""

from __future__ import annotations

import asyncio

import ir_measures
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rag_kit.evaluation.examples import Example
from rag_kit.evaluation.outputs import DOCUMENT_IDS, Output, Passage
from rag_kit.evaluation.ranking.metrics import RankingMetric
from rag_kit.evaluation.scorers import get_metric

PAIRS = {
    "hit_rate@1": "Success@1", "hit_rate@5": "Success@5", "mrr": "RR", "mrr@3": "RR@3", "map": "AP", "map@5": "AP@5",
    "ndcg": "nDCG", "ndcg@3": "nDCG@3", "ndcg@100": "nDCG@100", "precision@1": "P@1", "precision@5": "P@5",
    "precision@100": "P@100", "recall@1": "R@1", "recall@5": "R@5", "recall@100": "R@100",
}  # fmt: skip
MEASURES = {name: ir_measures.parse_measure(text) for name, text in PAIRS.items()}
DOCUMENTS = [f"d{n}" for n in range(8)]
CHUNKS = [f"{document}#{n}" for document in DOCUMENTS for n in range(3)]
EVERY = settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def grades(ids: list[str]) -> st.SearchStrategy[dict[str, int]]:
    """Judgements of some ids, of which one at least is relevant."""
    known = st.dictionaries(st.sampled_from(ids), st.integers(0, 3), min_size=1, max_size=10)
    return known.filter(lambda found: any(found.values()))


def theirs(ranking: list[str], qrels: dict[str, int]) -> dict[str, float]:
    """What ir-measures says of a ranking without repeats; its first place has the highest score, so nothing ties."""
    run = {"q": {each: -float(rank) for rank, each in enumerate(ranking)}}
    if not ranking:
        return dict.fromkeys(PAIRS, 0.0)
    found = {
        str(each.measure): each.value for each in ir_measures.iter_calc(MEASURES.values(), {"q": qrels}, run)
    }
    return {name: found[str(measure)] for name, measure in MEASURES.items()}


def ours(passages: list[Passage], qrels: dict[str, int]) -> dict[str, float | None]:
    """The values of the cells."""
    example, output = Example("q", "?", relevant=qrels), Output(passages=tuple(passages))

    async def all_of_them() -> dict[str, float | None]:
        return {name: (await RankingMetric(name).measure(example, output)).value for name in PAIRS}

    return asyncio.run(all_of_them())


@EVERY
@given(st.lists(st.sampled_from(DOCUMENTS), max_size=20), grades(DOCUMENTS), st.booleans())
def test_documents(names: list[str], qrels: dict[str, int], tied: bool) -> None:
    """Whole documents, some twice: a repeat is no new place. Scores of the search, tied or not, do not matter."""
    provenance = [{"score": 1.0 if tied else float(rank)} for rank in range(len(names))]
    passages = [Passage(name, "text", {}, of) for name, of in zip(names, provenance, strict=True)]
    assert ours(passages, qrels) == pytest.approx(theirs(list(dict.fromkeys(names)), qrels), abs=1e-9)


@EVERY
@given(st.lists(st.sampled_from(CHUNKS), max_size=24, unique=True), grades(CHUNKS))
def test_chunks(names: list[str], qrels: dict[str, int]) -> None:
    """Judgements of chunks: each chunk is a place of its own, those of one document too."""
    passages = [Passage(name, "text", {"doc_id": name.partition("#")[0]}) for name in names]
    assert ours(passages, qrels) == pytest.approx(theirs(names, qrels), abs=1e-9)


@EVERY
@given(
    st.lists(st.sampled_from(CHUNKS), max_size=24, unique=True), grades(DOCUMENTS), st.sampled_from(DOCUMENT_IDS)
)  # fmt: skip
def test_chunks_of_judged_documents(names: list[str], qrels: dict[str, int], field: str) -> None:
    """Judgements of documents: the best chunk of each document is its place, where any of it is judged."""
    documents = [name.partition("#")[0] for name in names]
    passages = [Passage(name, "text", {field: of}) for name, of in zip(names, documents, strict=True)]
    # documents are what is ranked as soon as one of those found is judged; else chunks are, and none counts
    ranking = list(dict.fromkeys(documents)) if set(documents) & set(qrels) else names
    assert ours(passages, qrels) == pytest.approx(theirs(ranking, qrels), abs=1e-9)


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("id_of", ["document", "chunk"])
async def test_nothing_found_and_k_beyond_what_came_back(name: str, id_of: str) -> None:
    """An empty ranking is 0; a k beyond it divides precision by k, and changes nothing else."""
    relevant = {"d1": 2} if id_of == "document" else {"d1#0": 2}
    example = Example("q", "?", relevant=relevant)
    assert (await get_metric(name).measure(example, Output(passages=()))).value == 0.0
    found = Output(passages=(Passage("d1#0", "text", {"doc_id": "d1"}),))
    k = int(name.partition("@")[2] or 1)
    expected = 1 / k if name.startswith("precision") else 1.0
    assert (await get_metric(name).measure(example, found)).value == pytest.approx(expected)


@pytest.mark.parametrize("id_of", ["document", "chunk"])
@pytest.mark.parametrize(
    ("name", "value"),
    [("mrr", 0.5), ("precision@3", 2 / 9), ("recall@3", 0.5), ("hit_rate@3", 2 / 3), ("map", 0.5),
     ("ndcg@3", 0.4622842691)],
)  # fmt: skip
async def test_worked_figures_on_both_ids(id_of: str, name: str, value: float) -> None:
    """The three worked questions have the same figures by document and by chunk."""
    qrels = {"q1": {"a": 1, "d": 1}, "q2": {"x": 1}, "q3": {"z": 1}}
    runs = {"q1": ["b", "a", "c", "d"], "q2": ["x", "y"], "q3": ["m"]}
    values = []
    for query, ranking in runs.items():
        chunked = [Passage(f"{each}#7", "text", {"doc_id": each}) for each in ranking]
        relevant = qrels[query] if id_of == "document" else {f"{key}#7": 1 for key in qrels[query]}
        cell = await get_metric(name).measure(
            Example(query, "?", relevant=relevant), Output(passages=tuple(chunked))
        )
        values.append(cell.value)
    assert sum(v for v in values if v is not None) / 3 == pytest.approx(value, abs=1e-9)
    assert None not in values
