"""The page about the command line says what is true: examples, completion, exit codes, the fields of each JSON."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from rag_kit.cli import exits
from rag_kit.cli.main import COMMANDS, EXAMPLES, main, parser

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide"
QUESTION = "When does the pump start?"


def fields(language: str, command: str) -> set[str]:
    """The fields that the page names for a command."""
    page = (GUIDE / language / "command-line.md").read_text(encoding="utf-8")
    section = page.split(f"### rag-kit {command}\n")[1].split("\n### ")[0]
    cells = re.findall(r"^\| (`.*?) \| ", section, re.MULTILINE)
    return {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an index, a set of questions and two results."""
    base = tmp_path_factory.mktemp("page")
    (base / "docs").mkdir()
    (base / "docs" / "pump.md").write_text("# Pump\n\nThe pump starts at 40 degrees.\n", encoding="utf-8")
    rows = [{"id": f"q{n}", "question": QUESTION, "answers": ["40 degrees"]} for n in range(2)]
    (base / "set.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    index = str(base / "index")
    assert main(["ingest", str(base / "docs"), "--index", index, "--embedding-model", "none", "--quiet"]) == 0
    for name in ("plain", "crag"):
        command = ["evaluate", str(base / "set.jsonl"), "--index", index, "--graph", name, "--out"]
        assert main([*command, str(base / name), "--name", name, "--metric", "ours_answer_found"]) == exits.OK
    return base


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        "ingest {0}/docs --index {0}/index",
        f"retrieve '{QUESTION}' --index {{0}}/index",
        f"ask '{QUESTION}' --index {{0}}/index",
        "verify --index {0}/index",
        "evaluate {0}/set.jsonl --index {0}/index --graph plain --out {0}/plain --name plain",
        "compare {0}/plain {0}/crag",
        "doctor --no-network",
    ],
)
def test_fields_are_those_of_the_page(command: str, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The output of --json has exactly the fields that both languages of the page name."""
    arguments = shlex.split(command.format(place))
    capsys.readouterr()
    assert main([*arguments, "--json"]) == exits.OK
    found = json.loads(capsys.readouterr().out)
    keys = set(found[0] if isinstance(found, list) else found)
    assert keys == fields("en", arguments[0]) == fields("zh", arguments[0])


@pytest.mark.parametrize("language", ["en", pytest.param("zh", marks=pytest.mark.slow)])
def test_a_decision_is_made_as_the_page_says(
    language: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The commands of the page about questions follow its Python blocks."""
    page = (GUIDE / language / "evaluation-sets.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RAG_KIT_EMBEDDING_MODEL", "none")
    exec("\n".join(re.findall(r"^```python\n(.*?)^```", page, re.M | re.S)), {})
    (commands,) = re.findall(r"^```bash\n(.*?)^```", page, re.M | re.S)
    for line in commands.replace("\\\n", " ").splitlines():
        assert main(shlex.split(line)[1:]) == exits.OK, capsys.readouterr().err
    assert "bm25" in capsys.readouterr().out and (tmp_path / "report.html").is_file()


def test_every_command_has_examples_that_parse(capsys: pytest.CaptureFixture[str]) -> None:
    """Each command's help ends with examples, whose arguments the parser takes."""
    assert {line.split()[0] for line in EXAMPLES} == set(COMMANDS)
    for line in EXAMPLES:
        command = line.split()[0]
        with pytest.raises(SystemExit):
            main([command, "--help"])
        assert f"\n  rag-kit {line}\n" in capsys.readouterr().out
        words = shlex.split(re.split(r" [<>] ", line)[0])
        assert parser(command).parse_args(words).command == command


def test_exit_codes_are_those_of_the_page() -> None:
    """Both languages list all codes."""
    codes = {value for value in vars(exits).values() if type(value) is int}
    for language in ("en", "zh"):
        page = (GUIDE / language / "command-line.md").read_text(encoding="utf-8")
        cells = re.findall(r"^\| ([\d,、 ]+) \| ", page, re.MULTILINE)
        assert {int(number) for cell in cells for number in re.findall(r"\d+", cell)} == codes


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes_commands(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The script that is printed for bash completes a command and an option."""
    with pytest.raises(SystemExit) as ended:
        main(["--print-completion", "bash"])
    assert not ended.value.code
    script = tmp_path / "rag-kit.bash"
    script.write_text(capsys.readouterr().out, encoding="utf-8")
    for words, expected in (("rag-kit in", "ingest"), ("rag-kit ask --gr", "--graph")):
        count = len(words.split()) - 1
        lines = f"source {script}; COMP_WORDS=({words}); COMP_CWORD={count}; _shtab_rag_kit; echo ${{COMPREPLY[@]}}"
        done = subprocess.run(["bash", "-c", lines], capture_output=True, text=True, check=True)
        assert done.stdout.split() == [expected]
