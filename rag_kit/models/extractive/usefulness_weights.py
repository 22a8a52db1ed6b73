"""Weights of `usefulness`, written by benchmarks/fit_evaluator.py: for passages alone and beside others."""

from __future__ import annotations

WEIGHTS: dict[tuple[str, str], dict[str, float]] = {
    ("alone", "words"): {
        "bias": -5.35,
        "own": 1.72,
        "near": 0.28,
        "passage": 0.04,
        "title": 1.79,
        "score": 2.18,
        "kind": 0.14,
        "open": 0.24,
        "terms": 1.07,
        "timed": -0.75,
        "recent": 0.63,
        "outside": -0.45,
    },
    ("beside", "words"): {
        "bias": -3.29,
        "own": 1.16,
        "near": 0.24,
        "title": 1.58,
        "score": 1.05,
        "open": 0.14,
        "terms": 0.46,
        "timed": -0.37,
        "edges": 0.13,
        "recent": 0.53,
        "outside": -0.5,
        "crowd": -0.76,
        "lead passage": 1.66,
        "lead score": 1.53,
        "repeated": 8.54,
    },
}
