"""The table of docs/benchmarks.md about RGB's abilities, from results/abilities.json."""

from __future__ import annotations

import json
from pathlib import Path

RESULT = Path(__file__).resolve().parent / "results" / "abilities.json"
HEAD = ["ability", "figure", "language", "noise 0", "0.2", "0.4", "0.6", "0.8", "1"]
_RATES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)


def rows() -> list[list[str]]:
    """One row an ability, figure and language; counterfactual passages have no noise rate and stand under 0."""
    found: dict[tuple[str, str, str], dict[float, str]] = {}
    for score in json.loads(RESULT.read_text(encoding="utf-8"))["scores"]:
        key = (score["ability"], score["metric"], score["language"])
        value = "no reply counts"
        if score["value"] is not None:
            value = "{value:.2f} [{low:.2f}, {high:.2f}]".format(**score)
        found.setdefault(key, {})[score["noise_rate"] or 0.0] = value
    return [
        [*(part.replace("_", " ") for part in key[:2]), key[2], *(cells.get(rate, "–") for rate in _RATES)]
        for key, cells in found.items()
    ]
