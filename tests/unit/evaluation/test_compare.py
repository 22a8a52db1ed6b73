"""Comparing runs: pairing, coverage, corrections, complementarity, slices, costs, and what is refused."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from support.compared import FIRST, SECOND, A, B, four_rows

from rag_kit.errors import InvalidInputError
from rag_kit.evaluation import EvaluationSet, Example, Results, compare, diagnose
from rag_kit.evaluation.cells import Cell, Summary
from rag_kit.evaluation.outputs import Output
from rag_kit.evaluation.runs.rows import Row

HOSTILE = '<script>alert("x")</script>\x1b[31m\u202e$\\frac{1}{0}$'


def cell(value: float | str | Cell | None) -> Cell | None:
    """A number is an ok cell, a text the reason of an error."""
    if value is None or isinstance(value, Cell):
        return value
    return Cell.error(value) if isinstance(value, str) else Cell.ok(value)


def run(
    name: str, *, examples: list[Example] | None = None, seconds: float = 1.0, **metrics: list
) -> Results:
    """Results with these values, question by question."""
    count = len(next(iter(metrics.values())))
    examples = examples or [Example(f"q{i}", f"What is {i}?") for i in range(count)]
    rows = []
    for number, example in enumerate(examples):
        cells = {metric: cell(values[number]) for metric, values in metrics.items()}
        output = Output(answer="It.", seconds=seconds + number / 100, calls=2, tokens=100)
        rows.append(Row(example, output, {k: v for k, v in cells.items() if v is not None}))
    return Results(name, rows, tuple(metrics))


def test_the_worked_figures() -> None:
    """The paired figures come out of `compare` as they do by hand."""
    found = compare([run("a", faithfulness=A), run("b", faithfulness=B)])
    pair = found.pair("a", "b", "faithfulness")
    assert pair.difference == pytest.approx(0.10625)
    assert (pair.low, pair.high) == (pytest.approx(0.05), pytest.approx(0.1625))
    assert (pair.p, pair.p_adjusted) == (0.03125, 0.03125)
    assert (pair.n, pair.wins, pair.losses, pair.better) == (8, 6, 0, "a")
    assert pair.hits is None


@pytest.mark.slow
def test_the_worked_figures_of_hits() -> None:
    """McNemar p 1, oracle union 0.8; of hits both tests are one test."""
    found = compare([run("x", hit=FIRST), run("y", hit=SECOND)])
    pair = found.pairs[0]
    assert pair.hits == {"pipeline": 6, "other": 6, "only_pipeline": 2, "only_other": 2}
    assert (pair.mcnemar_p, pair.p, found.tests) == (1.0, 1.0, 1)
    item = found.complementarity["hit"]
    assert (item.union, item.best_single, item.n) == (0.8, 0.6, 10)
    assert item.only == {"x": ("q1", "q8"), "y": ("q3", "q6")}
    assert item.nobody == ("q4", "q9")
    assert [(step.gain, step.share) for step in item.greedy] == [(6, 0.6), (2, 0.8)]


def test_only_questions_with_both_values_are_paired() -> None:
    """A failed, undefined or missing cell takes its question out of the pair; the count says so."""
    first = run("a", m=[0.5, "time-out", 1.0, Cell.undefined("nothing said"), 0.5])
    second = run("b", m=[0.25, 0.0, 0.5, 0.0, None])
    found = compare([first, second])
    pair = found.pairs[0]
    assert (pair.n, pair.difference) == (2, pytest.approx(0.375))
    score = found.score("a", "m")
    assert (score.n, score.errors, score.undefined, score.missing, score.total) == (3, 1, 1, 0, 5)
    assert score.coverage == pytest.approx(0.6)
    assert found.score("b", "m").missing == 1
    assert found.score("b", "m").mean == pytest.approx(0.1875)


def test_no_common_question_is_no_difference() -> None:
    """There is no number and no test when no question has both values."""
    found = compare([run("a", m=[1.0, "failed"]), run("b", m=["failed", 1.0])])
    pair = found.pairs[0]
    assert (pair.n, pair.difference, pair.low, pair.p, pair.p_adjusted, pair.better) == (0, *[None] * 5)
    assert found.tests == 0
    assert found.complementarity["m"].union is None
    assert "no question scored by both" in str(found)


def test_a_run_has_one_interval_alone_and_compared() -> None:
    """Also where some questions have no value: the same seed gives the same number, to the last digit."""
    values: list[float | str] = [number % 7 / 7 for number in range(40)]
    values[3] = values[11] = "no reply"
    runs = [run("a", m=values), run("b", m=values[::-1])]
    found = compare(runs)
    for each in runs:
        summary, score = each.summary()["m"], found.score(each.name, "m")
        assert summary.n == 38 and (summary.low, summary.high) == (score.low, score.high)


def test_one_question_is_a_difference_without_an_interval() -> None:
    """A single question shows which is higher; no interval, and a test that says nothing."""
    pair = compare([run("a", m=[1.0]), run("b", m=[0.5])]).pairs[0]
    assert (pair.n, pair.difference, pair.low, pair.p, pair.better) == (1, 0.5, None, 1.0, None)


def test_every_test_is_corrected_for() -> None:
    """Three pipelines and two metrics are six tests; with a baseline four."""
    runs = [run(name, m=[v * k for v in A], hit=FIRST[:8]) for name, k in (("a", 1), ("b", 0.9), ("c", 0.8))]
    everything = compare(runs)
    assert (len(everything.pairs), everything.tests) == (6, 6)
    smallest = min(pair.p for pair in everything.pairs)
    assert min(pair.p_adjusted for pair in everything.pairs) == pytest.approx(6 * smallest)
    against = compare(runs, baseline="b")
    assert [(pair.pipeline, pair.other) for pair in against.pairs[:2]] == [("a", "b"), ("c", "b")]
    assert against.tests == 4
    assert against.pairs[1].difference < 0


def test_a_threshold_makes_hits_of_a_graded_metric() -> None:
    """With a threshold McNemar's test is one more test of the family."""
    runs = [run("a", m=A), run("b", m=B)]
    found = compare(runs, thresholds={"m": 0.75})
    pair = found.pairs[0]
    assert pair.hits == {"pipeline": 6, "other": 2, "only_pipeline": 4, "only_other": 0}
    assert pair.mcnemar_p == pytest.approx(0.125)
    assert (found.tests, pair.p_adjusted) == (2, 0.0625)
    assert pair.better is None
    assert compare(runs).complementarity["m"].threshold == 0.5


def test_less_is_better_where_the_metric_says_so() -> None:
    """The smaller mean of noise sensitivity is the better one, and a question passes up to the threshold."""
    low, high = run("low", noise=[0.1] * 8), run("high", noise=[0.9] * 8)
    low.manifest["metrics"] = [{"name": "noise", "higher_is_better": False}]
    found = compare([low, high])
    pair = found.pairs[0]
    assert (pair.better, pair.wins, pair.losses) == ("low", 8, 0)
    assert found.complementarity["noise"].got["low"] == tuple(f"q{i}" for i in range(8))
    assert found.complementarity["noise"].got["high"] == ()
    assert "Less is better: noise" in str(found)


def test_the_greedy_set_adds_what_is_new() -> None:
    """The best one first, then the one that adds most, though another has more hits of its own; then stop."""
    found = compare(
        [
            run("best", hit=[1, 1, 1, 1, 0, 0, 0]),
            run("twin", hit=[1, 1, 1, 0, 0, 0, 0]),
            run("other", hit=[0, 0, 0, 0, 1, 1, 0]),
        ]
    )
    item = found.complementarity["hit"]
    assert [(step.pipeline, step.gain) for step in item.greedy] == [("best", 4), ("other", 2)]
    assert item.greedy[-1].share == item.union == pytest.approx(6 / 7)
    assert item.combine() == ["best", "other"]
    assert item.only == {"best": ("q3",), "twin": (), "other": ("q4", "q5")}


def test_a_tie_of_the_greedy_set_goes_to_the_quicker_one() -> None:
    """Two that add as much: the one with the lower p50 is taken."""
    slow, quick = run("slow", hit=[1, 0], seconds=3.0), run("quick", hit=[0, 1], seconds=0.1)
    assert compare([slow, quick]).complementarity["hit"].greedy[0].pipeline == "quick"


def test_a_comparison_of_chinese_questions_is_printed_in_chinese() -> None:
    """Titles, columns, notes and limits; numbers, names of parts and code stay, and English is one call away."""
    examples = [Example(f"q{i}", f"第{i}台水泵的价格是多少？", tags={"topic": str(i % 2)}) for i in range(12)]
    first, second = ([n % 2 for n in range(12)], [n % 3 == 0 for n in range(12)])
    made = [
        run(name, examples=examples, hit=[float(value) for value in values], faithfulness=["down"] * 12)
        for name, values in (("甲", first), ("乙", second))
    ]
    made[0].labels.verdicts["hit"] = {f"q{i}": 1.0 for i in range(11)} | {"q11": None}
    found = compare(made, baseline="乙", slices="topic")
    shown = f"{found}\n{found.slices_table().text()}"
    left = re.findall(r"[A-Za-z]{2,}(?: [A-Za-z]{2,})+", shown)  # two English words or more in a row
    assert set(left) <= {"kit compare", "kit label", "slice TAG"}, left
    for word in (
        "2 个流程",
        "流程",
        "均值",
        "95% 区间",
        "不显著",
        "有值 / 总数",
        "校正",
        "人工标注",
        "无法判断",
    ):
        assert word in shown
    assert "pipelines" not in found._repr_html_()
    assert found.in_language("en").slices_table().header[2] == "metric"
    assert str(found.in_language("en")).startswith("2 pipelines on 12 questions, against 乙")
    with pytest.raises(InvalidInputError, match="language is 'de'"):
        found.in_language("de")  # type: ignore[arg-type]


def test_slices_by_language_type_and_tag() -> None:
    """Parts hold their own questions; few questions get no interval; a tag of one's own is taken."""
    examples = [
        *(Example(f"e{i}", "Who wrote the book?", tags={"type": "fact", "topic": "art"}) for i in range(6)),
        *(Example(f"z{i}", "这本书的作者是谁，他在哪一年写完了它？") for i in range(2)),
    ]
    one = run("a", examples=examples, m=[1.0] * 6 + [0.0] * 2)
    two = run("b", examples=examples, m=[0.5] * 8)
    found = compare([one, two], slices=("language", "type", "topic"))
    rows = {(row.by, row.value, row.pipeline): row for row in found.slices}
    assert rows["language", "en", "a"].mean == 1.0
    assert (rows["language", "zh", "a"].mean, rows["language", "zh", "a"].total) == (0.0, 2)
    assert rows["language", "zh", "a"].low is None
    assert rows["language", "en", "b"].low == 0.5
    assert rows["type", "(not said)", "b"].n == 2
    assert rows["topic", "art", "a"].n == 6
    for by in ("language", "type", "topic"):
        assert sum(row.total for row in found.slices if row.by == by and row.pipeline == "a") == 8
    chinese = found.in_language("zh")
    assert "（未注明）" in chinese.slices_table().text() and "(not said)" not in chinese.slices_table().text()
    assert {row[0] for row in chinese.slices_table().rows} == {"语言", "类型", "topic"}
    assert "<summary>按 语言, 类型, topic 分组</summary>" in chinese._repr_html_()


def test_a_chinese_table_is_parted_by_its_column_of_types() -> None:
    """Add it to the parts that are built in, where some question has it."""
    examples = [Example(f"q{i}", "谁写的？", tags={"类型": "甲" if i % 2 else "乙"}) for i in range(8)]
    found = compare([run(name, examples=examples, m=A) for name in "ab"])
    assert found.sliced_by == ("type", "类型", "language")
    assert {row[0] for row in found.slices_table().rows} == {"类型"}


def test_notes_of_a_run_are_chinese_too() -> None:
    """The name of the run stands before a note of the kit, and is no part of it."""
    one = run("a", m=A)
    one.manifest["missing_gold"] = {"gone.md": ["q1"]}
    chinese = str(compare([one, run("b", m=B)]).in_language("zh"))
    assert "\na：有 1 个标准编号或原文片段不在所检索的文档中：gone.md (q1)。\n" in chinese


def test_slices_by_turn_of_a_conversation() -> None:
    """By default where questions have a history, from 1; a tag of that name counts first; without any it is refused."""
    turns = [{"question": "Who?", "answer": "Ada."}, {"question": "When?", "answer": "1912."}]
    examples = [Example(f"q{n}", "Why?", history=tuple(turns[: n % 3])) for n in range(6)]
    runs = [run("a", examples=examples, mrr=[1, 0.5, 0, 1, 0.5, 0]), run("b", examples=examples, mrr=[0] * 6)]
    parts = {
        part.value: part.mean for part in compare(runs).slices if (part.by, part.pipeline) == ("turn", "a")
    }
    assert parts == {"1": 1.0, "2": 0.5, "3": 0.0}
    frame = runs[0].to_pandas()
    assert frame.groupby("turn").mrr.mean().to_dict() == {1: 1.0, 2: 0.5, 3: 0.0}
    plain = [run("a", mrr=[1, 0]), run("b", mrr=[0, 1])]
    assert "turn" not in {part.by for part in compare(plain).slices} and "turn" not in plain[0].to_pandas()
    with pytest.raises(InvalidInputError, match="no example has the tag 'turn'"):
        compare(plain, slices="turn")
    tagged = [Example(f"q{n}", "Why?", tags={"turn": "last"}) for n in range(2)]
    named = compare(
        [run("a", examples=tagged, mrr=[1, 0]), run("b", examples=tagged, mrr=[1, 0])], slices=["turn"]
    )
    assert {part.value for part in named.slices} == {"last"}


def test_costs_stand_beside_scores() -> None:
    """Latency, calls, tokens and money a question; an unknown price is none, not zero."""
    runs = [run("a", m=A), run("b", m=B, seconds=2.0)]
    score = compare(runs).score("a", "m")
    assert (score.p50_seconds, score.calls, score.tokens, score.money) == (pytest.approx(1.035), 2, 100, None)
    assert compare(runs, prices=10.0).score("b", "m").money == pytest.approx(0.001)


def test_a_run_that_is_not_done_is_compared_on_what_is_there() -> None:
    """Questions that one run has not come to are missing, said so, and in no pair."""
    whole = run("whole", m=A)
    part = Results("part", run("part", m=B).rows[:5], ("m",), total=8)
    found = compare([whole, part])
    assert found.pairs[0].n == 5
    assert (found.score("part", "m").missing, found.questions) == (3, 8)
    assert any("part: 3 of 8 questions have not been asked" in note for note in found.notes)


def test_another_judge_is_said() -> None:
    """Two judges make a note that stands in every view."""
    one, two = run("a", m=A), run("b", m=B)
    one.manifest["judge"], two.manifest["judge"] = {"model": "x"}, {"model": "y"}
    assert "different judges" in str(compare([one, two]))


def test_names_of_ones_own_and_folders(tmp_path: Path) -> None:
    """A mapping names the runs; a folder is loaded."""
    run("same", m=A).save(tmp_path / "one")
    found = compare({"before": tmp_path / "one", "after": run("same", m=B)})
    assert found.pipelines == ("before", "after")
    assert repr(found) == "<Comparison of 2 pipelines on 8 questions>"
    assert compare(run("one", m=A), run("two", m=B)).pipelines == ("one", "two")


@pytest.mark.parametrize(
    ("results", "message"),
    [
        ([run("a", m=A)], "at least two"),
        (run("a", m=A), "list of at least two"),
        ([run("a", m=A), 7], "7 was given"),
        ([run("a", m=A), run("a", m=B)], "NAME=FOLDER"),
        ({"": run("a", m=A), "b": run("b", m=B)}, "not blank"),
        ([run("a", m=A), Results("b", [], ("m",))], "have rows"),
        ([run("a", m=A), run("b", other=B)], "no metric in common"),
    ],
)
def test_what_is_no_comparison(results: object, message: str) -> None:
    """Fewer than two, something else, one name twice, nothing in common: each refused with what to do."""
    with pytest.raises(InvalidInputError, match=message):
        compare(results)  # type: ignore[arg-type]


def test_different_sets_are_refused() -> None:
    """Other ids, another question or another gold under the same id: no comparison, and the message says which."""
    base = run("a", m=[1.0, 0.0])
    others = {
        "no question in common": [Example("x1", "Who?"), Example("x2", "When?")],
        "question 'What is 0\\?'": [Example("q0", "Something else?"), Example("q1", "What is 1?")],
        "reference None": [Example("q0", "What is 0?", reference="Zero."), Example("q1", "What is 1?")],
    }
    for message, examples in others.items():
        with pytest.raises(InvalidInputError, match=message):
            compare([base, run("b", examples=examples, m=[1.0, 1.0])])
    few = [Example("q0", "What is 0?"), *(Example(f"x{n}", "When?") for n in range(7))]
    with pytest.raises(InvalidInputError, match="have 1 question in common, of 8"):
        compare([run("a", m=A), run("b", examples=few, m=B)])


@pytest.mark.parametrize(("replaced", "shared"), [(2, "Only 6 of 10"), (4, "Only 4 of 12"), (0, "")])
def test_an_edited_set_is_compared_on_what_is_shared(replaced: int, shared: str) -> None:
    """A set with some other questions, or a part of it: half of the questions are enough, and the first note counts."""
    kept = [Example(f"q{n}", f"What is {n}?") for n in range(8 - replaced)]
    examples = [*kept, *(Example(f"x{n}", "When?") for n in range(replaced))]
    found = compare([run("a", m=A), run("b", examples=examples, m=B)])
    assert found.pairs[0].n == 8 - replaced
    assert found.notes[0].startswith(shared) if shared else not found.notes
    if shared:
        chinese = str(found.in_language("zh"))
        assert f"只有 {8 - replaced} 个是共有的" in chinese


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"baseline": "c"}, "baseline 'c'"),
        ({"metrics": ["nothing"]}, "no result has the metric 'nothing'"),
        ({"level": 1}, "between 0 and 1"),
        ({"slices": "colour"}, "tag 'colour'"),
        ({"thresholds": {"x": 1}}, "thresholds has 'x'"),
    ],
)
def test_settings_that_there_are_not(options: dict, message: str) -> None:
    """Each wrong setting is refused by name, with what is allowed."""
    with pytest.raises(InvalidInputError, match=message):
        compare([run("a", m=A), run("b", m=B)], **options)


def test_json_and_frames_hold_everything() -> None:
    """Plain JSON without nan; four frames."""
    found = compare([run("a", m=A, hit=FIRST[:8]), run("b", m=B, hit=["x", *SECOND[1:8]])])
    record = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert record["pairs"][0]["n"] == 8
    assert record["table"][0]["coverage"] == 1.0
    assert list(record["table"][0]) == [
        "pipeline", "metric", "mean", "low", "high", "n", "total", "undefined", "errors", "not_applicable", "missing",
        "labelled", "p50_seconds", "p95_seconds", "calls", "tokens", "money", "coverage",
    ]  # fmt: skip
    assert all(isinstance(score, Summary) for score in found.table)
    assert len(found.to_pandas()) == 4
    assert list(found.to_pandas("pairs")["metric"]) == ["m", "hit"]
    assert len(found.to_pandas("slices")) == len(found.slices)
    assert set(found.to_pandas("complementarity")["pipeline"]) == {"a", "b"}
    with pytest.raises(InvalidInputError, match="no table"):
        found.to_pandas("all")  # type: ignore[arg-type]


def test_hostile_names_stay_text() -> None:
    """In the terminal and in Jupyter no table obeys a name: comparisons, results, diagnoses, sets."""
    examples = [Example(f"q{i}", HOSTILE, tags={"type": HOSTILE + str(i % 2)}) for i in range(8)]
    runs = [
        Results(HOSTILE, run("a", examples=examples, **{HOSTILE: A}).rows, (HOSTILE,)),
        run("b", examples=examples, **{HOSTILE: B}),
    ]
    found = compare(runs, baseline=HOSTILE)
    diagnosis = diagnose(runs[0], answer=HOSTILE, recall=HOSTILE, precision=HOSTILE)
    for shown in (found, *runs, diagnosis, EvaluationSet(HOSTILE, examples)):
        text, page = str(shown), shown._repr_html_()
        assert "\x1b" not in text + page and "\u202e" not in text + page
        assert "<script" not in page and "&lt;script" in page and "mathjax_ignore" in page


def test_slices_are_named_in_the_text_and_folded_in_jupyter() -> None:
    """The longest table does not bury the others: text says where it is, Jupyter folds it."""
    examples = [Example(f"q{i}", "What?", tags={"topic": f"topic-{i % 2}"}) for i in range(8)]
    found = compare([run("a", examples=examples, m=A), run("b", examples=examples, m=B)], slices=("topic",))
    text, page = str(found), found._repr_html_()
    assert "topic-1" not in text and "By topic: .slices" in text and ".slices" in text.splitlines()[-1]
    before, folded = page.split("<summary>By topic</summary>")
    assert "topic-1" in folded.split("</details>")[0] and "topic-1" not in before
    assert "Scores" in before and "Differences" in before
    alone = compare([run("a", examples=examples, m=A), run("b", examples=examples, m=B)], slices=())
    assert ".slices" not in str(alone) and "<details>" not in alone._repr_html_()


def test_long_tables_are_cut_in_the_terminal_not_in_the_data() -> None:
    """Twenty pipelines have 190 pairs: sixty are printed, all are there."""
    found = compare([run(f"p{k}", hit=[(i * k) % 3 % 2 for i in range(6)]) for k in range(20)])
    assert len(found.pairs) == 190
    assert "... and 130 more rows" in str(found)


def test_empty_metrics_do_not_bury_a_comparison() -> None:
    """They stand among the scores, and in one note, but not in the tables of differences."""
    shown = str(
        compare(four_rows("a", mrr=0.5, faithfulness=None), four_rows("b", mrr=0.25, faithfulness=None))
    )
    assert "No pipeline has a value of faithfulness" in shown and "no question scored by both" not in shown
    below = shown[shown.index("Differences") :]
    assert sum(line.startswith("faithfulness") for line in below.splitlines()) == 0
