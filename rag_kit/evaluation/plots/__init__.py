"""Plots of comparisons and results as SVG: for Jupyter, for files, and for pages that are light or dark."""

from __future__ import annotations

from rag_kit.evaluation.plots.drawing import Plot
from rag_kit.evaluation.plots.histogram import confidence_histogram
from rag_kit.evaluation.plots.scores import (
    complementarity_heatmap,
    latency_against_quality,
    scores_with_intervals,
)

__all__ = [
    "Plot",
    "complementarity_heatmap",
    "confidence_histogram",
    "latency_against_quality",
    "scores_with_intervals",
]
