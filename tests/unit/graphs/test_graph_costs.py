"""The guide's table of what one question costs each graph."""

from __future__ import annotations

from support.scripts import ROOT, load_script


def test_the_guide_says_what_a_question_costs() -> None:
    """Both languages have the calls and tokens that are counted now; a run of Self-RAG judges in few calls."""
    costs = load_script("benchmarks/speed/graph_costs.py")
    measured = costs.measure()
    for language in ("en", "zh"):
        page = (ROOT / "docs" / "guide" / language / "answers.md").read_text(encoding="utf-8")
        assert costs.table(language, measured) in page, "run python benchmarks/speed/graph_costs.py --write"
    by_name = dict(zip((case[0] for case in costs.CASES), measured, strict=True))
    assert by_name["plain"][0] == 1 and by_name["Self-RAG, paper: three segments"][0] == 25
