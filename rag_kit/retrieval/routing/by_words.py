"""Routing by words in common, without any model."""

from __future__ import annotations

from collections.abc import Sequence

from rag_kit.retrieval.routing.options import Option
from rag_kit.retrieval.routing.route import Choice
from rag_kit.retrieval.routing.routers import Router, RouterCall, Ruling, check_selection
from rag_kit.text.likeness import WordLikeness

_LEAST = 1e-6
_SHOWN = 6


class KeywordRouter(Router):
    """Choose the options whose names, descriptions and examples share the question's words.

    Words that few options have count more; see ``rag_kit.text.likeness.WordLikeness`` for the score, 0 to 1.

    Args:
        threshold: Least score that fits; ``None`` for any word in common.
        margin: How far a further option may be behind the best one; ``None`` for any distance.

    Raises:
        InvalidInputError: If a number is not allowed.
    """

    name = "keywords"

    def __init__(self, threshold: float | None = None, margin: float | None = None) -> None:
        self._selection = check_selection(threshold, margin, _LEAST)
        self._likeness = WordLikeness([])
        self._places: dict[str, int] = {}

    def prepare(self, options: Sequence[Option]) -> None:
        """Analyse the texts of all options."""
        self._likeness = WordLikeness([option.texts for option in options])
        self._places = {option.name: place for place, option in enumerate(options)}

    async def decide(self, call: RouterCall) -> Ruling:
        """Compare the words; see ``Router.decide``."""
        names = [option.name for option in call.options]
        found = self._likeness.scores(call.question, [self._places[name] for name in names])
        scores = {name: round(score, 6) for name, score in zip(names, found, strict=True)}
        # No word in common is no sign of anything, whatever the threshold.
        fitting = {name: score for name, score in scores.items() if score > 0}
        chosen = self._selection.names(fitting, call.most)
        return Ruling(
            [Choice(name, scores[name], self._reason(call.question, name)) for name in chosen], scores
        )

    def _reason(self, question: str, name: str) -> str:
        words = self._likeness.shared(question, self._places[name])
        return f"shared words: {', '.join(words[:_SHOWN])}"
