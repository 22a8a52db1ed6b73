"""Whether a whole text supports a statement: by a quote, or by what its sentences say together.

A check of citations asks for one quote that says it all. A judge of answers reads all that was retrieved, and a
statement of a long answer often joins what stands in several places. So where no quote is enough, but none speaks
against the statement either, it counts as supported when every number and name of it and most of its words are in
the text (docs/decisions/0230-what-the-embedded-judge-takes-for-support.md).
"""

from __future__ import annotations

from rag_kit.text.citations.match import Source, Verdict, judge
from rag_kit.text.citations.tokens import tokens

SHARE = 0.7
"""Share of a statement's words that the text must hold where no quote is enough."""

_MAX_TOKENS = 100_000
_CHANGED = 0.75
"""From this share on a quote is the statement itself but for a number or a name: that was changed."""
_AGAINST = ("negation", "opposite", "order", "changed", "empty")


class Text:
    """A text prepared for many statements."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.source = Source(text)
        self._words = frozenset(one.key for one in tokens(text, limit=_MAX_TOKENS))

    def verdict(self, statement: str) -> Verdict:
        """Whether the text supports the statement; the quote is the span that says most of it.

        Example:
            >>> text = Text("Ada was born in 1815. She liked birds. She drew them. Lord Byron, a poet, was her father. "
            ...             "Tea was served. She died in London.")
            >>> text.verdict("Ada, whose father was the poet Lord Byron, was born in 1815, died in London.").status
            'supported'
            >>> text.verdict("Ada was born in 1816.").status
            'unsupported'
        """
        (found,) = judge(statement, [self.source])
        against = found.reason in _AGAINST or (found.reason in ("number", "name") and found.score >= _CHANGED)
        if found.status == "supported" or against or not self._holds(statement):
            return found
        return found._replace(reason="covered")

    def share(self, statement: str) -> float:
        """Share of the statement's words that the text holds, wherever they stand."""
        keys = {one.key for one in tokens(statement) if one.content}
        return len(keys & self._words) / len(keys) if keys else 0.0

    def _holds(self, statement: str) -> bool:
        if any((one.number or one.name) and one.key not in self._words for one in tokens(statement)):
            return False
        return self.share(statement) >= SHARE
