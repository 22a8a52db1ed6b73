"""``rag-kit evaluate``: pipelines by name and by module, output, files, exit codes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from support.command_line import ingest_pages, run_command
from support.interrupted import start_interruptible
from support.openai_server import OpenAIServer

from rag_kit.cli import exits
from rag_kit.cli.main import main
from rag_kit.evaluation import Results
from rag_kit.prompts.library import packaged_folder

MODULE = """
import time
ASKED = []
def answers(question):
    ASKED.append(question)
    return {"answer": "The pump starts at 40 degrees.", "documents": ["The pump starts at 40 degrees."]}
def fails(question):
    raise ValueError("no, key=abcdefgh")
def slow(question):
    time.sleep(0 if "pump" in question else 60)
    return "40 degrees"
"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two pages and their index."""
    texts = {
        "pump.md": "# Pump\n\nThe pump starts at 40 degrees.\n",
        "风扇.md": "# 风扇\n\n风扇在六十度时启动，噪音很大。\n",
    }
    return ingest_pages(tmp_path_factory.mktemp("pages"), texts).parent


@pytest.fixture
def folder(pages: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A set of three questions, a copy of the index, and a module of pipelines in the current folder."""
    shutil.copytree(pages, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", sys.path[:])
    (tmp_path / "own_pipelines_e.py").write_text(MODULE)
    questions = [
        {
            "id": "q1",
            "question": "When does the pump start?",
            "answers": ["40 degrees"],
            "reference": "At 40 degrees.",
        },
        {"id": "q2", "question": "When does the fan start?", "answers": ["60 degrees"]},
        {"id": "q3", "question": "风扇什么时候启动？", "answers": ["六十度"]},
    ]
    lines = [json.dumps(question, ensure_ascii=False) for question in questions]
    (tmp_path / "set.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *arguments: Any) -> tuple[int, str, str]:
    return run_command(capsys, "evaluate", "set.jsonl", *arguments)


OWN = ("--pipeline", "own_pipelines_e:answers", "--metric", "ours_answer_found")


def test_a_pipeline_of_ones_own(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The table goes to stdout, the rest to stderr; a second run asks nobody."""
    code, out, _ = run(capsys, *OWN, "--out", "r")
    assert code == exits.OK
    assert "ours_answer_found" in out
    assert "0.333" in out
    import own_pipelines_e  # type: ignore[import-not-found]

    asked = len(own_pipelines_e.ASKED)
    code, again, _ = run(capsys, *OWN, "--out", "r")
    assert (code, again) == (exits.OK, out)
    assert len(own_pipelines_e.ASKED) == asked
    results = Results.load(folder / "r")
    assert results.summary()["ours_answer_found"].n == 3 and results.manifest["dataset"]["name"] == "set"


def test_json_is_the_only_thing_on_stdout(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--json prints one document: metrics with interval and coverage, what it took, how it ended."""
    code, out, _ = run(capsys, *OWN, "--json", "--limit", 2)
    told = json.loads(out)
    assert code == exits.OK
    assert told["examples"] == 2
    assert told["metrics"]["ours_answer_found"]["mean"] == 0.5
    assert told["status"] == "complete"


def test_an_index_searched_and_answered_from(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--index with a pipeline's name gives a retriever, with --graph answers; a changed index is noticed."""
    search = ("--index", "index", "--pipeline", "bm25", "--metric", "ours_answer_found", "--out", "r")
    code, _, err = run(capsys, *search)
    assert code == exits.OK
    assert Results.load(folder / "r")["q3"].cells["ours_answer_found"].status == "not_applicable"
    (folder / "r" / "manifest.json").write_text("[" * 100_000)  # damaged: the run writes another one
    assert run(capsys, *search)[0] == exits.OK and len(Results.load(folder / "r").rows) == 3
    code, _, err = run(capsys, *search[:-1], "g", "--graph", "plain")
    assert code == exits.OK
    assert "extractive" in err
    results = Results.load(folder / "g")
    assert results.values("ours_answer_found")["q1"] == 1.0
    assert results.values("ours_answer_found")["q3"] == 1.0
    assert results.manifest["done"]["asked"] == 3
    _, _, err = run(capsys, *search[:-1], "g", "--graph", "plain")
    assert Results.load(folder / "g").manifest["done"]["asked"] == 0
    assert "name another folder" not in err
    (folder / "docs" / "fan.md").write_text("# Fan\n\nThe fan starts at 60 degrees.\n", encoding="utf-8")
    main(["ingest", "docs", "--index", "index", "--embedding-model", "none", "--quiet"])
    _, _, err = run(capsys, *search[:-1], "g", "--graph", "plain")
    assert "g holds results of: plain bm25" in err and "name another folder" in err
    changed = Results.load(folder / "g")
    assert changed.manifest["done"]["asked"] == 3
    assert changed.values("ours_answer_found")["q2"] == 1.0
    _, _, err = run(capsys, *OWN, "--out", "g")
    assert "They are replaced by those of: own_pipelines_e:answers." in err


def test_an_edited_prompt_is_asked_again(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The version of a graph has the user's own prompt files; a search by words asks by none."""
    monkeypatch.setenv("RAG_KIT_PROMPTS", str(folder / "prompts"))
    (folder / "prompts").mkdir()
    own = folder / "prompts" / "answer.en.prompt"
    text = (packaged_folder() / own.name).read_text(encoding="utf-8")
    for graph, asked in (((), (3, 0, 0)), (("--graph", "plain"), (3, 3, 0))):
        search = ("--index", "index", "--pipeline", "bm25", "--metric", "ours_answer_found", *graph)
        for is_edited, count in zip((False, True, True), asked, strict=True):
            own.unlink(missing_ok=True)
            if is_edited:
                own.write_text(f"{text}\n", encoding="utf-8")
            assert run(capsys, *search, "--out", f"r{len(graph)}")[0] == exits.OK
            assert Results.load(folder / f"r{len(graph)}").manifest["done"]["asked"] == count


@pytest.mark.parametrize("graph", [(), ("--graph", "plain")])
def test_an_edited_retriever_of_ones_own_is_asked_again(
    graph: tuple[str, ...], folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The version has its code, also that of a function that it calls, and the options of a built-in one."""
    code = (
        "from rag_kit.retrieval import index_retriever\ndef depth():\n    return 1\n"
        "def make(index):\n    return index_retriever(index, 'bm25', depth())\n"
    )
    search = ("--index", "index", "--metric", "ours_span_recall", "--out", "r", *graph)
    for text, asked in ((code, 3), (code, 0), (code.replace("1", "2 + 0"), 3)):
        (folder / "own_retriever_e.py").write_text(text)
        monkeypatch.delitem(sys.modules, "own_retriever_e", raising=False)
        assert run(capsys, *search, "--pipeline", "own_retriever_e:make")[0] == exits.OK
        assert Results.load(folder / "r").manifest["done"]["asked"] == asked
    for options, added in (((), ""), (("--allow-degraded",), "allow_degraded=True, ")):
        run(capsys, *search, "--pipeline", "hybrid", *options)
        manifest = Results.load(folder / "r").manifest
        assert manifest["done"]["asked"] == 3
        # earlier runs have this text: without new options they are not asked again
        assert f", k=5, filter=None, {added}index=" in manifest["pipeline"]["version"]


def test_min_decides_the_exit_code(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A bar for CI: 1 and the table on stderr when it is not reached."""
    assert run(capsys, *OWN, "--min", "ours_answer_found=0.3")[0] == exits.OK
    code, out, err = run(capsys, *OWN, "--min", "ours_answer_found=0.9", "--json")
    assert code == exits.FAILED
    assert "below 0.9" in err
    assert json.loads(out)["rows"] == 3


def test_a_run_that_errors_leave_without_a_score_fails(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit code 1, the reason, and no key: of a pipeline, or of a judge, who is asked at --base-url, too."""
    code, _, err = run(capsys, "--pipeline", "own_pipelines_e:fails", *OWN[2:])
    assert code == exits.FAILED and "ValueError" in err and "abcdefgh" not in err
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    with OpenAIServer(["no JSON"]) as server:
        judge = ("--metric", "faithfulness", "--judge", "openai:m", "--base-url", server.url)
        code, _, err = run(capsys, *OWN[:2], *judge)
    assert code == exits.FAILED and "no question has a score" in err and len(server.chats) >= 3


def test_a_cap_that_is_reached(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 9; what is there is printed and kept."""
    arguments = ("--index", "index", "--pipeline", "bm25", "--graph", "plain", *OWN[2:])
    code, out, err = run(capsys, *arguments, "--max-calls", 1, "--max-concurrency", 1, "--out", "r", "--json")
    assert code == exits.BUDGET
    assert "max_calls=1" in err
    assert json.loads(out)["status"] == "stopped"
    assert run(capsys, *arguments, "--out", "r")[0] == exits.OK


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--metric", "faithfullness", *OWN[:2]), "unknown metric 'faithfullness'"),
        (("--metric", "ours_answer_found"), "no index is named"),
        (("--metric", "ours_answer_found", "--graph", "crag", *OWN[:2]), "no index is named"),
        (("--pipeline", "own_pipelines_e:none", "--metric", "ours_answer_found"), "no attribute 'none'"),
        ((*OWN, "--limit", "0"), "holds no example"),
        ((*OWN, "--min", "ours_answer_found"), "argument --min"),
        ((*OWN, "--min", "ours_answer_found=nan"), "argument --min: 'nan' is no number"),
        ((*OWN, "--min", "ours_answer_found=x"), "such as mrr=0.8"),
        ((*OWN, "--min", "mrrr=0.5"), "unknown metric 'mrrr'"),
        ((*OWN, "--max-concurrency", "0"), "max_concurrency=0 was given"),
        ((*OWN, "--out", "set.jsonl"), "holds something else"),
        ((*OWN, "--out", "docs"), "holds something else"),
    ],
)
def test_bad_arguments_give_one_line_and_exit_code_2(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str
) -> None:
    """No traceback; the line says what was wrong."""
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (exits.USAGE, "")
    assert message in err
    assert len(err.splitlines()) == 1


def test_results_of_other_questions_are_not_written_over(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A wrong --out is one line; what is there stays; the same questions in part are welcome."""
    assert run(capsys, *OWN, "--out", "r")[0] == exits.OK
    before = (folder / "r" / "rows.jsonl").read_bytes()
    (folder / "other.jsonl").write_text('{"id": "z", "question": "Who?", "answers": ["Ada"]}\n')
    assert main(["evaluate", "other.jsonl", *OWN, "--out", "r"]) == exits.USAGE
    err = capsys.readouterr().err
    assert "other questions" in err and err.count("\n") == 1
    assert (folder / "r" / "rows.jsonl").read_bytes() == before
    assert run(capsys, *OWN, "--out", "r", "--limit", 1)[0] == exits.OK


def test_without_a_model_what_needs_none_is_computed(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By default those that the set has gold for; a judged metric says in one line what it needs."""
    code, out, err = run(capsys, *OWN[:2])
    assert code == exits.OK and "judge" not in err
    assert "ours_answer_found" in out and "ours_rouge_l" in out and "ndcg" not in out
    for judge in ([], ["--judge", "extractive"]):
        code, out, err = run(capsys, *OWN[:2], "--metric", "faithfulness", *judge)
        assert code == exits.USAGE and "a judge needs a language model" in err


def test_gold_ids_that_nothing_has_are_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A zero that comes of other names for the passages is told from one of the search, with --json too."""
    question = {"question": "When does the pump start?", "relevant": {"pump.txt": 1, "other": 1, "no": 0}}
    for relevant, noted in ((question["relevant"], True), ({"pump.md": 1, "other": 1}, False)):
        (folder / "set.jsonl").write_text(json.dumps({**question, "relevant": relevant}) + "\n")
        assert run(capsys, "--index", "index")[0] == exits.USAGE  # more than a tenth is missing
        code, out, _ = run(capsys, "--index", "index", "--max-missing-gold", "1")
        assert code == exits.OK and ("None of the gold ids (2, such as 'other')" in out) is noted, out
        assert ("pump.md. Does the set name passages" in out) is noted
        said = json.loads(run(capsys, "--index", "index", "--max-missing-gold", "1", "--json")[1])
        assert said["rows"] == 1 and ("None of the gold ids" in str(said["notes"])) is noted


def test_a_set_of_answers_and_a_search_need_a_graph(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing answers where an index is only searched: the way to have it answered is named."""
    assert "add --graph plain" in run(capsys, "--index", "index")[2]
    for others in (("--graph", "plain"), ("--metric", "ndcg@10")):
        assert "add --graph plain" not in run(capsys, "--index", "index", *others)[2]


def test_a_folder_in_use(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 8."""
    from rag_kit.evaluation.runs.rows import RunFolder

    with closing(RunFolder(folder / "r")):
        code, _, err = run(capsys, *OWN, "--out", "r")
    assert code == exits.LOCKED
    assert "another run" in err


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
def test_ctrl_c(folder: Path) -> None:
    """Exit code 130, no traceback, although a thread still waits; what is done is kept."""
    arguments = ["evaluate", "set.jsonl", "--pipeline", "own_pipelines_e:slow", *OWN[2:], "--out", "r"]
    command = [sys.executable, "-m", "rag_kit.cli", *arguments]
    process = start_interruptible(command, stderr=subprocess.PIPE, text=True, cwd=folder)
    until = time.monotonic() + 120
    log = folder / "r" / "log.jsonl"
    while not (log.exists() and b"found: 40 degrees" in log.read_bytes()) and time.monotonic() < until:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == exits.INTERRUPTED
    assert "Traceback" not in err
    assert err.rstrip().endswith("rag-kit: interrupted")
    assert [row.example.id for row in Results.load(folder / "r")] == ["q1"]
