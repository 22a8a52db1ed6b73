"""What is met by those who evaluate for the first time: a mistake is answered with what to do about it."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pandas as pd
import pytest
from langchain_core.documents import Document

from rag_kit.cli.main import main
from rag_kit.errors import InvalidInputError
from rag_kit.evaluation import EvaluationSet, Example, Results, compare, diagnose, evaluate, write_report
from rag_kit.evaluation.cells import Cell
from rag_kit.evaluation.outputs import Output
from rag_kit.evaluation.runs.rows import Row  # fmt: skip
from rag_kit.evaluation.scorers import get_metric


def results(name: str, **values: float | None) -> Results:
    """Four rows; a metric without a value has no judge."""
    cells = {
        key: Cell.not_applicable("no judge was given") if value is None else Cell.ok(value)
        for key, value in values.items()
    }
    return Results(name, [Row(Example(f"q{n}", "Who?"), Output("It."), cells) for n in range(4)])


def table(path: Path) -> Path:
    """Questions as an office keeps them: its own headings, and the file where the answer stands."""
    with path.open("w", newline="", encoding="utf-8-sig") as file:
        writer = csv.writer(file)
        writer.writerow(["Question", "Solution", "File"])
        writer.writerow(["When does the pump start?", "40 degrees", "pump.md"])
        writer.writerow(["风扇什么时候启动？", "六十度", "风扇.md"])
    return path


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [
        ("faithfullness", "'faithfulness'"), ("NDCG@5", "'ndcg@5'"), ("recal@5", "'recall@5'"), ("ndgc", "'ndcg'"),
        ("context-recall", "'context_recall'"),
    ],
)  # fmt: skip
def test_a_misspelled_metric_is_recognised(wrong: str, meant: str) -> None:
    """The name that was meant comes before the long list of all."""
    with pytest.raises(InvalidInputError, match=f"did you mean {meant}"):
        get_metric(wrong)


def test_a_name_that_is_near_none_is_not_guessed() -> None:
    """No suggestion is better than a wrong one."""
    with pytest.raises(InvalidInputError) as caught:
        get_metric("cost in euros")
    assert "did you mean" not in str(caught.value)


@pytest.mark.filterwarnings("error")
def test_what_evaluate_takes_is_told_with_how_to_make_it() -> None:
    """A called coroutine function, a frame, dicts, and the bare name of a judge: each message says the next step."""

    async def answers(question: str) -> str:
        return question

    frame = pd.DataFrame({"question": ["Who?"]})
    example = [Example("q", "Who?", reference="Ada")]
    metrics = ["ours_answer_found"]
    with pytest.raises(InvalidInputError, match="the function itself, and do not call it"):
        evaluate(answers("Who?"), example, metrics, progress=False)
    for wrong in (frame, [{"question": "Who?"}]):
        with pytest.raises(InvalidInputError, match="give objects of the class Example"):
            evaluate(answers, wrong, metrics, progress=False)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match=r"Judge\(...\)"):
        evaluate(answers, example, metrics, judge="openai:m", progress=False)  # type: ignore[arg-type]


def test_a_reference_is_not_taken_for_a_short_answer_and_that_is_said() -> None:
    """A table's column of answers is read as references: the reason says how to read it as answers."""
    for reference, said in (("Ada", True), (None, False)):
        example = [Example("q", "Who?", reference=reference)]
        run = evaluate(lambda question: "Ada", example, ["ours_answer_found"], progress=False)
        reason = run.rows[0].cells["ours_answer_found"].reason
        assert "the example has no answers" in reason and ("columns={'answers': ...}" in reason) is said


def test_the_table_says_why_a_metric_has_no_value() -> None:
    """A column of dashes comes with its reason, in the terminal and in Jupyter; others are not mentioned."""
    run = results("mine", mrr=0.5, faithfulness=None)
    for shown in (str(run), run._repr_html_()):
        assert "faithfulness without a value: no judge was given" in shown and "mrr without" not in shown


def test_empty_metrics_do_not_bury_a_comparison() -> None:
    """They stand among the scores, and in one note, but not in the tables of differences."""
    shown = str(
        compare([results("a", mrr=0.5, faithfulness=None), results("b", mrr=0.25, faithfulness=None)])
    )
    assert "No pipeline has a value of faithfulness" in shown and "no common questions" not in shown
    below = shown[shown.index("Differences") :]
    assert sum(line.startswith("faithfulness") for line in below.splitlines()) == 0


def test_a_diagnosis_takes_what_was_measured() -> None:
    """Without a judge's metrics those of ids stand in; named ones are taken as named; without any it says so."""
    found = diagnose(
        results("a", answer_correctness=None, ours_answer_found=0.0, **{"recall@5": 1.0}, mrr=1.0)
    )
    assert list(found.metrics.values()) == ["ours_answer_found", "recall@5", "mrr"]
    assert found.counts == {"model": 4}
    named = diagnose(
        results("a", ours_answer_found=0.0, mine=1.0, **{"recall@5": 1.0}, mrr=1.0), answer="mine"
    )
    assert named.metrics["answer"] == "mine"
    with pytest.raises(InvalidInputError, match="no 'answer_correctness'"):
        diagnose(results("a", mrr=1.0))


def test_a_report_of_a_comparison(tmp_path: Path) -> None:
    """What compare gave is enough: the results are in it."""
    comparison = compare([results("a", mrr=0.5), results("b", mrr=0.25)])
    text = write_report(comparison, tmp_path / "report.html").read_text(encoding="utf-8")
    assert ">a<" in text and ">b<" in text


def test_a_folder_is_no_pipeline(tmp_path: Path) -> None:
    """The message names the call that makes one of it."""
    with pytest.raises(InvalidInputError, match="index_retriever"):
        evaluate(str(tmp_path), [Example("q", "Who?")], ["mrr"], progress=False)


def test_a_table_names_the_file_where_the_answer_stands(tmp_path: Path) -> None:
    """A column ``File`` is the gold document: passages of an index carry the name of their file."""
    assert EvaluationSet.load(table(tmp_path / "q.csv"))[0].relevant == {"pump.md": 1}


def test_columns_are_named_on_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """From a table with headings of its own to scores, by ids and by answers."""
    monkeypatch.chdir(tmp_path)
    table(tmp_path / "q.csv")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "pump.md").write_text("# Pump\n\nThe pump starts at 40 degrees.\n", encoding="utf-8")
    (tmp_path / "docs" / "风扇.md").write_text("# 风扇\n\n风扇在六十度时启动，噪音很大。\n", encoding="utf-8")
    assert main(["ingest", "docs", "--index", "index", "--embedding-model", "none", "--quiet"]) == 0
    command = ["evaluate", "q.csv", "--index", "index", "--graph", "plain", "--metric", "mrr"]
    found = [*command, "--metric", "ours_answer_found", "--column", "answers=Solution", "--out", "run"]
    assert main(found) == 0
    summary = Results.load("run").summary()
    assert summary["mrr"].mean == 1.0 and summary["ours_answer_found"].n == 2
    capsys.readouterr()
    assert main([*command, "--column", "answers"]) != 0 and "answers=Solution" in capsys.readouterr().err
    assert main([*command, "--column", "answers=Nowhere"]) != 0 and "'Nowhere'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("header", "row"),
    [
        ("Question,Answer,File", "How long is the warranty?,two years,warranty.md"),
        ("QUESTION, Answer, file name", 'How long is the warranty?, "two years", warranty.md'),
        ("问题,答案,文件", "保修期多长？,two years,warranty.md"),
    ],
)
def test_the_usual_table_needs_no_flags(tmp_path: Path, header: str, row: str) -> None:
    """Its answer is the reference and the text to look for; its file is found by name in every folder."""
    (tmp_path / "q.csv").write_text(f"{header}\n{row}\n", encoding="utf-8")
    (example,) = questions = EvaluationSet.load(tmp_path / "q.csv")
    assert (example.reference, example.answers, example.relevant) == (
        "two years",
        ("two years",),
        {"warranty.md": 1},
    )
    page = Document("It lasts two years.", id="c1", metadata={"file": "sales/2024/warranty.md"})
    asked = {"answer": "two years", "documents": [page]}
    scores = evaluate(
        lambda question: asked, questions, ["mrr", "ours_answer_found"], progress=False
    ).summary()
    assert scores["mrr"].mean == scores["ours_answer_found"].mean == 1.0


def test_a_long_answer_is_no_text_to_look_for(tmp_path: Path) -> None:
    """A paragraph never occurs word for word in an answer; the score would be 0 whatever the pipeline says."""
    long = "The warranty lasts two years from the day of purchase, and three where it was registered."
    (tmp_path / "q.csv").write_text(f'Question,Answer\nHow long?,"{long}"\n', encoding="utf-8")
    (example,) = EvaluationSet.load(tmp_path / "q.csv")
    assert example.reference == long and example.answers == ()


def test_one_column_feeds_two_fields(tmp_path: Path) -> None:
    """Whoever names a column twice gets it twice, as field and as tag too."""
    columns = {"answers": "Solution", "reference": "Solution", "tags": ["File"]}
    found = EvaluationSet.load(table(tmp_path / "q.csv"), columns=columns)[0]
    assert (found.answers, found.reference) == (("40 degrees",), "40 degrees")
    assert found.relevant == {"pump.md": 1} and found.tags == {"File": "pump.md"}


def test_questions_are_written_on_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """From a folder, a file or an index to a set that evaluate takes; nothing kept and caps are said in one line."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs").mkdir()
    text = "The Mizar pump was built in 1912 by Grace Weber. It moves water from the lake to the mill of the town."
    (tmp_path / "docs" / "pump.md").write_text(f"{text} It is the oldest pump of all.", encoding="utf-8")
    zh = "天枢水泵由格蕾丝于1912年建造。它把湖水送到镇上的磨坊，是镇上最古老的一台水泵，每天送水三百吨。"
    (tmp_path / "docs" / "水泵.md").write_text(zh, encoding="utf-8")
    assert main(["ingest", "docs", "--index", "index", "--embedding-model", "none", "--quiet"]) == 0
    for source in (["docs"], ["docs/pump.md"], ["--index", "index"]):
        capsys.readouterr()
        command = ["generate", *source, "--out", "set.jsonl", "-n", "1", "--json"]
        assert main([*command, "--model", "extractive"]) == 0
        assert json.loads(capsys.readouterr().out)["questions"] == 1
        (tmp_path / "set.progress.jsonl").unlink()
        assert len(EvaluationSet.load("set.jsonl")) == 1
    assert main(["evaluate", "set.jsonl", "--index", "index", "--metric", "mrr", "--pipeline", "bm25"]) == 0
    (tmp_path / "dull.md").write_text("so it is and so it was and so it will be, day after day, " * 4)
    capsys.readouterr()
    assert main(["generate", "dull.md", "--out", "dull.jsonl", "--model", "extractive"]) == 1
    assert "No question was kept" in (said := capsys.readouterr().err) and "found no question" in said
    assert main(["generate", "docs", "--out", "cap.jsonl", "--max-calls", "0", "--model", "extractive"]) == 9
    assert main(["generate", "docs", "--out", "set.txt", "--model", "extractive"]) == 2
    assert main(["generate", "nowhere", "--out", "set2.jsonl", "--model", "extractive"]) == 2


def test_documents_beside_the_answer_are_kept_as_fields() -> None:
    """What a graph tells of its passages is text and metadata in a result, not the repr of an object."""
    state = {"answer": "It.", "retrieved": [Document("text", metadata={"file": "a.md"})], "sure": [1, "x"]}
    extra = Output.of({**state, "best": Document("one")}).extra
    assert extra["retrieved"] == [{"text": "text", "metadata": {"file": "a.md"}}]
    assert extra["best"]["text"] == "one" and extra["sure"] == [1, "x"]
