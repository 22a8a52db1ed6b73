"""The search for settings: what it finds, caps, sittings, kills, makers that fail or hang."""

import asyncio
import copy
import json
import os
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.blocking import blockbuster_ctx
from support.cancelling import cancel_at
from support.tuning import SPACE, Told, Wrong, make, questions, value

from rag_kit.errors import ConfigurationError, InvalidInputError, MissingExtraError
from rag_kit.evaluation import Example, Results, atune, tune
from rag_kit.evaluation.outputs import Output


def search(out, make_pipeline=make, **given):
    """A search with small defaults."""
    settings = {"space": SPACE, "n_trials": 12, "progress": False, "max_concurrency": 4, **given}
    dataset, metric = settings.pop("dataset", questions()), settings.pop("metric", Told())
    return tune(make_pipeline, dataset, metric, out=out, **settings)


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """One search that several tests look at, and its folder."""
    folder = tmp_path_factory.mktemp("found")
    return search(folder, n_trials=20), folder


def test_the_winner_is_the_best_of_those_finished_and_beats_the_default(found):
    """The search reports the pipelines' true scores."""
    result, _ = found
    assert result.best["kind"] == "good"
    assert result.best_trial.value == max(t.value for t in result.trials if t.state == "complete")
    assert result.trials[0].settings == result.default == {"kind": "plain", "x": 0.1, "n": 1}
    for trial in result.trials:
        for question, score in trial.scores.items():
            assert score == value(trial.settings, f"Question {int(question[1:])}?")
    held = result.set_aside
    expected = [
        value(result.best, f"Question {n}?") - value(result.default, f"Question {n}?")
        for n in range(60)
        if f"q{n:03}" not in result.trials[0].scores
    ]
    pair = held.pair("best", "default", "ours_told")
    assert pair.n == held.questions == len(expected) == 18
    assert pair.difference == pytest.approx(statistics.fmean(expected))
    assert pair.better == "best"
    assert result.verdict.startswith("The best setting is better: +0.")
    worse = replace(pair, better="default", difference=-0.2, low=-0.3, high=-0.1)
    turned = copy.copy(result)
    vars(turned)["set_aside"] = SimpleNamespace(pairs=[worse])
    assert turned.verdict.startswith("The best setting of the search is worse: -0.200")
    turned = turned.in_language("zh")
    assert turned.verdict.startswith(
        "搜索中最好的设置反而更差：在留出的 18 个问题上，ours_told 与默认设置相差 -0.200"
    )
    shown = str(turned)
    assert "结束原因：n_trials=20；20 个设置" in shown and "状态" in shown and "提前放弃" in shown
    assert not re.search(r"[a-z]{3,} [a-z]{3,}", shown)
    older = replace(result)
    vars(older)["setup"] = {name: value for name, value in result.setup.items() if name != "language"}
    assert "n_trials=20; 20 settings" in str(older)  # a search of before keeps no language


def test_bad_settings_are_given_up_early_and_good_ones_are_not(found):
    """Pruned settings are the bad ones, and were asked less."""
    result, _ = found
    pruned = [trial for trial in result.trials if trial.state == "pruned"]
    assert pruned
    assert all(trial.asked < 42 and "worse than the best setting" in trial.reason for trial in pruned)
    assert all(trial.asked == 42 for trial in result.trials if trial.state == "complete")
    assert any(trial.settings["kind"] == "bad" for trial in pruned)
    assert all(trial.state == "pruned" for trial in result.trials if trial.settings["kind"] == "bad")


def test_no_setting_sees_a_question_set_aside(found):
    """The questions of the two parts are apart, and only winner and default are asked the second."""
    _, folder = found
    asked = {
        part: [Results.load(path) for path in folder.glob(f"*-{part}")] for part in ("search", "set_aside")
    }
    searched, held = ({row.example.id for run in runs for row in run.rows} for runs in asked.values())
    assert len(searched) == 42 and len(held) == 18 and not searched & held
    assert (len(asked["search"]), len(asked["set_aside"])) == (20, 2)


def test_an_unchanged_search_asks_nothing(found, tmp_path):
    """The same call with the same folder gives the same result, and neither asks nor writes."""
    result, folder = found
    before = {path: path.read_bytes() for path in folder.rglob("*.*") if path.is_file()}
    again = search(folder, n_trials=20)
    assert {path: path.read_bytes() for path in folder.rglob("*.*") if path.is_file()} == before
    assert (again.best, again.verdict) == (result.best, result.verdict)

    def never(settings):
        raise AssertionError("a pipeline is made again")

    shutil.copytree(folder, tmp_path / "copy")
    assert search(tmp_path / "copy", never, n_trials=20).verdict == result.verdict
    assert again.to_json() == result.to_json()


@pytest.mark.slow
def test_a_search_is_the_same_in_one_sitting_or_in_many(found, tmp_path):
    """Which settings are tried does not depend on where a sitting ended."""
    result, _ = found
    for trials in (5, 20):
        parts = search(tmp_path, n_trials=trials)
    assert [dict(t.settings) for t in parts.trials] == [dict(t.settings) for t in result.trials]
    assert [(t.state, t.asked, t.value) for t in parts.trials] == [
        (t.state, t.asked, t.value) for t in result.trials
    ]


def test_another_search_in_the_folder_is_refused(found):
    """The message names what differs."""
    _, folder = found
    for given, said in (
        ({"seed": 5}, "not the same seed"),
        ({"space": {**SPACE, "kind": ["plain"]} | {"n": [1]}}, "not the same space"),
        ({"metric": Wrong()}, "not the same metric, higher_is_better"),
        ({"dataset": questions(50)}, "not the same questions"),
    ):
        with pytest.raises(InvalidInputError, match=said):
            search(folder, **given)


@pytest.mark.slow
def test_less_is_better_where_the_metric_says_so(tmp_path):
    """The winner of an error rate is the lowest."""
    result = search(tmp_path, metric=Wrong())
    assert result.best["kind"] == "bad"
    assert result.verdict.startswith("The best setting is better: -0.")


@pytest.mark.slow
def test_luck_is_called_luck(tmp_path):
    """Settings that differ by chance only: somebody wins, and the verdict says that it is noise."""

    def by_chance(settings):
        return lambda question: str(float(random.Random(f"{settings['x']}{question}").random() < 0.5))

    result = search(tmp_path, by_chance, space={"x": {"int": [1, 1000]}}, pruning="none", n_trials=10)
    assert result.best_trial.number != 0
    assert result.best_trial.value > result.trials[0].value
    assert result.verdict.startswith("The gain is not distinguishable from noise")


def test_a_default_that_is_not_beaten_stays(tmp_path):
    """The default is judged alone, and the verdict says so."""
    result = search(tmp_path, space={"kind": ["good", "bad", "plain"], "x": [0.5]})
    assert result.best == result.default
    assert result.stopped == "every setting of the space was tried (3)"
    assert result.verdict == "No setting was better than the default on ours_told."
    assert result.set_aside is None


@pytest.mark.slow
@pytest.mark.parametrize("optunas", [False, True])
def test_other_rules_of_giving_up(tmp_path, optunas):
    """A pruner of Optuna's gives bad settings up; without one every setting answers every question."""
    import optuna

    pruning = optuna.pruners.MedianPruner(n_startup_trials=2) if optunas else "none"
    result = search(tmp_path, pruning=pruning, n_trials=8, set_aside=0)
    assert result.set_aside is None and "not judged on questions of its own" in result.verdict
    states = {trial.state for trial in result.trials}
    assert states == ({"complete", "pruned"} if optunas else {"complete"}) and result.best["kind"] == "good"


class Counting:
    """A pipeline that reports two model calls a question, and counts its questions."""

    def __init__(self):
        self.asked = 0

    def __call__(self, settings):
        async def answer(question):
            self.asked += 1
            return Output(answer=str(value(settings, question)), calls=2, tokens=1000)

        return answer


def test_a_cap_on_calls_ends_the_search_in_time_for_its_winner(tmp_path):
    """The cap is not passed, and both settings are judged on all questions set aside."""
    counting = Counting()
    result = search(tmp_path, counting, max_calls=400, pruning="none")
    assert result.usage["calls"] == 2 * counting.asked <= 400
    assert result.stopped.startswith("max_calls=400")
    assert 2 <= len(result.trials) < 12
    assert result.set_aside.questions == 18
    more = search(tmp_path, counting, max_calls=700, pruning="none")
    assert len(more.trials) > len(result.trials)
    assert more.usage["calls"] == 2 * counting.asked <= 700


def test_a_cap_that_is_too_small_says_so(tmp_path):
    """Nothing is compared, and what was paid for is kept."""
    counting = Counting()
    result = search(tmp_path, counting, max_calls=40)
    assert counting.asked <= 20
    assert result.set_aside is None
    assert result.trials[0].state == "unfinished"
    assert result.best == result.default
    assert result.verdict.startswith("The search ended before the default setting")
    assert "max_calls=40" in result.stopped
    again = search(tmp_path, counting, max_calls=2000, n_trials=2)
    assert again.trials[0].state == "complete"
    assert again.usage["calls"] == 2 * counting.asked


def test_a_cap_on_seconds_ends_the_search(tmp_path):
    """The search ends, and gives what is there."""

    def slow(settings):
        async def answer(question):
            await asyncio.sleep(0.05)
            return str(value(settings, question))

        return answer

    result = search(tmp_path, slow, max_seconds=2, n_trials=5000, pruning="none", max_concurrency=20)
    assert result.stopped.startswith("max_seconds=2")
    assert len(result.trials) < 5000
    assert result.trials[0].state == "complete"


def test_a_setting_that_cannot_be_made_is_passed_over(tmp_path):
    """It is recorded as failed, without the key in its message, and cannot win."""

    def sometimes(settings):
        if settings["kind"] == "good":
            raise ConfigurationError("no such model; api_key=sk-abcdefghijkl")
        return make(settings)

    result = search(tmp_path, sometimes)
    failed = [trial for trial in result.trials if trial.settings["kind"] == "good"]
    assert failed and all(trial.state == "failed" and "no such model" in trial.reason for trial in failed)
    assert "abcdefghijkl" not in (tmp_path / "study.log").read_text()
    assert result.best["kind"] == "plain"


def test_questions_without_a_value_are_no_zeros_and_no_way_to_win(tmp_path):
    """A setting that answers only what it likes fails by its coverage."""

    def choosy(settings):
        def answer(question):
            number = int("".join(filter(str.isdigit, question)))
            return "none" if settings["x"] and number % 3 else str(1.0 if settings["x"] else 0.5)

        return answer

    result = search(tmp_path, choosy, space={"x": [0, 1]})
    assert result.best == {"x": 0}
    assert result.trials[1].state == "failed"
    assert (
        "questions have a value" in result.trials[1].reason
        and "no number was told" in result.trials[1].reason
    )


def test_failed_questions_are_asked_again_in_the_next_sitting(tmp_path):
    """An endpoint that was down does not spoil a search for good."""
    down = [True]

    def flaky(settings):
        def answer(question):
            if down[0]:
                raise ConnectionError("refused")
            return str(value(settings, question))

        return answer

    with pytest.raises(InvalidInputError, match=r"the default setting .* refused"):
        search(tmp_path, flaky)
    down[0] = False
    result = search(tmp_path, flaky, n_trials=3)
    assert result.trials[0].state == "complete" and len(result.trials[0].scores) == 42


def test_a_search_ends_when_everything_fails(tmp_path):
    """Five settings that fail one after the other are not the settings' fault."""

    def broken(settings):
        if settings["x"] != 0.1:
            raise ConnectionError("refused")
        return make(settings)

    result = search(tmp_path, broken, n_trials=50)
    assert result.stopped.startswith("5 settings failed one after the other")
    assert len(result.trials) == 6


def test_questions_without_gold_are_left_out_and_counted(tmp_path):
    """Examples that the metric cannot read take no part."""

    class Needs(Told):
        example_needs = frozenset({"reference"})

    mixed = [Example(f"m{n}", f"More {n}?", reference="yes" if n % 2 else None) for n in range(80)]
    result = search(tmp_path, dataset=mixed, metric=Needs(), n_trials=1)
    assert result.setup["counts"] == {"search": 28, "set_aside": 12, "left_out": 40}
    assert any("40 questions lack" in note for note in result.notes)
    with pytest.raises(
        InvalidInputError, match="none of the 10 examples has what ours_told reads \\(reference\\)"
    ):
        search(tmp_path / "b", dataset=questions(10), metric=Needs())


async def test_coroutines_run_in_the_users_loop_and_nothing_else_blocks_it(tmp_path):
    """Files, the optimiser's imports and a function that blocks are off the loop; async makers and pipelines on it."""
    loop = asyncio.get_running_loop()

    async def made(settings):
        assert asyncio.get_running_loop() is loop

        async def answer(question):
            assert asyncio.get_running_loop() is loop
            return str(value(settings, question))

        return answer

    def blocking(settings):
        time.sleep(0.001)
        return make(settings)

    for maker in (made, blocking):
        with blockbuster_ctx():
            out = tmp_path / maker.__name__
            result = await atune(maker, questions(), Told(), space=SPACE, out=out, n_trials=3, progress=False)
        assert len(result.trials) == 3


def test_without_optuna_the_extra_is_named(tmp_path, monkeypatch):
    """The message says what to install; no folder is made."""
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(MissingExtraError, match=r"rag-kit\[eval\]"):
        search(tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_two_searches_in_one_folder_at_a_time_are_refused(tmp_path):
    """The second one is told to wait."""

    def nested(settings):
        search(tmp_path, n_trials=1)

    with pytest.raises(InvalidInputError, match="another run is writing"):
        search(tmp_path, nested)


def test_a_cut_off_line_is_dropped_and_a_damaged_file_is_named(tmp_path):
    """Files that a kill left behind are repaired; a changed file is refused, whether searched or read."""
    first = search(tmp_path, n_trials=3)
    path = tmp_path / "study.log"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:4]) + lines[4][:20])
    again = search(tmp_path, n_trials=3)
    assert [t.scores for t in again.trials] == [t.scores for t in first.trials]
    other = (
        b"".join(lines)
        .replace(b'"kind": "plain"', b'"kind": "evil"')
        .replace(b'"kind":"plain"', b'"kind":"evil"')
    )
    broken = b"".join([*lines[:4], b"not json\n", *lines[4:]])
    for damaged in (broken, b"".join(lines).replace(b'"search":', b'"searched":', 1), other):
        path.write_bytes(damaged)
        with pytest.raises(InvalidInputError):
            search(tmp_path, n_trials=3)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"n_trials": 0}, "n_trials is 0"),
        ({"set_aside": 1.5}, "set_aside is 1.5"),
        ({"pruning": "hard"}, "'paired', 'none'"),
        ({"dataset": "set.jsonl"}, "Example"),
        ({"dataset": questions(3)}, "at least 2 each"),
        ({"dataset": [Example("a", "x?"), Example("a", "y?")]}, "unique|comes twice"),
        ({"space": None}, "the space is None"),
    ],
)
def test_bad_arguments_are_refused_before_anything_is_asked(tmp_path, given, said):
    """The message names the argument and what is allowed; no folder is made."""
    with pytest.raises(InvalidInputError, match=said):
        search(tmp_path / "new", **given)
    assert not (tmp_path / "new").exists()


def test_parts_do_not_depend_on_the_order_of_the_set(tmp_path):
    """The same questions give the same parts, and a question that comes twice stays on one side."""
    examples = questions(40) + [Example(f"again{n}", f"question  {n}?") for n in range(40)]
    one, other = (search(tmp_path / str(step), dataset=examples[::step], n_trials=1) for step in (1, -1))
    assert list(one.trials[0].scores) == list(other.trials[0].scores)
    words = [" ".join(each.question.lower().split()) for each in examples if each.id in one.trials[0].scores]
    assert len(words) == 56 and all(words.count(each) == 2 for each in words)


def test_hostile_texts_stay_texts(tmp_path):
    """Names of settings are shown as text, in the terminal and in Jupyter."""
    result = search(tmp_path, lambda s: lambda q: "1", space={"<script>": ["</td>\x1b[2J", "b"]})
    html = result._repr_html_()
    assert "<script>" not in html and "&lt;script&gt;" in html and "\x1b" not in str(result) + html
    chinese = search(tmp_path / "zh", lambda s: lambda q: "1", space={"方式": ["关键词", "向量"]})
    assert '{"方式": "关键词"}' in str(chinese)


def test_a_search_over_chinese_questions_is_chinese_throughout(tmp_path):
    """The lines while it goes on, what it prints, and the comparison of best and default; also if nothing was asked."""
    questions, lines = [Example(f"q{n}", f"第{n}个问题是什么？") for n in range(40)], []
    result = search(tmp_path / "done", dataset=questions, n_trials=6, progress=lines.append)
    assert result.set_aside.pipelines == ("最好", "默认") and result.set_aside.baseline == "默认"
    unasked = search(tmp_path / "none", dataset=questions, max_seconds=1e-9)
    assert unasked.best == unasked.default and "没有可比较的" in unasked.verdict
    for text in (*lines, str(result), str(unasked), str(result.set_aside).partition("type, language")[0]):
        assert not re.search(r"[a-z]{3,} [a-z]{3,}|\b(?:best|default|complete|pruned)\b", text), text


TESTS = Path(__file__).resolve().parents[2]


def every_other(bad):
    """A maker that does something else every second time."""
    count = iter(range(1000))

    def made(settings):
        return bad() if next(count) % 2 else make(settings)

    return made


@pytest.mark.parametrize(
    "bad", [lambda: None, lambda: 5, lambda: dict, lambda: "no.such:thing", lambda: 1 / 0]
)
def test_a_setting_whose_pipeline_is_none_fails_alone(bad, tmp_path):
    """A pipeline that cannot be asked or made is a failed setting; the others go on."""
    result = search(tmp_path, every_other(bad), n_trials=5, dataset=questions(12))
    assert [trial.state for trial in result.trials] == ["complete", "failed"] * 2 + ["complete"]
    assert all(trial.reason for trial in result.trials if trial.state == "failed")


def test_what_a_maker_says_is_shown_without_control_characters(tmp_path):
    """Escape codes in an exception's text neither reach the log nor the terminal."""

    def bad():
        raise ValueError("\x1b[31mred\u202e")

    result = search(tmp_path, every_other(bad), n_trials=3, dataset=questions(12))
    assert "\x1b" not in result.trials[1].reason and "red" in result.trials[1].reason
    with pytest.raises(InvalidInputError, match=r"the default setting .* ValueError.*red") as raised:
        search(tmp_path / "other", lambda settings: bad())
    assert "\x1b" not in str(raised.value) and "\u202e" not in str(raised.value)


async def test_a_maker_that_hangs_is_given_up_with_the_budget(tmp_path):
    """max_seconds holds while a pipeline is made, blocking or not, and the lock is let go."""

    def hangs(settings):
        time.sleep(5)

    async def waits(settings):
        await asyncio.sleep(500)

    for number, maker in enumerate((hangs, waits)):
        out = tmp_path / str(number)
        result = await atune(
            maker, questions(12), Told(), space=SPACE, out=out, max_seconds=0.5, n_trials=2, progress=False
        )  # fmt: skip
        assert "max_seconds=0.5" in result.stopped and result.usage["seconds"] < 4
        again = await atune(make, questions(12), Told(), space=SPACE, out=out, n_trials=2, progress=False)
        assert [trial.state for trial in again.trials] == ["complete", "complete"]


async def test_a_cancelled_search_lets_go_and_goes_on(tmp_path):
    """task.cancel() at several moments: no task is left, the folder is free, no score is made twice."""
    asked = []

    def slowly(settings):
        async def answer(question):
            await asyncio.sleep(0.02)
            asked.append((json.dumps(settings), question))
            return make(settings)(question)

        return answer

    def begin():
        return atune(slowly, questions(12), Told(), space=SPACE, out=tmp_path, n_trials=3, progress=False)

    await cancel_at((-1, 0, 3, 10, 18), asked, begin, 0.05)
    result = await begin()
    assert result.stopped == "n_trials=3"
    assert len(asked) - len(set(asked)) <= 5 * 8, "at most what was under way is asked again"


@pytest.mark.parametrize("where", ["maker", "pipeline"])
def test_what_ends_a_program_leaves_the_folder_free(where, tmp_path):
    """Such an exception ends the search; the same search can go on after it in the same process."""

    fatal = KeyboardInterrupt()

    def broken(settings):
        if where == "maker":
            raise fatal

        def answer(question):
            raise fatal

        return answer

    with pytest.raises((type(fatal), InvalidInputError)):
        search(tmp_path, broken, n_trials=3, dataset=questions(12))
    assert search(tmp_path, n_trials=3, dataset=questions(12)).stopped == "n_trials=3"


TRIALS = 5


def _start(out: Path, asked: Path, sleep: float) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-m", "support.tuning", str(out), str(asked), str(TRIALS)],
        env={**os.environ, "PYTHONPATH": str(TESTS), "TUNE_SLEEP": str(sleep)},
        stderr=subprocess.PIPE,
        text=True,
    )


def _finish(process: subprocess.Popen) -> None:
    _, error = process.communicate(timeout=240)
    assert process.returncode == 0, error


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_killed_search_goes_on_and_asks_nothing_twice(tmp_path):
    """kill -9 at any moment: the trials are those of a search that nobody killed, and scores are kept."""
    whole = tune(
        make, questions(), Told(), space=SPACE, out=tmp_path / "whole", n_trials=TRIALS, progress=False
    )
    out, asked = tmp_path / "killed", tmp_path / "killed.txt"
    draw, kills = random.Random(1), 0
    log = out / "study.log"
    for _ in range(3):
        size = log.stat().st_size if log.exists() else 0
        process = _start(out, asked, 0.01)
        deadline = time.monotonic() + 120
        while process.poll() is None and time.monotonic() < deadline:
            if log.exists() and log.stat().st_size > size:  # it has come on: kill it soon
                time.sleep(draw.uniform(0, 0.3))
                break
            time.sleep(0.005)
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            kills += 1
        process.communicate(timeout=60)
        if process.returncode == 0:
            break
    assert kills >= 2
    _finish(_start(out, asked, 0.0))
    result = tune(make, questions(), Told(), space=SPACE, out=out, n_trials=TRIALS, progress=False)
    assert [(t.settings, t.state, t.scores) for t in result.trials] == [
        (t.settings, t.state, t.scores) for t in whole.trials
    ]
    assert result.verdict == whole.verdict and result.stopped == whole.stopped
    lines = [json.loads(line) for line in asked.read_text().splitlines() if line.endswith("]")]
    times = Counter((json.dumps(settings), question) for settings, question in lines)
    # what a kill finds unwritten is asked again: at most a batch of 4 x 2 questions for each kill
    assert sum(count - 1 for count in times.values()) <= 8 * kills


def test_a_full_disk_is_said_and_nothing_is_lost(tmp_path):
    """The error names the file; what was written counts in the next sitting, and the folder is free."""
    pytest.importorskip("resource")
    code = (
        "import resource, signal, sys\n"
        f"sys.path.insert(0, {str(TESTS)!r})\n"
        "from support.tuning import SPACE, Told, make, questions, tune\n"
        "from rag_kit.errors import InvalidInputError\n"
        "def search():\n"
        "    settings = {'space': SPACE, 'n_trials': 3, 'progress': False}\n"
        f"    return tune(make, questions(12), Told(), out={str(tmp_path)!r}, **settings)\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4000, resource.RLIM_INFINITY))\n"
        "try:\n"
        "    search()\n"
        "except InvalidInputError as error:\n"
        "    assert 'cannot be written' in str(error), error\n"
        "else:\n"
        "    raise SystemExit('no error')\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))\n"
        "result = search()\n"
        "assert len(result.trials) == 3 and result.stopped == 'n_trials=3', result\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
