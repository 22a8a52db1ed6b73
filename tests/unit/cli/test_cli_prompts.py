"""``rag-kit prompts``: list, show, check."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from rag_kit.cli.main import main
from rag_kit.prompts.library import packaged_folder


def run(*arguments: object) -> int:
    """Run the command as the main program does."""
    return main(["prompts", *map(str, arguments)])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with one override."""
    shutil.copy(packaged_folder() / "answer.en.prompt", tmp_path)
    return tmp_path


def test_list_names_every_prompt(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each prompt and language has a row with inputs, output and where it comes from."""
    assert run("list", "--folder", folder, "--json") == 0
    rows = json.loads(capsys.readouterr().out)
    by_key = {(row["name"], row["language"]): row for row in rows}
    assert by_key["answer", "en"]["file"] == str(folder / "answer.en.prompt")
    assert by_key["answer", "zh"]["file"] == str(packaged_folder() / "answer.zh.prompt")
    assert list(by_key["condense", "en"]["inputs"]) == ["history", "question"]
    assert by_key["condense", "en"]["schema"] == "Query"
    assert run("list", "--language", "zh") == 0
    out = capsys.readouterr().out
    assert "history, question -> Query" in out
    assert " en " not in out


def test_list_goes_on_past_a_broken_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A broken file is a row that says so, and a hint to check."""
    (folder / "answer.en.prompt").write_text("x")
    assert run("list", "--folder", folder) == 0
    captured = capsys.readouterr()
    assert re.search(r"^answer +en +broken: ", captured.out, re.MULTILINE)
    assert "condense" in captured.out
    assert "prompts check" in captured.err


def test_show_prints_the_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Standard output is the file itself, ready to start an own version from; JSON has the roles split."""
    assert run("show", "answer", "--language", "zh") == 0
    captured = capsys.readouterr()
    assert captured.out == (packaged_folder() / "answer.zh.prompt").read_text(encoding="utf-8")
    assert "answer.zh.prompt (sha256:" in captured.err
    assert run("show", "condense", "--json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert [message["role"] for message in shown["sections"]] == ["system", "user"]
    assert shown["language"] == "en"


def test_show_makes_control_characters_visible(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file from elsewhere cannot write escape sequences to the terminal."""
    path = folder / "answer.en.prompt"
    path.write_text(path.read_text().replace("Rules", "\x1b[31mRules\u202e"))
    assert run("show", "answer", "--folder", folder) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "\u202e" not in out
    assert "\\x1b[31mRules" in out


def test_check_reports_problems_with_file_and_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Right: exit code 0. Wrong: 1, and one line for each problem."""
    assert run("check", "--folder", folder) == 0
    assert "prompts are right in en and zh; files of your own among them: 1" in capsys.readouterr().out
    path = folder / "answer.en.prompt"
    path.write_text(path.read_text().replace("{{question}}", "{{qestion}}"))
    assert run("check", "--folder", folder) == 1
    out = capsys.readouterr().out.splitlines()
    assert out[0].startswith(f"{path}:7: the input 'question' is declared")
    last = len(path.read_text().splitlines())
    assert any(line.startswith(f"{path}:{last}: unknown variable {{{{qestion}}}}") for line in out)
    assert out[-1] == "2 problem(s)"
    assert run("check", "--folder", folder, "--language", "zh") == 0
    capsys.readouterr()
    assert run("check", "--folder", folder, "--json") == 1
    report = json.loads(capsys.readouterr().out)
    assert report["ok"] is False
    assert report["problems"][0]["line"] == 7


def test_wrong_names_and_folders_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A mistake of the user gives exit code 2 and a line on standard error."""
    assert run("show", "../answer") == 2
    assert run("show", "awnser") == 2
    assert run("list", "--folder", tmp_path / "absent") == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert len(captured.err.splitlines()) == 3
    assert "(did you mean 'answer'?)" in captured.err
