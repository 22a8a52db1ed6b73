"""Labels by people: drawn at random, kept beside the run, and turned into intervals that cover the truth."""

import random
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from rag_kit.cli import exits
from rag_kit.cli.main import main
from rag_kit.documents.files import AppendLog
from rag_kit.errors import InvalidInputError, LockedError
from rag_kit.evaluation import Example, Results, compare, evaluate, write_report
from rag_kit.evaluation.cells import Cell
from rag_kit.evaluation.labelling import label, to_label
from rag_kit.evaluation.metric import Metric
from rag_kit.evaluation.outputs import Output, Passage
from rag_kit.evaluation.reporting.payload import report_payload
from rag_kit.evaluation.runs.rows import Row
from rag_kit.evaluation.statistics import labelled_mean


def make_results(values, name="mine", metric="faithfulness", **fields):
    """Results with these values of one metric."""
    answer = Output("The Rhine is long.", passages=(Passage("a", "The Rhine is 1,230 km long."),))
    rows = [
        Row(Example(f"q{number}", "How long is it?", reference="1,230 km"), answer, {metric: Cell.ok(value)})
        for number, value in enumerate(values)
    ]
    return Results(name, rows, (metric,), **fields)


def draw_values(count, share, right, seed=0):
    """Return the truth of so many answers, and verdicts of a judge that is right on this share of them."""
    numbers = random.Random(seed)
    truth = [float(numbers.random() < share) for _ in range(count)]
    return truth, [value if numbers.random() < right else 1 - value for value in truth]


def label_first(results, truth, n):
    """Label n answers as they are drawn, with the truth."""
    cases = to_label(results, n=n)
    return label(results, {case.id: truth[int(case.id[1:])] for case in cases})


@pytest.mark.parametrize("labels", [10, pytest.param(60, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("share", "right"), [(0.33, 0.5), (0.33, 0.9), (0.05, 0.8), (0.95, 0.95)])
def test_intervals_cover_the_truth(labels, share, right):
    """In at least 93 of 100 draws, whatever the judge is worth, also where nearly all answers are of one kind."""
    numbers, hits, draws = np.random.default_rng(3), 0, 600
    for _ in range(draws):
        truth = (numbers.random(200) < share).astype(float)
        values = np.where(numbers.random(200) < right, truth, 1 - truth)
        found = labelled_mean(dict(enumerate(values.tolist())), dict(enumerate(truth[:labels].tolist())))
        hits += found.low <= share <= found.high
    assert hits / draws >= 0.93


@pytest.mark.parametrize("labels", [10, pytest.param(60, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("changed", "right"), [(0.1, 0.6), (0.4, 0.9), (0.02, 0.5)])
def test_intervals_of_differences_cover_the_truth(labels, changed, right):
    """Make two pipelines of which one is worse on some questions and equal on the rest."""
    numbers, hits, draws = np.random.default_rng(4), 0, 600
    for _ in range(draws):
        first = (numbers.random(200) < 0.6).astype(float)
        second = np.where(numbers.random(200) < changed, 0.0, first)
        wrong = numbers.random((2, 200)) >= right
        values = np.abs(first - wrong[0]) - np.abs(second - wrong[1])
        known = dict(enumerate((first - second)[:labels].tolist()))
        found = labelled_mean(dict(enumerate(values.tolist())), known, of_differences=True)
        hits += found.low <= 0.6 * changed <= found.high
    assert hits / draws >= 0.93


def test_a_good_judge_narrows_the_interval():
    """The judge's values count as much as they help: beside labels alone, a good one narrows, a coin does not widen."""
    widths = {}
    for right in (0.5, 0.97):
        truth, values = draw_values(600, 0.4, right)
        found = labelled_mean(dict(enumerate(values)), dict(enumerate(truth[:60])))
        widths[right] = found.high - found.low
    alone = labelled_mean(dict.fromkeys(range(600), 0.0), dict(enumerate(draw_values(600, 0.4, 1)[0][:60])))
    assert widths[0.97] < 0.75 * widths[0.5] and widths[0.5] < 1.05 * (alone.high - alone.low)


def test_the_estimate_is_that_of_the_paper():
    """By hand: 10 labels of 20 answers, lambda = cov / ((1 + n / N) var)."""
    every = np.array([1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 1.0, 1.0, 1.0, *[1.0, 0.0] * 5])
    truth = np.array([1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 1.0, 1.0])
    values, labels, guess = dict(enumerate(every)), dict(enumerate(truth)), every[:10]
    trust = np.cov(truth, guess)[0, 1] / (2 * every.var(ddof=1))
    expected = trust * every[10:].mean() + (truth - trust * guess).mean()
    assert labelled_mean(values, labels).mean == pytest.approx(expected, abs=1e-12)


def test_scales_without_ends_and_all_labelled():
    """A rubric of 1 to 5, a scale without an end, and labels on every answer."""
    values = dict(enumerate([1.0, 5.0, 3.0, 2.0] * 10))
    all_of_them = labelled_mean(values, values, (1.0, 5.0))
    assert all_of_them.mean == pytest.approx(2.75) and 1 <= all_of_them.low < 2.75 < all_of_them.high <= 5
    no_end = labelled_mean(values, {key: values[key] for key in range(12)}, (0.0, None))
    assert no_end.low < no_end.mean < no_end.high <= 5
    assert labelled_mean(values, {key: values[key] for key in range(9)}) is None
    greatest = dict.fromkeys(range(20), 4.0)  # difference
    found = labelled_mean(greatest, dict.fromkeys(range(10), 4.0), (1.0, 5.0), of_differences=True)
    assert found.low < found.high == 4.0


def test_cases_are_drawn_at_random_and_alike_for_two_runs():
    """Not in the order of the set, not by value; the first ones of a longer draw are those of a shorter one."""
    _, values = draw_values(400, 0.4, 0.8)
    first, second = make_results(values), make_results(values[::-1], "other")
    ids = [case.id for case in to_label(first, n=100)]
    assert ids != sorted(ids, key=lambda key: int(key[1:])) and len(set(ids)) == 100
    assert ids == [case.id for case in to_label(second, n=100)]
    assert ids[:10] == [case.id for case in to_label(first, n=10)]
    drawn = np.mean([values[int(key[1:])] for key in ids])
    assert abs(drawn - np.mean(values)) < 0.15


def test_a_case_shows_what_a_person_needs():
    """Passages, question, reference, answer and claims, not the judge's verdicts; controls are escaped."""
    claims = {
        "replies": [
            {"statements": ["The Rhine is long."]},
            {"statements": [{"statement": "x", "verdict": 0}]},
        ]
    }
    output = Output("It is long.\x1b[2J", passages=(Passage("a", "The Rhine is 1,230 km long."),))
    row = Row(
        Example("q1", "How long?", reference="1,230 km"),
        output,
        {"faithfulness": Cell.ok(0.0, "no", **claims)},
    )
    (case,) = to_label(Results("mine", [row]))
    text = str(case)
    for part in (
        "[1]: The Rhine is 1,230 km long.",
        "Question: How long?",
        "Reference: 1,230 km",
        "1. The Rhine is long.",
    ):
        assert part in text
    assert "verdict" not in text and "\x1b" not in text and "<pre" in case._repr_html_()
    chinese = Row(Example("q1", "莱茵河有多长？"), output, {"faithfulness": Cell.ok(0.0)})
    text = str(to_label(Results("mine", [chinese]))[0])
    assert (
        "问题：莱茵河有多长？" in text and "这些段落是否支持答案中的陈述？" in text and "support" not in text
    )


def test_verdicts_are_read():
    """Numbers, shares and words; whatever else is refused, and then nothing is kept."""
    results = make_results([0.0] * 30)
    label(results, {"q1": True, "q2": "n", "q3": "3/4", "q4": 0.5, "q5": None, "q6": "Y"})
    kept = results.labels.verdicts["faithfulness"]
    assert kept == {"q1": 1.0, "q2": 0.0, "q3": 0.75, "q4": 0.5, "q5": None, "q6": 1.0}
    for wrong in (2, "maybe", -0.1, float("nan"), "1/0", [1]):
        with pytest.raises(InvalidInputError, match=r"verdict on 'q8'.*3/4"):
            label(results, {"q7": 1, "q8": wrong})
    assert "q7" not in kept
    for wrong in ({"q99": 1}, ["q1"]):
        with pytest.raises(InvalidInputError, match="such as 'q0', 'q1'"):
            label(results, wrong)
    with pytest.raises(InvalidInputError, match="no metric 'bleu'"):
        to_label(results, "bleu")
    for wrong in (0, True, 2.5):
        with pytest.raises(InvalidInputError, match=r"n is .*give a number from 1"):
            to_label(results, n=wrong)
    empty = Results("mine", [Row(Example("q1", "?"), Output("x"), {"faithfulness": Cell.undefined("no")})])
    with pytest.raises(InvalidInputError, match="0 answers have a value of faithfulness"):
        to_label(empty)


@pytest.mark.parametrize(("low", "high"), [(None, None), (0.0, None), (None, 1.0)])
def test_a_scale_without_an_end_takes_numbers_only(low, high):
    """Yes, no and shares mean nothing there, and no range is shown; a number within the end there is counts."""
    manifest = {"metrics": [{"name": "seconds", "low": low, "high": high}]}
    results = make_results([0.5] * 3, metric="seconds", manifest=manifest)
    text = str(to_label(results)[0])
    assert "a number; s cannot tell" in text and "300" not in text and "3/4" not in text
    for wrong in ("y", "n", True, False, "3/4", "x", float("inf"), "nan"):
        with pytest.raises(InvalidInputError, match=r"give a number(?!.*(3/4|300))"):
            label(results, {"q1": wrong})
    label(results, {"q1": "0.7", "q2": None})
    assert results.labels.verdicts["seconds"] == {"q1": 0.7, "q2": None}


def test_labels_are_kept_beside_the_run(tmp_path: Path, monkeypatch):
    """Appended, private, taken up again; a line that a kill cut off is left out, one for other answers counted."""
    truth, values = draw_values(80, 0.4, 0.6)
    results = make_results(values)
    results.save(tmp_path / "run")
    for part in (5, 12):
        cases = to_label(tmp_path / "run", n=part)
        label(tmp_path / "run", {case.id: truth[int(case.id[1:])] for case in cases})
    file = tmp_path / "run" / "labels.jsonl"
    assert file.stat().st_mode & 0o777 == 0o600 and len(file.read_text().splitlines()) == 12
    for module in ("scipy", "scipy.special", "scipy.stats"):  # a run with labels is read without the extra
        monkeypatch.setitem(sys.modules, module, None)
    loaded = Results.load(tmp_path / "run")
    assert loaded.labelled("faithfulness").n == 12 and loaded.summary()["faithfulness"].labelled.n == 12
    with file.open("a") as log:
        log.write('{"metric": "faithf')
    assert Results.load(tmp_path / "run").labelled("faithfulness").n == 12
    loaded.save(tmp_path / "copy")
    assert Results.load(tmp_path / "copy").labels.verdicts == loaded.labels.verdicts
    label(tmp_path / "run", {"q1": 1})
    changed = make_results(values)
    changed.rows[0] = Row(changed.rows[0].example, Output("Another answer."), changed.rows[0].cells)
    label(tmp_path / "copy", {"q0": 1})
    changed.save(tmp_path / "copy")
    again = Results.load(tmp_path / "copy")
    assert "q0" not in again.labels.verdicts[
        "faithfulness"
    ] and "1 labels are of answers that have changed" in str(again)
    whole = '{"metric": "faithfulness", "id": "q1", "key": "k", "value": %s}\n{}\n'
    for wrong in (
        '{"metric": 1}\n{}\n{}\n',
        whole % "NaN",
        whole % ("9" * 400),
        whole % '"y"',
        whole % "7",
        (whole % "7")[:-3],
    ):
        (tmp_path / "copy" / "labels.jsonl").write_text(wrong)
        with pytest.raises(InvalidInputError, match=r"labels.jsonl:1 .* label that cell again"):
            Results.load(tmp_path / "copy")


def test_an_older_object_writes_no_old_verdict_over_a_newer_one(tmp_path: Path):
    """Only what was given since it was loaded is written; also by one that was saved there before."""
    first = make_results([0.0] * 12)
    label(first, {"q1": 0, "q2": 0})
    first.save(tmp_path / "run")
    older = Results.load(tmp_path / "run")
    label(tmp_path / "run", {"q1": 1})
    for results, new in ((older, "q3"), (first, "q4")):
        label(results, {new: 1})
        results.save(tmp_path / "run")
        kept = Results.load(tmp_path / "run").labels.verdicts["faithfulness"]
        assert (kept["q1"], kept["q2"], kept[new]) == (1.0, 0.0, 1.0)
    older.save(tmp_path / "copy")
    assert Results.load(tmp_path / "copy").labels == older.labels


def test_a_lock_is_waited_for(tmp_path: Path, monkeypatch):
    """A verdict is not lost because somebody else writes one at the moment; for ever nobody waits."""
    make_results([0.0] * 12).save(tmp_path / "run")
    other = AppendLog(tmp_path / "run" / "labels.jsonl")
    timer = threading.Timer(0.3, other.close)
    timer.start()
    label(tmp_path / "run", {"q1": 1})
    timer.join()
    assert Results.load(tmp_path / "run").labels.verdicts == {"faithfulness": {"q1": 1.0}}
    monkeypatch.setattr("rag_kit.evaluation.runs.labels._WAIT", 0.05)
    with AppendLog(tmp_path / "run" / "labels.jsonl"), pytest.raises(LockedError):
        label(tmp_path / "run", {"q2": 1})


class Weak(Metric):
    """A metric that says no to nearly everything."""

    name, source, stage = "weak", "ours", "generation"

    async def score(self, example, output, judge):
        """0 for nine of ten."""
        return Cell.ok(float(example.id.endswith("0")))


def test_a_run_goes_on_with_its_labels(tmp_path: Path):
    """``evaluate`` gives them with the results; the answers are the same, so that they still fit."""
    examples = [Example(f"q{number}", "What?") for number in range(40)]
    evaluate(lambda question: "It.", examples, [Weak()], out=tmp_path / "run", progress=False)
    cases = to_label(tmp_path / "run", "weak", n=20)
    label(tmp_path / "run", {case.id: True for case in cases}, "weak")
    again = evaluate(lambda question: "It.", examples, [Weak()], out=tmp_path / "run", progress=False)
    assert again.labelled("weak").n == 20 and "weak: measured 0.100; with 20 labels" in str(again)


def test_where_no_judge_was_asked_the_metric_is_named(tmp_path: Path, monkeypatch, capsys):
    """No rank metric is labelled by default; what was measured without a judge is not called a judge's."""
    examples = [Example(f"q{number}", "What?") for number in range(40)]
    other = evaluate(lambda question: "It.", examples, [Weak()], name="other", progress=False)
    run = evaluate(lambda question: "It.", examples, [Weak()], out=tmp_path / "run", progress=False)
    assert main(["label", str(tmp_path / "run")]) == exits.USAGE
    assert "no metric of 'pipeline' asks a judge; name the one to label: weak" in capsys.readouterr().err
    monkeypatch.setattr("builtins.input", lambda prompt="": "y")
    assert main(["label", str(tmp_path / "run"), "--metric", "weak", "-n", "12"]) == 0
    assert "weak: measured 0.100; with 12 labels" in capsys.readouterr().out
    for results in (run, other):
        label(results, dict.fromkeys([case.id for case in to_label(results, "weak", n=12)], 1), "weak")
    shown = str(compare(run, other))
    assert "weak of other: measured 0.100; with 12" in shown and "judge" not in shown
    assert "pipeline minus other: measured +0.000; with 12" in shown


def test_tables_say_judge_and_labels():
    """The printed results, the comparison and the report's data: the judge's mean, and what labels make of it."""
    truth, values = draw_values(300, 0.33, 0.6)
    worse, worse_values = draw_values(300, 0.2, 0.6, seed=1)
    first, second = make_results(values, "first"), make_results(worse_values, "second")
    label_first(first, truth, 60)
    assert compare(first, second).pairs[0].labelled is None
    label_first(second, worse, 40)
    found = first.labelled("faithfulness")
    assert (
        f"judge {np.mean(values):.3f}; with 60 labels {found.mean:.3f} [{found.low:.3f}, {found.high:.3f}]"
        in str(first)
    )
    both = compare(first, second)
    pair = both.pairs[0].labelled
    assert pair.n == 40 and pair.low < np.mean(truth) - np.mean(worse) < pair.high
    assert f"first minus second: judge {both.pairs[0].difference:+.3f}; with 40 labels" in str(both)
    wider = compare(first, second, level=0.99).score("first", "faithfulness").labelled
    assert wider.high - wider.low > found.high - found.low
    assert both.to_json()["table"][0]["labelled"]["n"] == 60
    payload = report_payload({"first": first, "second": second}, both, {})
    assert payload["metrics"][0]["summary"][0]["labelled"]["n"] == 60
    assert payload["comparison"]["pairs"][0]["labelled"]["n"] == 40


def test_notes_say_what_labels_do_not(tmp_path: Path):
    """Too few, chosen by hand, or left open: said beside the interval."""
    results = make_results([0.0] * 40)
    label_first(results, [1.0] * 40, 4)
    assert "4 labels, and from 10 on an interval" in str(results)
    label(results, {f"q{number}": 1 for number in range(30)})
    assert "holds if the labels are a random sample" in str(results)
    results = make_results([0.0] * 40)
    label(results, {case.id: None if place < 3 else 1 for place, case in enumerate(to_label(results, n=20))})
    assert "the 3 of which people could not tell" in str(results) and "random sample" not in str(results)
    write_report(results, tmp_path / "report.html")


def test_comparisons_say_what_labels_do_not():
    """Labels chosen by hand, and answers left open, of a run and of a pair; a random sample needs no word."""
    hint, left_open = "holds if the labels are a random sample", "the 3 of which people could not tell"
    first, second = make_results([0.0, 1.0] * 20, "first"), make_results([0.0] * 40, "second")
    for results in (first, second):
        label_first(results, [1.0] * 40, 15)
    assert "with 15 labels" in str(compare(first, second)) and hint not in str(compare(first, second))
    label(second, {case.id: None for case in to_label(second, n=18)})
    label(first, {case.id: 1 for case in to_label(first, n=18)})
    assert str(compare(first, second)).count(left_open) == 2
    label(first, {f"q{number}": 1 for number in range(30)})
    shown = str(compare(first, second)).splitlines()
    assert [line.split(":")[0] for line in shown if hint in line] == ["faithfulness of first"]
    label(second, {f"q{number}": 1 for number in range(30)})
    assert str(compare(first, second)).count(hint) == 3


def test_the_command_asks_one_after_the_other(tmp_path: Path, monkeypatch, capsys):
    """An unreadable verdict is asked again; q stops; the same command goes on; each verdict is kept at once."""
    make_results([0.0] * 40).save(tmp_path / "run")
    answers = iter(["y", "maybe", "n", "3/4", "q"])
    monkeypatch.setattr("builtins.input", lambda prompt="": next(answers))
    assert main(["label", str(tmp_path / "run"), "-n", "12"]) == 0
    shown = capsys.readouterr()
    assert "1 / 12" in shown.out and "do the passages support" in shown.out and "maybe" in shown.err
    assert sorted(Results.load(tmp_path / "run").labels.verdicts["faithfulness"].values()) == [0.0, 0.75, 1.0]
    monkeypatch.setattr("builtins.input", lambda prompt="": "y")
    assert main(["label", str(tmp_path / "run"), "-n", "12"]) == 0
    shown = capsys.readouterr().out
    assert "9 / 9" in shown and "with 12 labels" in shown
    assert main(["label", str(tmp_path / "run"), "-n", "12"]) == 0
    assert "already" in capsys.readouterr().err


def test_the_command_speaks_the_language_of_the_questions(tmp_path: Path, monkeypatch, capsys):
    """How to stop, what cannot be read and that all is labelled are said in Chinese where the questions are."""
    rows = [
        Row(Example(f"q{number}", "莱茵河有多长？"), Output("很长。"), {"faithfulness": Cell.ok(0.0)})
        for number in range(4)
    ]
    Results("mine", rows).save(tmp_path / "run")
    answers = iter(["Ｙ", "也许", "否", "q"])
    monkeypatch.setattr("builtins.input", lambda prompt="": next(answers))
    assert main(["label", str(tmp_path / "run"), "-n", "2"]) == 0
    said = capsys.readouterr().err
    assert "输入 q 结束" in said and "对 'q" in said and "'也许'，读不懂；请输入：y 是，全部" in said
    assert "verdict" not in said and "kept" not in said
    assert main(["label", str(tmp_path / "run"), "-n", "2"]) == 0
    assert "已标注 2 条" in capsys.readouterr().err


def test_the_command_ends_where_the_input_does(tmp_path: Path, monkeypatch):
    """A pipe that ends is no error; a folder without results is one."""

    def end(prompt=""):
        raise EOFError

    make_results([0.0] * 12).save(tmp_path / "run")
    monkeypatch.setattr("builtins.input", end)
    assert main(["label", str(tmp_path / "run")]) == 0
    assert main(["label", str(tmp_path / "none")]) != 0
