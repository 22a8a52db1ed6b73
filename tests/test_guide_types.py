"""What the guide shows passes a type checker: README's and the guide's snippets under ``mypy --strict``."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", ROOT / "README.zh.md", *sorted((ROOT / "docs" / "guide").rglob("*.md"))]
_BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
#: A reader's own functions in the snippets bear no annotations, and optional packages may not be there.
_READER = [
    "--allow-untyped-defs",
    "--allow-incomplete-defs",
    "--allow-untyped-calls",
    "--ignore-missing-imports",
]


@pytest.mark.slow
def test_snippets_pass_a_type_checker(tmp_path: Path) -> None:
    """The first snippet of each page, and all of a page that begins with a graph (settings, threads, own nodes)."""
    pytest.importorskip("mypy", reason="mypy is not installed (extra check)")
    files = []
    for page in PAGES:
        blocks = _BLOCK.findall(page.read_text(encoding="utf-8"))
        if not (blocks and "rag_kit.graphs" in blocks[0]):
            blocks = blocks[:1]
        if blocks:
            name = re.sub(r"\W", "_", str(page.relative_to(ROOT).with_suffix("")))
            files.append(tmp_path / f"{name}.py")
            files[-1].write_text("\n".join(blocks), encoding="utf-8")
    assert len(files) > 40 and any("context={" in file.read_text(encoding="utf-8") for file in files)
    cache = ["--cache-dir", str(tmp_path / "cache"), "--config-file", os.devnull, "--no-error-summary"]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", *_READER, *cache, *map(str, files)],
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    errors = [
        line for line in done.stdout.splitlines() if line.partition(":")[0] in {file.name for file in files}
    ]
    assert not errors, "\n".join(errors)
    assert done.returncode in (0, 1), done.stdout[-2000:] + done.stderr[-2000:]  # 2: it did not run


@pytest.mark.slow
@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_a_users_program_passes(checker: str, tmp_path: Path) -> None:
    """A small typed application of the public face passes ``mypy --strict`` and pyright, and runs."""
    pytest.importorskip(checker)
    program = tmp_path / "user_program.py"
    program.write_text(
        (ROOT / "tests" / "support" / program.name).read_text(encoding="utf-8"), encoding="utf-8"
    )
    options = {
        "mypy": ["--strict", "--config-file", os.devnull, "--cache-dir", str(tmp_path / "cache")],
        "pyright": ["--pythonpath", sys.executable],
    }[checker]
    done = subprocess.run(
        [sys.executable, "-m", checker, *options, str(program)],
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": str(ROOT), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert not re.findall(rf"^.*{program.name}:.*error.*$", done.stdout, re.MULTILINE), done.stdout
    assert re.search(r"^Success|^Found \d+ error|^0 errors", done.stdout, re.MULTILINE), (
        done.stdout + done.stderr
    )


def test_the_users_program_runs(tmp_path: Path) -> None:
    """The program that is checked above does what it says."""
    from support.user_program import answer, main, passages

    main(tmp_path)
    question = "When does the pump start?"
    assert "40 degrees" in answer(question, tmp_path) and "40 degrees" in passages(question, tmp_path)[0]
