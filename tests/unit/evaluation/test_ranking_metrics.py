"""Ranking metrics of single questions: worked figures, agreement with ir-measures, chunks and documents."""

from __future__ import annotations

import pytest

from rag_kit.errors import InvalidInputError
from rag_kit.evaluation.examples import Example
from rag_kit.evaluation.outputs import Output, Passage
from rag_kit.evaluation.ranking.metrics import RankingMetric, ranked_ids
from rag_kit.evaluation.scorers import METRICS, get_metric, get_metrics


def retrieved(ids, **metadata):
    """An output that retrieved passages of these ids."""
    return Output(passages=tuple(Passage(each, f"text of {each}", metadata) for each in ids))


def chunk(name, document, field="doc_id"):
    """A passage that was cut from a document."""
    return Passage(name, "", {field: document})


async def mean(name, run, qrels):
    """Mean over the questions of the metric's cells."""
    cells = [
        await get_metric(name).measure(Example(query, "?", relevant=grades), retrieved(run[query]))
        for query, grades in qrels.items()
    ]
    assert {cell.status for cell in cells} == {"ok"}
    return sum(cell.value for cell in cells) / len(cells)


async def test_target_at_third_place_is_a_third():
    """Of the documents A, B, C, D the target C has the reciprocal rank 1/3."""
    assert await mean("mrr", {"q": list("ABCD")}, {"q": {"C": 1}}) == pytest.approx(1 / 3)


@pytest.mark.parametrize(("name", "value"), [("ndcg", 0.9608081943), ("ndcg@6", 0.9608081943)])
async def test_graded_ndcg(name, value):
    """nDCG of the grades 3, 2, 3, 0, 1, 2 is right with linear gains."""
    qrels = {"q": {str(place): grade for place, grade in enumerate([3, 2, 3, 0, 1, 2])}}
    assert await mean(name, {"q": list("012345")}, qrels) == pytest.approx(value, abs=1e-9)


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


@pytest.mark.parametrize("field", ["corpus_id", "parent_id", "doc_id", "source_id", "file"])
async def test_a_chunk_of_a_judged_document_counts(field):
    """Judgements about documents find the chunks by whatever metadata name their document."""
    output = Output(passages=(chunk("x#1", "x", field), chunk("a#4", "a", field)))
    assert (await get_metric("mrr").measure(Example("q", "?", relevant={"a": 1}), output)).value == 0.5


async def test_judgements_of_chunks_and_of_documents_side_by_side():
    """A chunk that is judged itself is taken as that; its neighbour stands for the document."""
    output = Output(passages=(chunk("a#1", "a"), chunk("a#2", "a"), chunk("b#1", "b")))
    example = Example("q", "?", relevant={"a#2": 2, "a": 1, "b#9": 1})
    cell = await get_metric("recall@3").measure(example, output)
    assert cell.details["relevant_at"] == {"a": 1, "a#2": 2}
    assert cell.value == pytest.approx(2 / 3)


async def test_several_chunks_of_one_document():
    """They are one place in a ranking of documents."""
    output = Output(passages=(chunk("x#1", "x"), chunk("x#2", "x"), chunk("a#1", "a"), chunk("a#2", "a")))
    example = Example("q", "?", relevant={"a": 1})
    assert (await RankingMetric("mrr").measure(example, output)).value == 0.5


def test_unjudged_chunks_stay_apart_where_chunks_are_judged():
    """Chunks of one file are places of their own when judgements name chunks."""
    found = [chunk("f#1", "f"), chunk("f#2", "f"), chunk("f#3", "f")]
    assert ranked_ids(found, {"f#3"}) == ["f#1", "f#2", "f#3"]
    assert ranked_ids(found, {"f"}) == ["f"]


def test_names_and_settings():
    """Every row of the table makes its metric; what is unknown is refused; the settings name the library."""
    names = [name.replace("@k", "@7") for name, row in METRICS.items() if row.endswith(":RankingMetric")]
    assert len(names) == 9 and [metric.name for metric in get_metrics(names)] == names
    assert set(get_metric("ndcg@10").settings()) == {"ir_measures"}
    for wrong in ("ndcg@0", "ndcg@k", "recall", "precision@", "f1@3", "ndcg@1.5"):
        with pytest.raises(InvalidInputError):
            RankingMetric(wrong)
        with pytest.raises(InvalidInputError):
            get_metric(wrong)
