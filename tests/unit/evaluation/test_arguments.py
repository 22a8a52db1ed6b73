"""Paths that no file can have, and arguments of another kind, end in the kit's own error."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rag_kit.errors import InvalidInputError, RagKitError
from rag_kit.evaluation import (
    EvaluationSet,
    Example,
    Results,
    abilities,
    benchmark,
    compare,
    evaluate,
    generate,
    load_dataset,
    log_results,
    write_report,
)
from rag_kit.evaluation.cells import Cell
from rag_kit.evaluation.outputs import Output, Passage
from rag_kit.evaluation.plots import (
    scores_with_intervals,
)
from rag_kit.evaluation.runs.rows import Row
from rag_kit.evaluation.statistics import bootstrap_interval

EXAMPLES = [Example(f"q{number}", "Why?") for number in range(4)]
RESULTS = Results("one", [Row(each, Output("x"), {"m": Cell.ok(0.5)}) for each in EXAMPLES])
OTHER = Results("two", RESULTS.rows)
TEXTS = ["The Mizar pump was built in 1912 by Grace Weber. It moves water from the lake to the mill, and it is the "
         "oldest pump of the town."]  # fmt: skip
DATASET = EvaluationSet("sky", [Example("q", "sun", relevant={"s": 1})], corpus=[Passage("s", "sun")])
NOWHERE = "http://127.0.0.1:9"
WRONG: list[Any] = [None, 5, -1, math.nan, b"x", object(), [None], {5: 5}, "a\0b"]


def _evaluate(**given: Any) -> Any:
    return evaluate(
        lambda question: "yes", **{"dataset": EXAMPLES, "metrics": "ours_decline", "progress": False, **given}
    )


def _generate(**given: Any) -> Any:
    documents = given.pop("documents", TEXTS)
    return generate(documents, "extractive", **{"n": 1, "kinds": ["single_hop"], **given})


def _abilities(**given: Any) -> Any:
    return abilities(lambda question, passages: "no", given.pop("source", "."), **given)


WRITERS: dict[str, Callable[[Any], Any]] = {
    "write_report": lambda path: write_report(RESULTS, path),
    "EvaluationSet.save": lambda path: EvaluationSet("n", EXAMPLES).save(path),
    "generate": lambda path: _generate(out=path),
    "benchmark(out)": lambda path: benchmark(DATASET, {"a": _no_pipeline}, out=path),
    "benchmark(rows_out)": lambda path: benchmark(DATASET, {"a": _no_pipeline}, rows_out=path),
}


def _no_pipeline(documents: Any) -> Any:
    """Retrieves the first document."""
    from langchain_core.runnables import RunnableLambda

    return RunnableLambda(lambda query: documents[:1])


@pytest.mark.parametrize("name", WRITERS)
def test_a_file_that_cannot_be_written_is_told(name: str, tmp_path: Path, monkeypatch: Any) -> None:
    """Numbers, lists, names that no file has, a folder, a place below a file, a system that lets nobody write."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file.txt").write_text("mine")
    (tmp_path / "folder.jsonl").mkdir()
    wrong = [
        5, -1, [], {}, b"x", object(), "", "a\0b.jsonl", "\ud800.jsonl", "x" * 5000 + ".jsonl", True,
        tmp_path / "folder.jsonl", tmp_path / "file.txt" / "below.jsonl",
    ]  # fmt: skip
    for path in wrong:
        with pytest.raises(InvalidInputError):
            WRITERS[name](path)
    with pytest.raises(InvalidInputError, match="cannot be written"):
        WRITERS[name]("/proc/nothing/x.jsonl")
    assert (tmp_path / "file.txt").read_text() == "mine"
    assert sorted(os.listdir(tmp_path)) == ["file.txt", "folder.jsonl"]


def test_a_name_as_long_as_the_system_allows_can_be_written(tmp_path: Path) -> None:
    """The draft beside it has a shorter one."""
    path = tmp_path / ("潮" * 80 + "x.html")
    assert write_report(RESULTS, path).is_file() and len(list(tmp_path.iterdir())) == 1


def test_a_split_of_a_file_is_refused(tmp_path: Path) -> None:
    """A split is of a folder."""
    path = EvaluationSet("n", EXAMPLES).save(tmp_path / "set.jsonl")
    with pytest.raises(InvalidInputError, match="split is for a folder"):
        EvaluationSet.load(path, split="test")


CALLS: dict[str, tuple[Callable[[Any], Any], list[Any]]] = {
    "Example(spans)": (lambda w: Example("a", "b", spans=w), WRONG),
    "Example(history)": (lambda w: Example("a", "b", history=w), WRONG),
    "EvaluationSet(examples)": (lambda w: EvaluationSet("n", w), WRONG),
    "EvaluationSet.load": (EvaluationSet.load, WRONG),
    "EvaluationSet.from_feedback": (EvaluationSet.from_feedback, WRONG),
    "load_dataset": (load_dataset, WRONG),
    "Results.load": (Results.load, WRONG),
    "Results.save": (RESULTS.save, WRONG),
    "bootstrap_interval(level)": (lambda w: bootstrap_interval([1, 2], level=w), WRONG),
    "Cell(value)": (Cell.ok, [w for w in WRONG if w not in (5, -1)]),
    "evaluate(dataset)": (lambda w: _evaluate(dataset=w), WRONG),
    "evaluate(metrics)": (lambda w: _evaluate(metrics=w), WRONG[1:]),
    "evaluate(judge)": (lambda w: _evaluate(judge=w), WRONG[1:]),
    "evaluate(out)": (lambda w: _evaluate(out=w), WRONG[1:]),
    "write_report(results)": (lambda w: write_report(w, "r.html"), [[None], {"a": 5}, "text", []]),
    "write_report(diagnosis)": (
        lambda w: write_report(RESULTS, "r.html", diagnosis=w), [5, b"x", "text", {"one": 5}, [None]]
    ),
    "load(path)": (EvaluationSet.load, [None, 5, "x" * 5000, "\0"]),
    "generate(kinds)": (lambda w: _generate(kinds=w), [None, "x", ["x"]]),
    "generate(prompts)": (lambda w: _generate(prompts=w), [5, [], "x" * 5000]),
    "generate(documents)": (lambda w: _generate(documents=w), [None, 5, "x" * 5000, "\0"]),
    "benchmark(pipelines)": (lambda w: benchmark(DATASET, w), [None, 5, b"x", [5], "bm25", []]),
    "benchmark(cache)": (lambda w: benchmark(DATASET, ["bm25"], cache=w), [5, "\0", "x" * 5000]),
    "benchmark(limit)": (lambda w: benchmark(DATASET, ["bm25"], limit=w), [1.5, [], "x", True, 0]),
    "benchmark(depth)": (lambda w: benchmark(DATASET, ["bm25"], depth=w), [1.5, [], "x", True, 0]),
    "abilities(source)": (lambda w: _abilities(source=w), [None, 5, "x" * 5000, "nothing"]),
    "abilities(abilities)": (lambda w: _abilities(abilities=w), [None, "x", []]),
    "abilities(noise_rates)": (lambda w: _abilities(noise_rates=w), [None, 5, "x", [2.0]]),
    "plots(language)": (lambda w: scores_with_intervals(compare([RESULTS, OTHER]), language=w), [None, 5, "fr"]),
    "log_results(to)": (lambda w: log_results(RESULTS, w, url=NOWHERE), [None, 5, "x", ["mlflow"]]),
    "log_results(api_key)": (lambda w: log_results(RESULTS, "langsmith", url=NOWHERE, api_key=w), [5, ["k"], "库"]),
    "log_results(client)": (lambda w: log_results(RESULTS, "langsmith", client=w), [5, "x", object]),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_arguments_of_another_kind_are_refused(name: str, tmp_path: Path, monkeypatch: Any) -> None:
    """Each wrong value is the kit's own error, before anything is written."""
    monkeypatch.chdir(tmp_path)
    EvaluationSet("n", EXAMPLES).save("set.jsonl")
    call, values = CALLS[name]
    for value in values:
        with pytest.raises(RagKitError):
            call(value)
    assert os.listdir(tmp_path) == ["set.jsonl"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are Unix's")
def test_a_pipe_or_a_device_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    """A report into a pipe arrives there, and the pipe is one afterwards; with a device it would be /dev/null gone."""
    pipe = tmp_path / "pipe.jsonl"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        EvaluationSet("two", EXAMPLES[:2]).save(pipe)
        assert os.read(reader, 65536).count(b"\n") == 3  # a head and two questions
    finally:
        os.close(reader)
    assert pipe.is_fifo() and list(tmp_path.iterdir()) == [pipe]


@pytest.mark.skipif(os.name == "nt", reason="rights of this kind are Unix's")
def test_a_file_that_only_its_owner_may_read_stays_so(tmp_path: Path) -> None:
    """Writing it again changes what it says, and not who may read it."""
    path = tmp_path / "set.jsonl"
    path.write_text("old", encoding="utf-8")
    path.chmod(0o600)
    EvaluationSet("two", EXAMPLES[:2]).save(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.read_text(encoding="utf-8").count("\n") == 3
