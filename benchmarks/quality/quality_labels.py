"""Do intervals with labels by people cover the truth? Means and differences, three judges, three labelled sets.

    python benchmarks/quality/quality_labels.py DATA [--draws 3000]

Claims of wice (dev), scifact and rgb have labels by people: the truth. A judge gives each claim a value: the kit's
check of citations by words (what it leaves undecided is 0), a coin, and a scripted one that is right on four of five
supported claims and on half of the others. A draw takes 300 claims of the set, with replacement, and labels the first
10, 20 or 60 of them; the truth is the mean label of the set. Of two pipelines the second gives, on two of five
questions, a claim that is not supported. Beside it: how often the judge's own interval covers. Writes
benchmarks/results/labels.json.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import numpy as np
from quality_scorer import score
from scorer_claims import Claim, load, load_rgb
from shared import RESULTS, arguments, save

from rag_kit.evaluation.statistics import labelled_mean

LABELS = (10, 20, 60)
CLAIMS = 300  # of a run


def judges(claims: list[Claim], truth: np.ndarray, draw: np.random.Generator) -> dict[str, np.ndarray]:
    """Values of each judge."""
    cells = asyncio.run(score("ours_citations", claims, None, 16))
    words = np.array([cell.value or 0.0 for cell in cells])
    right = draw.random(len(truth)) < np.where(truth == 1, 0.8, 0.5)
    coin = (draw.random(len(truth)) < 0.5).astype(float)
    return {"ours_citations": words, "coin": coin, "noisy": np.where(right, truth, 1 - truth)}


def covered(
    truth: np.ndarray, values: np.ndarray, labels: int, draws: int, *, of_differences: bool
) -> dict[str, Any]:
    """How often the interval with labels and the judge's own cover, and how wide the first is."""
    draw, real = np.random.default_rng(0), float(truth.mean())
    hits, judge_hits, widths = 0, 0, []
    for _ in range(draws):
        taken = draw.integers(0, len(truth), CLAIMS)
        every = values[taken]
        known = dict(enumerate(truth[taken[:labels]].tolist()))
        found = labelled_mean(dict(enumerate(every.tolist())), known, of_differences=of_differences)  # type: ignore[arg-type]
        assert found is not None
        hits += found.low - 1e-9 <= real <= found.high + 1e-9
        widths.append(found.high - found.low)
        judge_hits += abs(every.mean() - real) <= 1.96 * every.std(ddof=1) / len(every) ** 0.5
    return {
        "what": "difference" if of_differences else "mean", "claims": len(truth), "truth": real,
        "judge": float(values.mean()), "labels": labels, "coverage": hits / draws,
        "judge_coverage": judge_hits / draws, "width": float(np.mean(widths)),
    }  # fmt: skip


def main() -> None:
    """Read the command line, measure, write."""
    parser = arguments(__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--draws", type=int, default=3000)
    parser.add_argument("--out", type=Path, default=RESULTS / "labels.json")
    options = parser.parse_args()
    rows = []
    claims = [*load(options.data), *load_rgb(options.data)]
    for name in dict.fromkeys(claim.set for claim in claims):
        own = [claim for claim in claims if claim.set == name]
        supported = np.array([float(claim.kind == "supported") for claim in own])
        draw = np.random.default_rng(1)
        other, worse = np.arange(len(own)), draw.random(len(own)) < 0.4
        other[worse] = draw.choice(np.flatnonzero(supported == 0), worse.sum())
        for judge, values in judges(own, supported, draw).items():
            pairs = (supported, values), (supported - supported[other], values - values[other])
            for (truth, said), of_differences in zip(pairs, (False, True), strict=True):
                for labels in LABELS:
                    row = covered(truth, said, labels, options.draws, of_differences=of_differences)
                    rows.append({"set": name, "judge_name": judge, **row})
                    print(json.dumps(rows[-1]), flush=True)
    save(options.out, {"draws": options.draws, "rows": rows})


if __name__ == "__main__":
    main()
