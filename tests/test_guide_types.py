"""Snippets of README and guide pass ``mypy --strict``."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from rag_kit.errors import InvalidInputError
from rag_kit.models import chat_model
from rag_kit.retrieval import BM25Retriever

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


def checked(checker: str, name: str, folder: Path) -> tuple[str, list[int]]:
    """Give what mypy (strict) or pyright prints of a copy of a program of ``tests/support``, and lines of errors."""
    pytest.importorskip(checker)
    program = folder / name
    program.write_text((ROOT / "tests" / "support" / name).read_text(encoding="utf-8"), encoding="utf-8")
    options = {
        "mypy": ["--strict", "--config-file", os.devnull, "--cache-dir", str(folder / "cache")],
        "pyright": ["--pythonpath", sys.executable],
    }[checker]
    done = subprocess.run(
        [sys.executable, "-m", checker, *options, str(program)],
        cwd=folder,
        env={**os.environ, "MYPYPATH": str(ROOT), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    said = done.stdout + done.stderr
    assert re.search(r"^Success|^Found \d+ error|^\d+ errors", done.stdout, re.MULTILINE), said
    lines = re.findall(rf"^.*{name}:(\d+).*error.*$", done.stdout, re.MULTILINE)
    return said, [int(line) for line in lines]


each_checker = pytest.mark.parametrize("checker", ["mypy", "pyright"])


@pytest.mark.slow
@each_checker
def test_a_users_program_passes(checker: str, tmp_path: Path) -> None:
    """A small typed application of the public face passes ``mypy --strict`` and pyright, and runs."""
    said, errors = checked(checker, "user_program.py", tmp_path)
    assert not errors, said


@pytest.mark.slow
@each_checker
def test_runnables_are_accepted_and_misspelt_settings_refused(checker: str, tmp_path: Path) -> None:
    """``with_fallbacks`` and ``with_retry`` fit wherever they work; a wrong setting is an error in its line."""
    program = (ROOT / "tests" / "support" / "typed_parts.py").read_text(encoding="utf-8").splitlines()
    refused = {number for number, line in enumerate(program, 1) if line.endswith("# refused")}
    said, errors = checked(checker, "typed_parts.py", tmp_path)
    assert len(refused) > 9 and set(errors) == refused, said


def test_what_the_types_accept_runs() -> None:
    """Models with fallbacks and retrievers that retry work in every graph, and a right setting is one."""
    from support.embedding import WordEmbeddings
    from support.typed_parts import DOCUMENTS, mistakes, use

    assert set(use("When does the pump start?")) == {"grounded"}
    made = mistakes(chat_model("extractive"), BM25Retriever.from_documents(DOCUMENTS), WordEmbeddings())
    for right, wrong in zip(made[::2], made[1::2], strict=True):
        assert right()
        with pytest.raises(InvalidInputError):
            wrong()


def test_the_users_program_runs(tmp_path: Path) -> None:
    """The program that is checked above does what it says."""
    from support.user_program import answer, main, passages

    main(tmp_path)
    question = "When does the pump start?"
    assert "40 degrees" in answer(question, tmp_path) and "40 degrees" in passages(question, tmp_path)[0]
