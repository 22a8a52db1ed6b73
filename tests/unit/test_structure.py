"""The check of the library's shape."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "check_structure.py"


@pytest.mark.skipif(not SCRIPT.exists(), reason="only the wheel is here")
def test_circles_of_folders_are_found() -> None:
    """Two folders that import each other, by files that do not."""
    spec = importlib.util.spec_from_file_location("check_structure", SCRIPT)
    assert spec is not None and spec.loader is not None
    check = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(check)
    graph = {
        "kit.a.one.x": {"kit.a.two.x", "kit.a.one.y"},
        "kit.a.one.y": set(),
        "kit.a.two.x": {"kit.a.base"},
        "kit.a.two.y": {"kit.a.one.y"},
        "kit.a.base": set(),
    }
    assert check.circles(graph) == []
    assert check.circles(check.of_folders(graph)) == [["kit.a.one", "kit.a.two"]]
