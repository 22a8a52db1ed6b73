"""Ranking metrics: worked figures, and agreement with ir-measures."""

from __future__ import annotations

import random

import ir_measures
import pytest

from rag_kit.errors import InvalidInputError
from rag_kit.evaluation import ndcg, retrieval_metrics

QRELS = {"q1": {"a": 1, "d": 1}, "q2": {"x": 1}, "q3": {"z": 1}}
RUN = {"q1": ["b", "a", "c", "d"], "q2": ["x", "y"], "q3": ["m"]}
GRADES = [3, 2, 3, 0, 1, 2]


@pytest.mark.parametrize(
    ("metric", "value"),
    [
        ("mrr@10", 0.5),
        ("mrr", 0.5),
        ("precision@3", 0.2222222222),
        ("recall@3", 0.5),
        ("hit_rate@3", 0.6666666667),
        ("map", 0.5),
        ("ndcg@3", 0.4622842691),
    ],
)
def test_worked_figures(metric, value):
    """Three queries worked by hand give these means."""
    assert retrieval_metrics(RUN, QRELS, [metric]).mean(metric) == pytest.approx(value, abs=1e-9)


def test_graded_ndcg_linear_and_exponential():
    """nDCG of graded relevance is right for both gains, on a list and on a run, asked for together."""
    qrels = {"q": {str(i): grade for i, grade in enumerate(GRADES)}}
    scores = retrieval_metrics({"q": [str(i) for i in range(6)]}, qrels, ["ndcg", "ndcg_exp", "ndcg_exp@6"])
    assert scores.mean("ndcg") == pytest.approx(0.9608081943, abs=1e-9)
    assert scores.mean("ndcg_exp") == pytest.approx(0.9488107486, abs=1e-9)
    assert scores.mean("ndcg_exp@6") == pytest.approx(0.9488107486, abs=1e-9)
    assert ndcg(GRADES) == pytest.approx(0.9608081943, abs=1e-9)
    assert ndcg(GRADES, exponential=True) == pytest.approx(0.9488107486, abs=1e-9)
    assert ndcg([0, 0]) == 0.0
    assert ndcg([1], ideal=[1, 1]) == pytest.approx(1 / (1 + 0.6309297536), abs=1e-9)


def test_rank_decides_and_not_the_id():
    """Documents with ids in any order, or with spaces, are scored by their place in the list."""
    qrels = {"q": {"z last": 1}}
    assert retrieval_metrics({"q": ["z last", "a", "b"]}, qrels, ["mrr@10", "ndcg@10"]).means() == {
        "mrr@10": 1.0,
        "ndcg@10": 1.0,
    }
    assert retrieval_metrics({"q": ["a", "b", "z last"]}, qrels, ["mrr@10"]).mean("mrr@10") == pytest.approx(
        1 / 3
    )


def test_cutoff_of_mrr_is_kept():
    """mrr@10 ignores what stands at rank 11; mrr does not."""
    ranking = {"q": [*(f"n{i}" for i in range(10)), "hit"]}
    scores = retrieval_metrics(ranking, {"q": {"hit": 1}}, ["mrr@10", "mrr"])
    assert scores.means() == {"mrr@10": 0.0, "mrr": pytest.approx(1 / 11)}


def test_missing_and_unjudged_queries():
    """A judged query that the run lacks, or answers with nothing, counts as 0; an unjudged one is listed."""
    qrels = {"q1": {"a": 1}, "q2": {"b": 1}, "q3": {"c": 1}, "q4": {"d": 0}}
    scores = retrieval_metrics({"q1": ["a"], "q2": [], "q4": ["d"], "q5": ["a"]}, qrels, ["ndcg@10", "map"])
    assert {query: row["ndcg@10"] for query, row in scores.per_query.items()} == {"q1": 1, "q2": 0, "q3": 0}
    assert scores.mean("map") == pytest.approx(1 / 3)
    assert scores.unjudged == ("q4", "q5")


def test_a_document_that_comes_twice_counts_at_its_first_place():
    """Repeated documents (chunks of one parent) take one rank each."""
    scores = retrieval_metrics({"q": ["a", "b", "a", "c"]}, {"q": {"a": 1, "c": 1}}, ["map", "recall@3"])
    assert scores.mean("map") == pytest.approx((1 + 2 / 3) / 2)
    assert scores.mean("recall@3") == 1.0


def test_agrees_with_ir_measures_on_random_runs():
    """All default metrics equal ir-measures' own aggregates."""
    rng = random.Random(7)
    qrels = {f"q{i}": {f"d{rng.randrange(60)}": rng.randrange(1, 4) for _ in range(4)} for i in range(40)}
    run = {query: rng.sample([f"d{i}" for i in range(60)], 30) for query in qrels}
    scored = {query: {doc: 1.0 / rank for rank, doc in enumerate(docs, 1)} for query, docs in run.items()}
    nDCG, R, RR, AP, Success = (getattr(ir_measures, n) for n in ("nDCG", "R", "RR", "AP", "Success"))
    measures = [nDCG @ 10, R @ 10, R @ 100, RR @ 10, AP, Success @ 1, Success @ 10]
    expected = ir_measures.calc_aggregate(measures, qrels, scored)
    got = retrieval_metrics(run, qrels).means()
    assert list(got.values()) == pytest.approx([expected[m] for m in measures], abs=1e-12)


@pytest.mark.parametrize("name", ["ndgc@10", "recall", "hit_rate", "ndcg@0", "ndcg@x", "", "precision"])
def test_unknown_metrics_are_refused(name):
    """A misspelt metric, or one without its rank, is refused with the allowed names."""
    with pytest.raises(InvalidInputError, match="allowed are ndcg"):
        retrieval_metrics(RUN, QRELS, [name])


def test_nothing_to_score_is_refused():
    """Judgements without a relevant document cannot be scored."""
    with pytest.raises(InvalidInputError, match="no query has a relevant document"):
        retrieval_metrics(RUN, {"q1": {"a": 0}})
