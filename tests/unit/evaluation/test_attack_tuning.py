"""A search under hostile use: makers that fail or hang, numbers without measure, logs that were tampered with."""

import asyncio
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.tuning import SPACE, Told, make, questions

from rag_kit.errors import InvalidInputError
from rag_kit.evaluation import atune, tune

TESTS = Path(__file__).resolve().parents[2]


def search(out, make_pipeline=make, **given):
    """A small search."""
    settings = {"space": SPACE, "n_trials": 3, "progress": False, "max_concurrency": 4, **given}
    return tune(make_pipeline, questions(12), Told(), out=out, **settings)


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
    """What cannot be asked, or was not made, is a setting that failed; the others go on."""
    result = search(tmp_path, every_other(bad), n_trials=5)
    assert [trial.state for trial in result.trials] == ["complete", "failed"] * 2 + ["complete"]
    assert all(trial.reason for trial in result.trials if trial.state == "failed")


def test_what_a_maker_says_is_shown_without_control_characters(tmp_path):
    """Escape codes in an exception's text neither reach the log nor the terminal."""

    def bad():
        raise ValueError("\x1b[31mred\u202e")

    result = search(tmp_path, every_other(bad))
    assert "\x1b" not in result.trials[1].reason and "red" in result.trials[1].reason
    with pytest.raises(InvalidInputError) as raised:
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


def test_a_full_disk_is_said_and_nothing_is_lost(tmp_path):
    """The error names the file; what was written counts in the next sitting, and the folder is free."""
    pytest.importorskip("resource")
    code = (
        "import resource, signal, sys\n"
        f"sys.path.insert(0, {str(TESTS)!r})\n"
        "from support.tuning import SPACE, Told, make, questions, tune\n"
        "from rag_kit.errors import InvalidInputError\n"
        "from rag_kit.evaluation.tuning.result import TuningResult\n"
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
        f"known = TuningResult.load({str(tmp_path)!r})\n"
        "assert known.trials[0].scores\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))\n"
        "result = search()\n"
        "assert len(result.trials) == 3 and result.stopped == 'n_trials=3', result\n"
        "assert known.trials[0].scores.items() <= result.trials[0].scores.items()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]


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

    for wanted in (-1, 0, 3, 10, 18):
        before = asyncio.all_tasks()
        task = asyncio.ensure_future(begin())
        while len(asked) < wanted and not task.done():
            await asyncio.sleep(0.005)
        await asyncio.sleep(0 if wanted else 0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert asyncio.all_tasks() <= before
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
        search(tmp_path, broken)
    assert search(tmp_path).stopped == "n_trials=3"


async def test_what_ends_a_generator_ends_what_runs_beside_it():
    """GeneratorExit out of one of several branches is raised as it is, and the others are cancelled."""
    from rag_kit.concurrency import afan_out

    async def ends():
        raise GeneratorExit

    async def waits():
        await asyncio.sleep(60)

    before = asyncio.all_tasks()
    with pytest.raises(GeneratorExit):
        await afan_out([ends, waits])
    assert asyncio.all_tasks() <= before
