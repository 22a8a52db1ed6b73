"""Plots of comparisons and results: matplotlib figures, and the same as SVG for a page, light or dark.

matplotlib is imported when a plot is drawn; no global state of it is used or changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_kit._lazy import lazy_attributes

if TYPE_CHECKING:
    from rag_kit.evaluation.plots.heatmap import complementarity_heatmap
    from rag_kit.evaluation.plots.histogram import confidence_histogram
    from rag_kit.evaluation.plots.scores import latency_against_quality, scores_with_intervals
    from rag_kit.evaluation.plots.style import VARIABLES
    from rag_kit.evaluation.plots.svg import to_svg

__all__ = [
    "VARIABLES",
    "complementarity_heatmap",
    "confidence_histogram",
    "latency_against_quality",
    "scores_with_intervals",
    "to_svg",
]

__getattr__, __dir__ = lazy_attributes(
    __name__,
    {
        "VARIABLES": ".style",
        "complementarity_heatmap": ".heatmap",
        "confidence_histogram": ".histogram",
        "latency_against_quality": ".scores",
        "scores_with_intervals": ".scores",
        "to_svg": ".svg",
    },
)
