"""Ranking metrics of whole runs: worked figures, agreement with ir-measures, refusals."""

from __future__ import annotations

import random

import ir_measures
import pytest

from rag_kit.errors import InvalidInputError
from rag_kit.evaluation.ranking.metrics import retrieval_metrics

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
    assert retrieval_metrics(RUN, QRELS, FIGURES).means() == pytest.approx(FIGURES, abs=1e-9)


def test_graded_ndcg():
    """nDCG of graded relevance has linear gains, as trec_eval has it."""
    grades = [3, 2, 3, 0, 1, 2]
    qrels = {"q": {str(i): grade for i, grade in enumerate(grades)}}
    found = retrieval_metrics({"q": list("012345")}, qrels, ["ndcg", "ndcg@6"]).means()
    assert found == pytest.approx({"ndcg": 0.9608081943, "ndcg@6": 0.9608081943}, abs=1e-9)


def test_rank_decides_and_not_the_id():
    """Ids in any order, or with spaces, are scored by their place; of a repeat the first place counts."""
    for ranking, value in (
        (["z last", "a", "b"], 1.0),
        (["a", "b", "z last"], 1 / 3),
        (["a", "a", "z last"], 0.5),
    ):
        found = retrieval_metrics({"q": ranking}, {"q": {"z last": 1}}, ["mrr@10"]).means()
        assert found["mrr@10"] == pytest.approx(value)


def test_queries_without_judgement_are_left_out_and_missing_ones_are_zero():
    """A query that the run lacks scores 0; one without a relevant document is no part of the mean."""
    qrels = {"q1": {"a": 1}, "q2": {"b": 1}, "q3": {"c": 1}, "q4": {"d": 0}}
    scores = retrieval_metrics({"q1": ["a"], "q2": [], "q4": ["d"], "q5": ["a"]}, qrels, ["map"])
    assert list(scores.per_query) == ["q1", "q2", "q3"] and scores.means()["map"] == pytest.approx(1 / 3)


def test_means_are_those_of_ir_measures():
    """On random rankings every default metric is what ir-measures says of the run."""
    draw = random.Random(3)
    names = [f"doc {number}" for number in range(150)]
    qrels = {f"q{n}": {each: draw.choice([0, 1, 2]) for each in draw.sample(names, 20)} for n in range(30)}
    run = {query: draw.sample(names, 120) for query in qrels}
    ours = retrieval_metrics(run, qrels).means()
    theirs = {"ndcg@10": "nDCG@10", "recall@10": "R@10", "recall@100": "R@100", "mrr@10": "RR@10", "map": "AP",
              "hit_rate@1": "Success@1", "hit_rate@10": "Success@10"}  # fmt: skip
    scored = {q: {each: -float(rank) for rank, each in enumerate(ranking)} for q, ranking in run.items()}
    found = ir_measures.calc_aggregate(map(ir_measures.parse_measure, theirs.values()), qrels, scored)
    assert ours == pytest.approx({name: found[ir_measures.parse_measure(m)] for name, m in theirs.items()})


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
