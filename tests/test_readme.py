"""The blocks of README and of the guide run as they stand."""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import re
import shutil
import sys
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import pytest
from chromadb.api.shared_system_client import SharedSystemClient

ROOT = Path(__file__).resolve().parent.parent
FIRST_PAGES = [ROOT / name for name in ("README.md", "README.zh.md", "docs/index.md")]
PAGES = [*FIRST_PAGES, *sorted((ROOT / "docs" / "guide").rglob("*.md"))]
#: What the blocks read beside their own page; the slow tier reads the whole guide.
FEW_PAGES = ("quickstart.md", "retrieval.md")
_BLOCK = re.compile(r"^```python( no-run)?\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks() -> list[object]:
    """Each Python block; a page's blocks run one after the other in one process, as a reader would.

    The Chinese pages have the code of the English ones and run in the slow tier.
    """
    found = []
    for page in PAGES:
        code = [body for no_run, body in _BLOCK.findall(page.read_text(encoding="utf-8")) if not no_run]
        if code:
            name = str(page.relative_to(ROOT))
            chinese = "zh" in name.replace(".", "/").split("/")
            found.append(
                pytest.param(page, code, chinese, id=name, marks=[pytest.mark.slow] if chinese else [])
            )
    return found


@pytest.mark.parametrize(("page", "code", "whole_guide"), blocks())
def test_python_blocks_run_and_print_what_they_say(
    page: Path, code: list[str], whole_guide: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every block runs; a comment `# -> text` after a print is what it prints, but for what "..." leaves out."""
    program = "\n".join(code)
    guide = tmp_path / "docs" / "guide"  # some blocks read the guide itself
    if whole_guide:
        shutil.copytree(ROOT / "docs" / "guide", guide)
    else:
        (guide / "en").mkdir(parents=True)
        for source in (ROOT / "docs" / "guide" / "en").glob("*.md"):
            if source.name in (*FEW_PAGES, page.name):
                shutil.copy(source, guide / "en")
    monkeypatch.chdir(tmp_path)
    # in this process, where everything is imported: a process a page took two minutes of the whole suite
    module = ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", module)  # where dataclasses and schemas look for their names
    for name in ("_identifier_to_system", "_identifier_to_refcount"):  # an in-memory Chroma is one a process
        monkeypatch.setattr(SharedSystemClient, name, {})
    starts = set()

    def print_from_here(*values: Any, **options: Any) -> None:
        starts.add(out.tell())
        print(*values, **options)

    vars(module)["print"] = print_from_here
    with mock.patch.dict(os.environ), contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(program, f"<{page.name}>", "exec", dont_inherit=True), module.__dict__)
    printed = out.getvalue()
    position = 0
    for line_before, expected in re.findall(r"(?<=\n)(?=(.*)\n *# -> (.*))", program):
        text = expected.removeprefix("... ")
        assert text in printed[position:], f"{page.name} does not print {text!r} there:\n{printed}"
        position = printed.index(text, position)
        assert position in starts or text != expected or "# -> " in line_before, (
            f"more is printed before {text!r}"
        )
        position += len(text)


def test_readme_has_blocks_to_run() -> None:
    """The block finder finds what README holds, so that the test above cannot pass by finding nothing."""
    assert len(_BLOCK.findall((ROOT / "README.md").read_text(encoding="utf-8"))) >= 2


_RETRIEVERS = set(re.findall(r"`(\w+Retriever)`", (ROOT / "README.md").read_text(encoding="utf-8")))


@pytest.mark.parametrize("name", sorted(_RETRIEVERS - {"BaseRetriever"}))
def test_a_retriever_of_the_table_is_where_a_reader_looks_first(name: str) -> None:
    """``rag_kit.retrieval`` has it, or names the module that has."""
    package: Any = importlib.import_module("rag_kit.retrieval")
    try:
        found = getattr(package, name)
    except AttributeError as error:
        module = re.search(r"rag_kit\.(?!retrieval\b)[\w.]*\w|$", str(error))[0]  # type: ignore[index]
        found = getattr(importlib.import_module(module or "rag_kit"), name, error)
    assert isinstance(found, type) and issubclass(found, package.RagKitRetriever), found


def test_the_table_of_retrievers_is_found() -> None:
    """The names that the test above asks for are those of the table."""
    assert len(_RETRIEVERS) > 20 and "SelfQueryRetriever" in _RETRIEVERS
