"""A folder of documents and its keyword index, made once for the tests of the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.command_line import ingest_pages


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small folder of documents and, beside it, its keyword index."""
    base = tmp_path_factory.mktemp("cli")
    pages = {
        "pump.md": "# Pump\n\n## Start\n\nThe pump starts at 40 degrees.\n",
        "风扇.md": "# 风扇\n\n风扇在六十度时启动，噪音很大 🔥 é。\n",
        "evil.md": "# Evil\n\nThe valve \x1b[31m opens\u202e at noon <script>x</script>.\n",
    }
    ingest_pages(base, pages)
    return base


@pytest.fixture
def index(folder: Path) -> Path:
    """The index of that folder."""
    return folder / "index"
