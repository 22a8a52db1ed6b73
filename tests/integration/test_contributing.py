"""The worked examples of CONTRIBUTING.md, carried out to the letter in a copy of the repository."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```(\w+) file=(\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def changed(text: str, diff: str) -> str:
    """A text with the changes of a diff: each run of lines to take out, or the line before, is found by its words."""
    place = 0
    for run in re.findall(r"((?:^[ -].*\n)+)((?:^\+.*\n)*)", diff, re.MULTILINE):
        old, new = ([line[1:] + "\n" for line in part.splitlines()] for part in run)
        kept = [line[1:] + "\n" for line in run[0].splitlines() if line.startswith(" ")]
        at = text.index("".join(old), place)
        place = at + len("".join(kept + new))
        text = text[:at] + "".join(kept + new) + text[at + len("".join(old)) :]
    return text


def test_each_diff_fits_the_code() -> None:
    """The lines that a worked example changes are those of the code."""
    diffs = [
        (file, block)
        for kind, file, block in BLOCK.findall((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
        if kind == "diff"
    ]
    assert diffs
    for file, block in diffs:
        text = (ROOT / file).read_text(encoding="utf-8")
        assert changed(text, block) != text, file


@pytest.mark.slow
def test_each_worked_example_does_what_it_says(tmp_path: Path) -> None:
    """A retriever with its prompts, a metric, a reader, a splitter and a node: made, checked and tested."""
    copied = shutil.ignore_patterns("__pycache__")
    for folder in ("rag_kit", "prompts"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=copied)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    tests = []
    for kind, file, block in BLOCK.findall((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")):
        path = tmp_path / file
        path.parent.mkdir(parents=True, exist_ok=True)
        assert path.exists() == (kind == "diff"), file
        path.write_text(
            changed(path.read_text(encoding="utf-8"), block) if kind == "diff" else block, encoding="utf-8"
        )
        tests += [file] if file.startswith("tests/") else []
    assert len(tests) == 5
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONUTF8": "1"}
    for command in (["rag_kit.cli", "prompts", "check"], ["pytest", "-q", "-p", "no:cacheprovider", *tests]):
        done = subprocess.run(
            [sys.executable, "-m", *command],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            encoding="utf-8",
        )
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
