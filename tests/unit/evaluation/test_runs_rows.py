"""Rows and their folder: pipelines that give rubbish, files that are damaged, disks that fill up."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rag_kit._redact import error_text
from rag_kit.errors import InvalidInputError
from rag_kit.evaluation import Example, Results, evaluate
from rag_kit.evaluation._files import write_file
from rag_kit.evaluation.cells import Cell
from rag_kit.evaluation.metric import Metric
from rag_kit.evaluation.outputs import Output, Passage

EXAMPLES = [Example("a", "One?"), Example("b", "Two?")]


class UnspeakableError(Exception):
    """An object, and an exception, that fails at telling what it is."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


class Words(Metric):
    """Counts words."""

    name, source, stage = "ours_words", "ours", "generation"

    async def score(self, example: Example, output: Output, judge: Any) -> Cell:
        """The share."""
        return Cell.ok(len((output.answer or "").split()) / 10)


def fails(error: BaseException) -> Callable[[str], Any]:
    """A pipeline that raises."""

    def ask(question: str) -> Any:
        raise error

    return ask


RUBBISH: dict[str, tuple[Callable[[str], Any], str]] = {
    "a number": (lambda q: 5, "int"),
    "no end of calls": (lambda q: {"answer": "x", "usage": {"calls": 10**30}}, "calls"),
    "usage that is a list": (lambda q: {"answer": "x", "usage": [1]}, "usage"),
    "status that is no text": (lambda q: {"answer": "x", "status": UnspeakableError()}, "status"),
    "documents that are a mapping": (lambda q: {"answer": "x", "documents": {"d1": "text"}}, "documents"),
    "a message that is none": (lambda q: {"answer": "x", "messages": [1]}, "message"),
    "an output with an answer that is none": (lambda q: Output(answer=5), "answer"),  # type: ignore[arg-type]
    "an output with NaN seconds": (lambda q: Output("x", seconds=math.nan), "seconds"),
    "an output with odd passages": (lambda q: Output("x", passages=(1,)), "passages"),  # type: ignore[arg-type]
    "a passage without text": (lambda q: Output("x", passages=(Passage("d", None),)), "text"),  # type: ignore[arg-type]
    "what cannot be written": (
        lambda q: Output("x", passages=(Passage("d", "t", {"at": UnspeakableError()}),)),
        "no text",
    ),
    "an error without a text": (fails(UnspeakableError()), "UnspeakableError"),
}


@pytest.mark.parametrize("name", RUBBISH)
def test_rubbish_is_an_error_of_its_row(name: str, tmp_path: Path) -> None:
    """One row fails with a word on what is wrong; the other one is done, and both can be loaded."""
    give, told_of = RUBBISH[name]

    def pipeline(question: str) -> Any:
        return give(question) if question == "One?" else "a good answer"

    results = evaluate(pipeline, EXAMPLES, Words(), out=tmp_path / "r", progress=False)
    assert told_of in str(results["a"].output.error)
    assert results["a"].cells["ours_words"].status == "error"
    assert results["b"].cells["ours_words"].value == pytest.approx(0.3)
    loaded = Results.load(tmp_path / "r")
    assert [row.cells for row in loaded] == [row.cells for row in results]
    assert [row.output for row in loaded] == [row.output for row in results]


def test_errors_are_told_on_one_short_line() -> None:
    """An error's text may be huge, hold a key, or fail; what is stored of it is short and holds none."""
    assert error_text(ValueError("x" * 10**6)) == f"ValueError: {'x' * 2000} ..."
    assert error_text(ValueError("a\n b, key=abcdefgh")) == "ValueError: a b, key=***"
    assert "UnspeakableError" in error_text(UnspeakableError())
    assert error_text(KeyError()) == "KeyError"
    group = ExceptionGroup("in a TaskGroup", [ExceptionGroup("inside", [ValueError("no route")]), KeyError()])
    assert error_text(group) == "ValueError: no route"
    assert error_text(ValueError("红\x1b[31m\u3000\x00\u202e")) == r"ValueError: 红\x1b[31m \x00\u202e"


def run(out: Path, **more: Any) -> Results:
    """A run that gives the same each time."""
    return evaluate(
        lambda q: "x", EXAMPLES, Words(), out=out, name="n", version="1", **{"progress": False, **more}
    )


def test_a_folder_that_is_not_of_results_is_refused(tmp_path: Path) -> None:
    """Before anything is asked: a folder in the place of a file, and somebody's own file of that name."""
    for name in ("rows.jsonl", "manifest.json", ".lock"):
        (tmp_path / name / name).mkdir(parents=True)
        with pytest.raises(InvalidInputError, match=r"holds something else|cannot be written"):
            run(tmp_path / name)
    (tmp_path / "r").mkdir()
    for name, text in (
        ("rows.jsonl", "my notes\nof last week\n"),
        ("manifest.json", '{"name": "a web app"}'),
    ):
        (tmp_path / "r" / name).write_text(text)
        with pytest.raises(InvalidInputError, match="holds something else"):
            run(tmp_path / "r")
        assert (tmp_path / "r" / name).read_text() == text
    (tmp_path / "r" / "rows.jsonl").unlink()
    with pytest.raises(InvalidInputError, match=r"holds something else \('manifest\.json'\)"):
        run(tmp_path / "r")


@pytest.mark.parametrize("path", ["/proc/nothing/here", "x" * 300, "link"])
def test_a_path_that_cannot_be_written_to_is_refused(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message says why, and what to do."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link").symlink_to("nowhere")
    with pytest.raises(InvalidInputError, match=r"name a|give a path"):
        run(Path(path))


def test_lines_of_another_form_are_done_again(tmp_path: Path) -> None:
    """A line that is JSON and no row of ours ends no run; what it stood for is computed."""
    run(tmp_path / "r")
    example, ok = '"example": {"id": "a", "question": "One?"}', '"value": 1, "status": "ok"'
    for line in (
        f'{{"id": "a", "keys": {{"output": 5}}, {example}, "output": {{}}}}',
        f'{{"id": "a", "cells": {{"ours_words": {{{ok}, "tokens": NaN}}}}, {example}, "output": {{}}}}',
        f'{{"id": "a", {example}, "output": {{}}, "usage": {{"pipeline": {{"m": {{"calls": NaN}}}}}}}}',
    ):
        (tmp_path / "r" / "rows.jsonl").write_text(f"{line}\n")
        (tmp_path / "r" / "log.jsonl").write_text('{"key": 1e999, "value": 1e999}\n')
        assert run(tmp_path / "r").manifest["done"]["asked"] == 2
        assert Results.load(tmp_path / "r").complete


@pytest.mark.parametrize(
    "change",
    [{"name": 5}, {"metrics": [5]}, {"metrics": [{"key": "k"}]}, {"examples": "many"}, "[" * 200_000],
)
def test_a_damaged_manifest_is_refused_or_made_anew(change: Any, tmp_path: Path) -> None:
    """Loading says that it is damaged, nested too deep too; the next run writes a right one and asks nothing."""
    run(tmp_path / "r")
    manifest = tmp_path / "r" / "manifest.json"
    changed = (
        change if isinstance(change, str) else json.dumps({**json.loads(manifest.read_text()), **change})
    )
    manifest.write_text(changed)
    with pytest.raises(InvalidInputError, match="damaged"):
        Results.load(tmp_path / "r")
    (tmp_path / "r" / ".lock").unlink()  # many programs copy no hidden files
    assert run(tmp_path / "r").manifest["done"]["asked"] == 0
    assert Results.load(tmp_path / "r").complete


def test_a_manifest_of_a_run_that_ended_nowhere_can_be_loaded(tmp_path: Path) -> None:
    """A run that was killed, or written by hand, may lack what is not read."""
    run(tmp_path / "r")
    manifest = tmp_path / "r" / "manifest.json"
    for metrics in ([{"name": "ours_words"}], None):
        change = {"status": "running", "pipeline": None, "metrics": metrics, "created": "\ud800"}
        manifest.write_text(json.dumps({**json.loads(manifest.read_text()), **change}))
        assert Results.load(tmp_path / "r").complete
        assert run(tmp_path / "r").manifest["done"]["asked"] == 0


def test_a_line_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that no run has written is not read into memory."""
    run(tmp_path / "r")
    monkeypatch.setattr("rag_kit.documents.files.MAX_LINE", 1000)
    (tmp_path / "r" / "rows.jsonl").write_text("x" * 1001)
    for use in (run, Results.load):
        with pytest.raises(InvalidInputError, match="more than 1,000 bytes"):
            use(tmp_path / "r")


def test_what_is_known_outlives_a_disk_that_fills_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run of another pipeline that cannot replace the files leaves what the folder held before, to go on from."""
    from rag_kit.evaluation.runs import rows

    run(tmp_path / "r")
    for fails in ("rows.jsonl", "manifest.json", "log.jsonl"):

        def write(path: Path, write: Any, fails: str = fails, **settings: Any) -> None:
            if path.name == fails:
                raise InvalidInputError("the disk is full")
            write_file(path, write, **settings)

        monkeypatch.setattr(rows, "write_file", write)
        monkeypatch.setattr("rag_kit.evaluation._files.write_file", write)
        with pytest.raises(InvalidInputError, match="full"):
            evaluate(lambda q: "other", EXAMPLES, Words(), out=tmp_path / "r", name=fails, progress=False)
        monkeypatch.undo()
        assert evaluate(lambda q: "", EXAMPLES, Words(), out=tmp_path / "r", name=fails, version="1").complete
        assert run(tmp_path / "r").manifest["done"]["asked"] == 0


class Gone:
    """A terminal that went away."""

    def isatty(self) -> bool:
        """It was one."""
        return True

    def write(self, text: str = "") -> int:
        """Not any more."""
        raise BrokenPipeError("gone")

    flush = write


@pytest.mark.parametrize("kind", ["none", "closed", "gone"])
def test_a_bar_that_nobody_can_see_ends_no_run(
    kind: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A program without a terminal, with a closed one, or one whose reader went away."""
    stream: Any = {"none": None, "gone": Gone()}.get(kind)
    if kind == "closed":
        stream = (tmp_path / "stream").open("w")
        stream.close()
    monkeypatch.setattr("sys.stderr", stream)
    assert run(tmp_path / "r", progress=True).complete
