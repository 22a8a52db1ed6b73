"""The table of the kit beside LlamaIndex and Haystack, from benchmarks/results/peers.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

RESULT = Path(__file__).resolve().parent / "results" / "peers.json"


def load() -> dict[str, Any]:
    """What ``make bench BENCH=peers`` wrote."""
    result: dict[str, Any] = json.loads(RESULT.read_text(encoding="utf-8"))
    return result


def head(result: dict[str, Any]) -> list[str]:
    """What is measured, the yardstick, and one column a side."""
    return [
        "measured",
        "as a multiple of",
        *(f"{side['name']} {side['version']}" for side in result["sides"]),
    ]


def rows(result: dict[str, Any]) -> list[list[str]]:
    """One row for each measurement of the kit; the lowest ratio is bold."""
    found = []
    for what in result["sides"][0]["figures"]:
        figures = [side["figures"].get(what) for side in result["sides"]]
        best = min(figure for figure in figures if figure is not None)
        yardstick = "a bare dict loop" if what.startswith("fusion") else "the critical path"
        found.append([what, yardstick, *(_cell(figure, best) for figure in figures)])
    return found


def note(result: dict[str, Any]) -> str:
    """How it was measured."""
    text = f"Medians of {result['rounds']} rounds, each side in an environment of its own."
    load = result.get("load_per_cpu")
    if load and load > 0.5:
        text += f" The machine was shared ({load:.1f} running processes a core): ratios near 1 are within its noise."
    return text


def _cell(figure: float | None, best: float) -> str:
    if figure is None:
        return "–"
    return f"**{figure:.2f}**" if figure == best else f"{figure:.2f}"
