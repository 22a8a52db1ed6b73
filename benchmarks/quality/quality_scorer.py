"""Does the scorer tell the truth? Faithfulness and citations beside labels that people gave.

    python quality_scorer.py DATA [--judge openai:gpt-5.5] [--limit 100] [--cache FILE] [--scorers ...]

Each claim of wice and scifact is an answer, its evidence the one passage that was retrieved. `faithfulness` is
Ragas's, asked through the judge (default: RAG_KIT_CHAT_MODEL; without a model only the other is measured), and takes a
claim as supported where every statement of it is; `ours_citations` is the check by words, without a judge. Balanced
accuracy and Cohen's kappa are of that decision, ROC-AUC of the value; 95% bootstrap intervals that draw claims. What
has no value is left out and counted. Nothing is fitted here. Writes benchmarks/results/scorer.json.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scorer_claims import Claim, load
from shared import AT_START, RESULTS, arguments
from sklearn.metrics import balanced_accuracy_score, cohen_kappa_score, roc_auc_score

from rag_kit.concurrency import afan_out_map
from rag_kit.evaluation.cells import Cell
from rag_kit.evaluation.examples import Example
from rag_kit.evaluation.judge.judge import Judge
from rag_kit.evaluation.outputs import Output, Passage
from rag_kit.evaluation.scorers import get_metric
from rag_kit.models import chat_model
from rag_kit.models.model_call import is_extractive

RESULT = RESULTS / "scorer.json"
RESAMPLES = 2_000
MEASURES = ("balanced_accuracy", "auc", "kappa")
SCORERS = ("faithfulness", "ours_citations")
_QUESTION = "What do the documents say about it?"


def tasks(claims: Sequence[Claim]) -> dict[str, list[Claim]]:
    """All claims of each set; then the supported ones against each other kind."""
    found = {}
    for name in dict.fromkeys(claim.set for claim in claims):
        own = [claim for claim in claims if claim.set == name]
        found[f"{name}: supported / all others"] = own
        for kind in dict.fromkeys(claim.kind for claim in own if claim.kind != "supported"):
            found[f"{name}: supported / {kind}"] = [c for c in own if c.kind in ("supported", kind)]
    return found


async def score(scorer: str, claims: Sequence[Claim], judge: Judge | None, at_once: int) -> list[Cell]:
    """A cell for each claim."""
    metric = get_metric(scorer)
    mark = " [1]" if scorer == "ours_citations" else ""

    async def one(claim: Claim) -> Cell:
        output = Output(answer=claim.text + mark, passages=(Passage("evidence", claim.evidence),))
        return await metric.measure(Example(claim.id, _QUESTION), output, judge)

    return (await afan_out_map(one, claims, max_concurrency=at_once)).values


def measured(name: str, claims: Sequence[Claim], values: dict[str, float]) -> dict[str, Any]:
    """A row of the table: each measure with value, low and high (95%, percentile bootstrap that draws groups)."""
    scored = [claim for claim in claims if claim.id in values]
    found = np.array([values[claim.id] for claim in scored])
    truth = np.array([claim.kind == "supported" for claim in scored])
    decided = found >= 1 - 1e-9
    groups = np.unique([claim.group for claim in scored], return_inverse=True)[1]
    draw = np.random.default_rng(0)
    drawn = []
    for _ in range(RESAMPLES):
        times = np.bincount(draw.integers(0, groups.max() + 1, groups.max() + 1), minlength=groups.max() + 1)
        weights = times[groups]
        if len(set(truth[weights > 0])) == 2:  # else no measure is defined
            drawn.append(agreement(found, decided, truth, weights))
    low, high = np.quantile(drawn, [0.025, 0.975], axis=0)
    result: dict[str, Any] = {"task": name, "claims": len(claims), "scored": len(scored)}
    result["supported"] = float(truth.mean())
    for number, value in enumerate(agreement(found, decided, truth, np.ones(len(truth)))):
        result[MEASURES[number]] = {"value": value, "low": float(low[number]), "high": float(high[number])}
    result["true_positive_rate"] = float(decided[truth].mean())
    result["true_negative_rate"] = float((~decided[~truth]).mean())
    return result


def agreement(
    scores: np.ndarray, decided: np.ndarray, truth: np.ndarray, weights: np.ndarray
) -> tuple[float, float, float]:
    """Balanced accuracy, AUC and kappa where each row counts as often as its weight says."""
    return (
        float(balanced_accuracy_score(truth, decided, sample_weight=weights)),
        float(roc_auc_score(truth, scores, sample_weight=weights)),
        float(cohen_kappa_score(truth, decided, sample_weight=weights)),
    )


async def run(options: argparse.Namespace) -> None:
    """Score, measure, write."""
    claims = load(options.data)
    if options.limit:
        groups = sorted({claim.group for claim in claims})
        random.Random(0).shuffle(groups)
        by_set = {name: [g for g in groups if g.startswith(name)] for name in {c.set for c in claims}}
        kept = {group for own in by_set.values() for group in own[: options.limit]}
        claims = [claim for claim in claims if claim.group in kept]
    for scorer in options.scorers:
        judged = get_metric(scorer).needs_judge
        judge = Judge(options.judge, "none", cache=options.cache) if judged else None
        name = scorer if judge is None else f"{scorer} / {judge.name}"
        cells = await score(scorer, claims, judge, options.at_once)
        values = {c.id: cell.value for c, cell in zip(claims, cells, strict=True) if cell.value is not None}
        missing = [cell for cell in cells if cell.value is None]
        for cell in missing[:3]:
            print(f"{name}: {cell.status}: {cell.reason:.200}", flush=True)
        rows = [measured(task, own, values) for task, own in tasks(claims).items()]
        for row in rows:
            print(name, json.dumps(row), flush=True)
        written = json.loads(options.out.read_text(encoding="utf-8")) if options.out.is_file() else {}
        entry = {
            **AT_START, "rows": rows, "judge": None if judge is None else judge.name,
            "limit": options.limit, "errors": sum(cell.status == "error" for cell in missing),
        }  # fmt: skip
        options.out.write_text(json.dumps({**written, name: entry}, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    """Read the command line."""
    parser = arguments(__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--judge", help="name of a chat model; default: the configured one")
    parser.add_argument("--scorers", nargs="*", default=list(SCORERS), choices=SCORERS)
    parser.add_argument("--limit", type=int, help="claims of each set; default: all")
    parser.add_argument("--cache", type=Path, help="file that keeps the judge's replies")
    parser.add_argument("--at-once", type=int, default=16, help="claims scored at a time")
    parser.add_argument("--out", type=Path, default=RESULT)
    options = parser.parse_args()
    if options.judge is None and is_extractive(chat_model()) and "faithfulness" in options.scorers:
        print("faithfulness needs a language model: --judge NAME, or RAG_KIT_CHAT_MODEL", flush=True)
        options.scorers = [each for each in options.scorers if each != "faithfulness"]
    asyncio.run(run(options))


if __name__ == "__main__":
    main()
