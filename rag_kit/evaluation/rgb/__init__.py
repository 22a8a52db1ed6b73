"""The four abilities that RGB measures (Chen et al., 2023, https://arxiv.org/abs/2309.01431).

Importing this package imports no LangChain; each name loads what it needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_kit._lazy import lazy_attributes

if TYPE_CHECKING:
    from rag_kit.evaluation.rgb.given import GivenPassages
    from rag_kit.evaluation.rgb.report import AbilityReport, AbilityScore
    from rag_kit.evaluation.rgb.running import aabilities, abilities

__all__ = ["AbilityReport", "AbilityScore", "GivenPassages", "aabilities", "abilities"]

__getattr__, __dir__ = lazy_attributes(
    __name__,
    {
        "AbilityReport": ".report",
        "AbilityScore": ".report",
        "GivenPassages": ".given",
        "aabilities": ".running",
        "abilities": ".running",
    },
)
