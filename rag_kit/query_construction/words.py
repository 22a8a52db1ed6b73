"""Words, numbers and places in a text, as they are compared."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

from rag_kit.text import fold

HAN = re.compile(r"[\u3400-\u9fff]")
_IRREGULAR = {
    "children": "child", "women": "woman", "men": "man", "mice": "mouse", "feet": "foot", "teeth": "tooth",
    "people": "person", "diagnoses": "diagnosis", "analyses": "analysis", "criteria": "criterion",
}  # fmt: skip


def singular(word: str) -> str:
    """Reduce a word to a crude singular, for comparing words that both went through this.

    Example:
        >>> [singular(word) == singular(plural) for word, plural in
        ...  [("report", "reports"), ("movie", "movies"), ("battery", "batteries"), ("virus", "viruses"),
        ...   ("box", "boxes"), ("hero", "heroes"), ("case", "cases")]]
        [True, True, True, True, True, True, True]
    """
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if len(word) > 4 and word.endswith(("sses", "xes", "ches", "shes")):
        return word[:-2]
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    # "movies" and "movie", "batteries" and "battery" meet at the y; "viruses", "cases" and "heroes" at the letter
    # before the e
    if len(word) > 3 and word.endswith("ie"):
        return word[:-2] + "y"
    return word[:-1] if len(word) > 3 and word.endswith(("se", "ze", "xe", "oe")) else word


def sorted_words(text: str) -> tuple[str, ...]:
    """Sort the words of a text, each in the singular: ``Neoplasms, Breast`` is ``breast neoplasm``."""
    return tuple(sorted(singular(word) for word in re.findall(r"[^\W_]+", fold(text))))


@dataclass(frozen=True, eq=False)
class QuestionSpan:
    """A span of a text: the characters from `begin` to before `end`."""

    begin: int
    end: int

    def overlaps(self, others: Iterable[QuestionSpan]) -> bool:
        """Tell whether it shares characters with one of the others."""
        return any(self.begin < other.end and other.begin < self.end for other in others)


S = TypeVar("S", bound=QuestionSpan)


def longest_spans(spans: Iterable[S]) -> list[S]:
    """Return spans in order, without overlap: of overlapping spans the longest stays, of equal ones the first."""
    chosen: list[S] = []
    for span in sorted(spans, key=lambda span: (span.begin - span.end, span.begin)):  # the longest first
        if not span.overlaps(chosen):
            chosen.append(span)
    return sorted(chosen, key=lambda span: span.begin)
