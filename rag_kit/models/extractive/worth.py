"""How much a sentence is worth as evidence, from 0 to 1; what is beside the point is worth nothing."""

from __future__ import annotations

from rag_kit.models.extractive.evidence import FEATURES, Candidate
from rag_kit.models.extractive.select import WEIGHTS, score

LEAST_NEAR = 0.1
"""Share of the question's weight that must stand in the sentence, its neighbours and the title."""

_HIGHEST = sum(weight for weight in WEIGHTS if weight > 0)
_NEAR, _SOFT = FEATURES.index("near"), FEATURES.index("soft")
# What speaks for a sentence by itself, not for the ones beside it.
_OWN = tuple(FEATURES.index(name) for name in ("cover", "soft", "kind", "edges", "overlap"))


def worth(found: Candidate, least_near: float = LEAST_NEAR) -> float:
    """The score of a sentence as a share of the highest possible one.

    Returns:
        0 if too little of the question is near it, or it holds neither a word of the question nor what is asked for
        itself (docs/decisions/0132-lexical-compression.md); else above 0, at most 1.

    Example:
        >>> from rag_kit.models.extractive.evidence import PassageText, collect
        >>> from rag_kit.models.extractive.question import analyse
        >>> passage = PassageText(1, "The fan is loud. Tea is hot.")
        >>> [worth(one) > 0 for one in collect(analyse("Is the fan loud?"), [passage])]
        [True, False]
    """
    features = found.features
    enough = max(features[_NEAR], features[_SOFT]) >= max(least_near, 1e-9)
    own = any(features[place] > 0 for place in _OWN)
    return max(0.0, score(found) / _HIGHEST) if enough and own else 0.0
