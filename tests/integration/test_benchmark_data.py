"""The public sets: they load, and keyword search and fusion score what is expected."""

from __future__ import annotations

import json

import pytest
from support.scripts import load_script

from rag_kit.evaluation import benchmark, load_dataset
from rag_kit.evaluation.ranking.metrics import qrels
from rag_kit.models.wheels.files import is_installed

pytestmark = [pytest.mark.data, pytest.mark.slow]
quality = load_script("benchmarks/quality/quality.py")
CONTENT = quality.load()
RUNS = {run["name"]: run for run in CONTENT["runs"]}


@pytest.mark.parametrize(
    ("name", "documents", "queries", "judged"),
    [
        ("scifact", 5183, 300, 300),
        ("limit_small", 46, 1000, 1000),
        ("timeqa_slice", 3953, 282, 244),
        ("covidqa", 98, 1380, 1380),
        ("pubmedqa_l", 1000, 1000, 1000),
        ("cmrc2018_dev", 848, 3219, 3219),
        ("xquad_zh", 240, 1190, 1190),
        ("xquad_en", 240, 1190, 1190),
    ],
)
def test_sets_load(data_sets, name, documents, queries, judged):
    """Every public set passes the checks with the counts that its description states."""
    dataset = load_dataset(data_sets / name)
    assert (len(dataset.corpus), len(dataset), len(qrels(dataset))) == (documents, queries, judged)


@pytest.mark.parametrize(
    ("name", "spans"),
    [
        ("covidqa", 1380),
        ("xquad_zh", 1190),
        ("xquad_en", 1190),
        ("timeqa_slice", 244),
        ("cmrc2018_dev", 3219),
    ],
)
def test_gold_spans_are_found(data_sets, name, spans):
    """Sets with answer texts have spans for (nearly) all their questions."""
    dataset = load_dataset(data_sets / name)
    assert sum(1 for query in qrels(dataset) if dataset[query].spans) >= 0.98 * spans


@pytest.mark.parametrize("name", ["pubmedqa_l", "scifact", "limit_small"])
def test_sets_without_spans_have_none(data_sets, name):
    """Yes and no are no spans, and sets without answers have none."""
    dataset = load_dataset(data_sets / name)
    assert sum(1 for example in dataset if example.spans) < 0.5 * len(dataset)


@pytest.mark.parametrize(
    "name", [name for name, run in RUNS.items() if name != "covidqa_chunks" and "table" not in run]
)
def test_keyword_search_scores_as_expected(data_sets, name):
    """bm25 on every set is within the tolerance of benchmarks/quality/quality.yaml."""
    expected = {"bm25": RUNS[name]["expected"]["bm25"]}
    result = benchmark(data_sets / name, ["bm25"])
    verdicts = quality.judge({"name": name, "expected": expected}, result, CONTENT["tolerance"])
    assert verdicts and not [v for v in verdicts if v.verdict == "FAIL"]


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", ["xquad_en", "limit_small", "techniques_limit_small"])
def test_commands_score_as_expected(data_sets, name, tmp_path):
    """The command as it stands in the file gives the scores and keeps the claims that stand beside it."""
    if not is_installed("minilm"):
        pytest.skip("the weights of minilm are not installed (rag-kit models install minilm)")
    from rag_kit.cli.main import main

    out = tmp_path / "result.json"
    command = quality.command_of(RUNS[name], data=str(data_sets), out=str(out), cache=str(tmp_path / "cache"))
    assert main(command[1:]) == 0
    result = json.loads(out.read_text(encoding="utf-8"))
    failed = [v for v in quality.judge(RUNS[name], result, CONTENT["tolerance"]) if v.verdict == "FAIL"]
    assert not failed
