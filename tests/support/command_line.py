"""The command line in the process itself, and indexes that it made."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from rag_kit.cli import exits
from rag_kit.cli.main import main


def ingest_pages(base: Path, pages: Mapping[str, str]) -> Path:
    """Write pages into a folder, and return the keyword index of it that ``rag-kit ingest`` makes beside it."""
    for name, text in pages.items():
        path = base / "docs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    arguments = ["ingest", base / "docs", "--index", base / "index", "--embedding-model", "none", "--quiet"]
    assert main([str(argument) for argument in arguments]) == exits.OK
    return base / "index"


def run_command(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    """Run a command; return its exit code, and what it wrote on stdout and stderr."""
    capsys.readouterr()
    code = main([str(argument) for argument in arguments])
    return code, *capsys.readouterr()
