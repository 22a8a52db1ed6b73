"""How surely each passage helps to answer a question: measures of its words, names, times and kinds of things."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rag_kit.models.extractive.evidence import FEATURES as OF_SENTENCE
from rag_kit.models.extractive.evidence import Candidate, PassageText, collect
from rag_kit.models.extractive.question import Question, analyse
from rag_kit.models.extractive.select import score
from rag_kit.models.extractive.support import found_names
from rag_kit.models.extractive.terms import terms

MAX_QUESTION = 4_000

MEASURES = (
    "passage",  # weight of the question's terms in the passage and its title
    "passage squared",
    "near",  # in the best sentence with its neighbours and title
    "own",  # in the best sentence
    "own squared",
    "title",  # in the title and the headings
    "names",  # share of the names in the question that the passage holds
    "no name",  # the question names things and the passage knows none
    "score",  # score of the best sentence
    "kind",  # the best sentences offer something of the kind that is asked for
    "open",  # asks for nothing of a known kind
    "pairs",  # share of the question's neighbouring terms that are neighbours in the passage
    "terms",  # how many terms the question has, as a logarithm
    "length",  # how many sentences the passage has, as a logarithm
    "lead passage",  # how far it is ahead of the average passage
    "lead own",
    "lead score",
    "behind passage",  # how far it is behind the best of the others
    "behind own",
    "behind score",
    "edges",  # names the start and the end of the asked span of time
    "overlap",  # overlap with the asked span of time
    "recent",  # tells what began last before the asked span of time, or in it
    "outside",  # a time is asked for, and all dates of the passage lie outside
    "undated",  # a time is asked for, and the passage names none
)
_OVERLAP, _RECENT, _EDGES, _KIND = (OF_SENTENCE.index(n) for n in ("overlap", "recent", "edges", "kind"))


@dataclass(frozen=True)
class _Read:
    """What one passage has by itself."""

    own: tuple[float, ...]
    passage: float
    best: float
    score: float
