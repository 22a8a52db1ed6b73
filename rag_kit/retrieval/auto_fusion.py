"""Weigh a keyword list and a dense list for each query by how clearly their first results stand out.

No labels are used, and nothing is remembered between queries: the same lists give the same weights. The two
constants were chosen on real sets and on artificially weakened retrievers; ``docs/decisions/0100`` has the
figures, and says where the rule fails.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from rag_kit.retrieval.convex import described
from rag_kit.retrieval.fusion import FusedList, FusionSettings, RankedList, first_places
from rag_kit.retrieval.normalise import normalise

SLOPE = 3.5
"""How much a lead of 1.0 adds to the log-odds of its list."""
BIAS = -0.2
"""The log-odds of the dense list where neither leads: 0.45 against 0.55."""
PLACE = 10
"""The result with which the first one is compared."""
FALLBACK = "auto: {}; used z-scores with the retrievers' own weights"


@dataclass(frozen=True)
class Evidence:
    """What the scores of one query tell.

    Attributes:
        keyword_lead: (First score - tenth score) / the query's theoretical maximum, from 0 to 1. Terms that no
            document holds count in the maximum, so a question that the index can match only in part has a
            small lead.
        dense_lead: First cosine - tenth cosine.
        coverage: First keyword score / theoretical maximum; shown, not used.
        agreement: Share of the first ten that both lists hold; shown, not used.
    """

    keyword_lead: float
    dense_lead: float
    coverage: float
    agreement: float

    def dense_share(self) -> float:
        """The weight of the dense list, between 0 and 1."""
        odds = BIAS + SLOPE * (self.dense_lead - self.keyword_lead)
        return 1 / (1 + math.exp(-odds))

    def as_json(self) -> dict[str, float]:
        """For the provenance."""
        return {
            "keyword_lead": round(self.keyword_lead, 6),
            "dense_lead": round(self.dense_lead, 6),
            "coverage": round(self.coverage, 6),
            "agreement": round(self.agreement, 6),
        }


def gather(keyword: RankedList, dense: RankedList) -> Evidence:
    """Read the evidence from two lists.

    Example:
        >>> keyword = RankedList(["a", "b"], [6.0, 1.0], 1.0, maximum=8.0)
        >>> dense = RankedList(["b", "a"], [0.5, 0.25], 1.0)
        >>> gather(keyword, dense)
        Evidence(keyword_lead=0.75, dense_lead=0.25, coverage=0.75, agreement=1.0)
    """
    top = keyword.maximum or 1.0
    words = [score for score in keyword.scores if score is not None]
    cosines = [score for score in dense.scores if score is not None]
    # Fewer than ten hits: all other documents score 0.
    tenth = words[PLACE - 1] if len(words) >= PLACE else 0.0
    first_ten = set(keyword.keys[:PLACE]), set(dense.keys[:PLACE])
    return Evidence(
        keyword_lead=(words[0] - tenth) / top,
        dense_lead=cosines[0] - cosines[min(PLACE, len(cosines)) - 1],
        coverage=words[0] / top,
        agreement=len(first_ten[0] & first_ten[1]) / max(1, min(map(len, first_ten))),
    )


def fuse_auto(lists: Sequence[RankedList], settings: FusionSettings) -> FusedList:
    """The fusion ``"auto"`` of an ensemble: z-scores, weighted by the evidence.

    It needs two lists: one whose retriever gives ``max_score`` (`BM25Retriever`), and one of cosines. The
    branches' own weights multiply the odds. An empty list leaves the other as it is. Anything else (no
    scores, more lists, two of a kind) is fused by z-scores with the branches' weights, and noted.
    """
    firsts = [first_places(ranked.keys) for ranked in lists]
    tables = [
        normalise([ranked.scores[place] for place in first.values()], "z-score")
        for ranked, first in zip(lists, firsts, strict=True)
    ]
    total = sum(ranked.weight for ranked in lists)
    weights = [ranked.weight / total for ranked in lists]
    extra: dict[str, object] = {"normalisation": "z-score"}
    if any(not ranked.keys for ranked in lists) or len(lists) == 1:
        return described(firsts, tables, weights, lists, extra)
    keyword, dense, reason = _pair(lists)
    if reason:
        return described(firsts, tables, weights, lists, extra, [FALLBACK.format(reason)])
    evidence = gather(lists[keyword], lists[dense])
    share = evidence.dense_share()
    weighed = {keyword: (1 - share) * lists[keyword].weight, dense: share * lists[dense].weight}
    total = sum(weighed.values())
    weights = [weighed[number] / total for number in range(2)]
    extra["evidence"] = evidence.as_json()
    return described(firsts, tables, weights, lists, extra)


def _pair(lists: Sequence[RankedList]) -> tuple[int, int, str | None]:
    """The places of the keyword and the dense list, or why there are none."""
    if len(lists) != 2:
        return 0, 0, f"{len(lists)} lists, where two can be compared"
    if any(score is None for ranked in lists for score in ranked.scores):
        return 0, 0, "a retriever gave no scores"
    keywords = [number for number, ranked in enumerate(lists) if ranked.maximum]
    if len(keywords) != 1:
        return 0, 0, "exactly one retriever must tell the highest score possible"
    dense = 1 - keywords[0]
    # A store may round a cosine of 1 up.
    if any(score is not None and abs(score) > 1 + 1e-6 for score in lists[dense].scores):
        return 0, 0, "the other retriever's scores are no cosines"
    return keywords[0], dense, None
