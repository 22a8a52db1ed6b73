"""Compare pipelines over the same questions: differences with intervals and tests, costs, complementarity, slices.

Importing this package imports neither numpy nor SciPy; each name loads what it needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_kit._lazy import lazy_attributes

if TYPE_CHECKING:
    from rag_kit.evaluation.comparing.comparison import Comparison, compare
    from rag_kit.evaluation.comparing.complementary import Complementarity, Step
    from rag_kit.evaluation.comparing.pairs import Pair
    from rag_kit.evaluation.comparing.scores import Score
    from rag_kit.evaluation.comparing.significance import (
        McNemar,
        SignFlip,
        adjust,
        mcnemar_test,
        sign_flip_test,
    )
    from rag_kit.evaluation.comparing.slicing import Slice

__all__ = [
    "Comparison",
    "Complementarity",
    "McNemar",
    "Pair",
    "Score",
    "SignFlip",
    "Slice",
    "Step",
    "adjust",
    "compare",
    "mcnemar_test",
    "sign_flip_test",
]

__getattr__, __dir__ = lazy_attributes(
    __name__,
    {
        "Comparison": ".comparison",
        "Complementarity": ".complementary",
        "McNemar": ".significance",
        "Pair": ".pairs",
        "Score": ".scores",
        "SignFlip": ".significance",
        "Slice": ".slicing",
        "Step": ".complementary",
        "adjust": ".significance",
        "compare": ".comparison",
        "mcnemar_test": ".significance",
        "sign_flip_test": ".significance",
    },
)
