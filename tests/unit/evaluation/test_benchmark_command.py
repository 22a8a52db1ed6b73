"""``rag-kit benchmark``: output, files and exit codes."""

from __future__ import annotations

import json

import pytest

from rag_kit.cli.main import main


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A set of two documents and a pipeline module in the current folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", __import__("sys").path[:])
    folder = tmp_path / "sky"
    folder.mkdir()
    (folder / "corpus.jsonl").write_text(
        '{"_id": "s", "title": "", "text": "the sun is hot"}\n{"_id": "m", "title": "", "text": "the moon is cold"}\n'
    )
    (folder / "queries.jsonl").write_text('{"_id": "q", "text": "cold moon"}\n')
    (folder / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\nq\tm\t1\n")
    (tmp_path / "own_pipelines_b.py").write_text(
        "from langchain_core.runnables import RunnableLambda\n"
        "def backwards(documents):\n"
        "    return RunnableLambda(lambda q: documents[::-1])\n"
    )
    return folder


def test_table_on_stdout_and_file_on_disk(folder, tmp_path, capsys):
    """The table goes to stdout, the result to the file."""
    pipelines = ["--pipeline", "bm25", "--pipeline", "own_pipelines_b:backwards"]
    files = ["--out", str(tmp_path / "r.json"), "--rows", str(tmp_path / "rows.jsonl")]
    code = main(["benchmark", str(folder), *pipelines, *files])
    printed = capsys.readouterr()
    assert code == 0
    assert "ndcg@10" in printed.out and "own_pipelines_b:backwards" in printed.out
    written = json.loads((tmp_path / "r.json").read_text())
    assert [entry["pipeline"] for entry in written["pipelines"]] == ["bm25", "own_pipelines_b:backwards"]
    assert len((tmp_path / "rows.jsonl").read_text().splitlines()) == 2


def test_missing_gold_can_be_asked_for(folder, capsys):
    """The option that the refusal names is there; what is no share is refused."""
    command = ["benchmark", str(folder), "--pipeline", "bm25", "--max-missing-gold"]
    assert main([*command, "1"]) == 0
    assert main([*command, "nan"]) == 2
    assert "max_missing_gold is nan; give a share from 0 to 1" in capsys.readouterr().err


def test_the_table_says_what_was_left_out(folder, capsys):
    """Queries that cannot be scored or were not asked, few passages, and names that a terminal would obey."""
    with (folder / "queries.jsonl").open("a") as file:
        file.write('{"_id": "q2", "text": "hot sun"}\n{"_id": "q3", "text": "a whale"}\n')
    with (folder / "qrels.tsv").open("a") as file:
        file.write("q2\ts\t1\n")
    (folder.parent / "own_pipelines_d.py").write_text(
        "from langchain_core.runnables import RunnableLambda\n"
        "def first(documents):\n"
        "    return RunnableLambda(lambda q: documents[:1])\n"
        "globals()['first\\x1b[31m'] = first\n"
    )
    assert (
        main(["benchmark", str(folder), "--pipeline", "own_pipelines_d:first\x1b[31m", "--limit", "1"]) == 0
    )
    printed = capsys.readouterr().out
    expected = "1 queries scored"
    assert expected in printed and "returned at most 1 passages" in printed and "\x1b" not in printed


def test_json_is_the_only_thing_on_stdout(folder, capsys):
    """--json prints one document and nothing else."""
    assert main(["benchmark", str(folder), "--pipeline", "bm25", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["pipelines"][0]["ndcg@10"]["value"] == 1.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--pipeline", "bm52"], "allowed are bm25, dense, hybrid"),
        (["--pipeline", "own_pipelines_b:none"], "has no attribute 'none'"),
        (["--pipeline", "bm25", "--limit", "0"], "limit=0"),
    ],
)
def test_bad_arguments_give_one_line_and_exit_code_2(folder, capsys, arguments, message):
    """A user's mistake is one line on stderr, without a traceback."""
    assert main(["benchmark", str(folder), *arguments]) == 2
    printed = capsys.readouterr()
    assert message in printed.err and "Traceback" not in printed.err and not printed.out


def test_an_earlier_result_survives_a_failing_run(folder, tmp_path):
    """The result file is replaced only when all is done."""
    out = tmp_path / "r.json"
    out.write_text("earlier")
    (tmp_path / "own_pipelines_c.py").write_text(
        "from langchain_core.runnables import RunnableLambda\nbroken = RunnableLambda(lambda q: 1 / 0)\n"
    )
    arguments = ["--pipeline", "own_pipelines_b:backwards", "--pipeline", "own_pipelines_c:broken"]
    assert main(["benchmark", str(folder), *arguments, "--out", str(out)]) == 1
    assert out.read_text() == "earlier"
