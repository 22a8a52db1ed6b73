"""The guide's table of what one question costs each graph."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = ROOT / "benchmarks" / "speed" / "graph_costs.py"


@pytest.mark.skipif(not SCRIPT.is_file(), reason="the benchmarks are not in the wheel")
def test_the_guide_says_what_a_question_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both languages have the calls and tokens that are counted now; a run of Self-RAG judges in few calls."""
    spec: Any = importlib.util.spec_from_file_location("graph_costs", SCRIPT)
    costs = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "graph_costs", costs)
    spec.loader.exec_module(costs)
    measured = costs.measure()
    for language in ("en", "zh"):
        page = (ROOT / "docs" / "guide" / language / "answers.md").read_text(encoding="utf-8")
        assert costs.table(language, measured) in page, "run python benchmarks/speed/graph_costs.py --write"
    by_name = dict(zip((case[0] for case in costs.CASES), measured, strict=True))
    assert by_name["plain"][0] == 1 and by_name["Self-RAG, paper: three segments"][0] == 25
