"""Ranking metrics of runs and of single questions: worked figures, and what ir-measures says."""

from __future__ import annotations

import asyncio

import ir_measures
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rag_kit.errors import InvalidInputError
from rag_kit.evaluation.examples import Example
from rag_kit.evaluation.outputs import DOCUMENT_IDS, Output, Passage
from rag_kit.evaluation.ranking.metrics import RankingMetric, retrieval_metrics
from rag_kit.evaluation.scorers import METRICS, get_metric, get_metrics


def retrieved(ids, **metadata):
    """An output that retrieved passages of these ids."""
    return Output(passages=tuple(Passage(each, f"text of {each}", metadata) for each in ids))


def chunk(name, document, field="doc_id"):
    """A passage that was cut from a document."""
    return Passage(name, "", {field: document})


async def test_what_came_back_is_told():
    """The cell says where the relevant ones stand and which are missing."""
    cell = await get_metric("recall@10").measure(
        Example("q", "?", relevant={"a": 1, "b": 2, "c": 0}), retrieved(["x", "a", "c"])
    )
    assert (cell.value, cell.details["relevant_at"], cell.details["missed"]) == (0.5, {"a": 2}, ["b"])
    assert "2" in cell.reason


async def test_nothing_retrieved_is_zero_and_no_passages_is_not_applicable():
    """An empty result scores 0; a pipeline that does not say what it found, or no judgement, has no score."""
    example = Example("q", "?", relevant={"a": 1})
    metric = get_metric("ndcg@10")
    assert (await metric.measure(example, Output(passages=()))).value == 0.0
    assert (await metric.measure(example, Output(answer="yes"))).status == "not_applicable"
    assert (await metric.measure(Example("q", "?"), retrieved(["a"]))).status == "not_applicable"
    nothing = await metric.measure(Example("q", "?", relevant={"a": 0}), retrieved(["a"]))
    assert (nothing.value, nothing.status) == (None, "not_applicable")


async def test_judgements_of_chunks_and_of_documents_side_by_side():
    """A chunk that is judged itself is taken as that; its neighbour stands for the document."""
    output = Output(passages=(chunk("a#1", "a"), chunk("a#2", "a"), chunk("b#1", "b")))
    example = Example("q", "?", relevant={"a#2": 2, "a": 1, "b#9": 1})
    cell = await get_metric("recall@3").measure(example, output)
    assert cell.details["relevant_at"] == {"a": 1, "a#2": 2}
    assert cell.value == pytest.approx(2 / 3)


def test_names_and_settings():
    """Every row of the table makes its metric; what is unknown is refused; the settings name the library."""
    names = [name.replace("@k", "@7") for name, row in METRICS.items() if row.endswith(":RankingMetric")]
    assert len(names) == 9 and [metric.name for metric in get_metrics(names)] == names
    assert set(get_metric("ndcg@10").settings()) == {"ir_measures"}
    for wrong in ("ndcg@0", "ndcg@k", "recall", "precision@", "f1@3", "ndcg@1.5"):
        with pytest.raises(InvalidInputError):
            get_metric(wrong)


QRELS = {"q1": {"a": 1, "d": 1}, "q2": {"x": 1}, "q3": {"z": 1}}


RUN = {"q1": ["b", "a", "c", "d"], "q2": ["x", "y"], "q3": ["m"]}


FIGURES = {
    "mrr@10": 0.5,
    "mrr": 0.5,
    "precision@3": 0.2222222222,
    "recall@3": 0.5,
    "hit_rate@3": 0.6666666667,
    "map": 0.5,
    "ndcg@3": 0.4622842691,
}


def test_worked_figures():
    """Three queries worked by hand give these means."""
    rows = retrieval_metrics(RUN, QRELS, FIGURES).values()
    assert {name: sum(row[name] for row in rows) / len(rows) for name in FIGURES} == pytest.approx(
        FIGURES, abs=1e-9
    )


def test_graded_ndcg():
    """nDCG of graded relevance has linear gains, as trec_eval has it."""
    grades = [3, 2, 3, 0, 1, 2]
    qrels = {"q": {str(i): grade for i, grade in enumerate(grades)}}
    found = retrieval_metrics({"q": list("012345")}, qrels, ["ndcg", "ndcg@6"])["q"]
    assert found == pytest.approx({"ndcg": 0.9608081943, "ndcg@6": 0.9608081943}, abs=1e-9)


def test_rank_decides_and_not_the_id():
    """Ids in any order, or with spaces, are scored by their place; of a repeat the first place counts."""
    for ranking, value in (
        (["z last", "a", "b"], 1.0),
        (["a", "b", "z last"], 1 / 3),
        (["a", "a", "z last"], 0.5),
    ):
        found = retrieval_metrics({"q": ranking}, {"q": {"z last": 1}}, ["mrr@10"])["q"]
        assert found["mrr@10"] == pytest.approx(value)


def test_queries_without_judgement_are_left_out_and_missing_ones_are_zero():
    """A query that the run lacks scores 0; one without a relevant document is not scored."""
    qrels = {"q1": {"a": 1}, "q2": {"b": 1}, "q3": {"c": 1}, "q4": {"d": 0}}
    scores = retrieval_metrics({"q1": ["a"], "q2": [], "q4": ["d"], "q5": ["a"]}, qrels, ["map"])
    assert {query: row["map"] for query, row in scores.items()} == {"q1": 1.0, "q2": 0.0, "q3": 0.0}


@pytest.mark.parametrize(
    "name", ["f1", "ndcg@0", "ndcg@-1", "ndcg@x", "recall", "hit_rate", "NDCG@10", "", None]
)
def test_unknown_metrics_are_refused_with_the_allowed_names(name):
    """A wrong name, or a missing rank, lists what is allowed."""
    with pytest.raises(InvalidInputError, match="allowed are ndcg"):
        retrieval_metrics(RUN, QRELS, [name])


def test_nothing_to_score_is_refused():
    """Judgements without a relevant document cannot be scored."""
    with pytest.raises(InvalidInputError, match="no query has a relevant document"):
        retrieval_metrics(RUN, {"q1": {"a": 0}})


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
    """Score a ranking without repeats by ir-measures; its first place has the highest score, so nothing ties."""
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
