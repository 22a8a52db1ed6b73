"""Terms that were offered for a question -> those worth searching for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rag_kit.retrieval.variants import script_of
from rag_kit.text import fold

MAX_CHARS = 80


class Added(NamedTuple):
    """A term that is searched for besides.

    Attributes:
        text: The term, of one or several words.
        source: ``"model"``, ``"thesaurus"`` or ``"feedback"``.
    """

    text: str
    source: str


def usable_terms(written: Iterable[str], question: str, most: int) -> tuple[list[str], list[str]]:
    """Keep what a model wrote that can be terms: short, in the question's script or in Latin letters (short forms).

    Returns:
        The terms kept, each once, and one line for each dropped one that says why.

    Example:
        >>> usable_terms(["MI", "心梗", "", "mi", "x" * 99, "infarct"], "heart attack", 1)
        (['MI'], ['another script', 'empty', 'repeats another', 'longer than 80 characters', 'more than asked for'])
    """
    scripts = {"", "LATIN", script_of(question)}
    kept: dict[str, str] = {}
    dropped: list[str] = []
    for text in written:
        term = " ".join(text.split())
        key = fold(term)
        if not any(character.isalnum() for character in key):
            dropped.append("empty")
        elif len(term) > MAX_CHARS:
            dropped.append(f"longer than {MAX_CHARS} characters")
        elif script_of(term) not in scripts:
            dropped.append("another script")
        elif key in kept:
            dropped.append("repeats another")
        elif len(kept) == most:
            dropped.append("more than asked for")
        else:
            kept[key] = term
    return list(kept.values()), dropped


def new_terms(added: Sequence[Added], question: str) -> list[Added]:
    """Each term once, without those that stand in the question.

    Example:
        >>> new_terms([Added("MI", "model"), Added("Heart", "model"), Added("mi", "thesaurus")], "a heart attack")
        [Added(text='MI', source='model')]
    """
    first: dict[str, Added] = {}
    for term in added:
        first.setdefault(fold(term.text), term)
    own = f" {fold(question)} "
    return [term for key, term in first.items() if f" {key} " not in own]
