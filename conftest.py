"""Only modules with examples are imported for doctests; those that need an extra have none."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(
    file_path: Path,
) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Leave out the doctests of a file without an example: each process would import the file and search it."""
    collectors = yield
    if b">>> " in file_path.read_bytes():
        return collectors
    return [collector for collector in collectors if type(collector).__name__ != "DoctestModule"]
