"""A folder of documents and its keyword index, made once for the tests of the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from rag_kit.cli import exits
from rag_kit.cli.main import main


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small folder of documents and, beside it, its keyword index."""
    base = tmp_path_factory.mktemp("cli")
    docs = base / "docs"
    docs.mkdir()
    (docs / "pump.md").write_text("# Pump\n\n## Start\n\nThe pump starts at 40 degrees.\n", encoding="utf-8")
    (docs / "风扇.md").write_text("# 风扇\n\n风扇在六十度时启动，噪音很大 🔥 é。\n", encoding="utf-8")
    (docs / "evil.md").write_text(
        "# Evil\n\nThe valve \x1b[31m opens\u202e at noon <script>x</script>.\n", encoding="utf-8"
    )
    code = main(["ingest", str(docs), "--index", str(base / "index"), "--embedding-model", "none", "--quiet"])
    assert code == exits.OK
    return base


@pytest.fixture
def index(folder: Path) -> Path:
    """The index of that folder."""
    return folder / "index"
