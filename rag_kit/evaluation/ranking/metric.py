"""Hit rate, MRR, MAP, nDCG, precision and recall as metrics of one question."""

from __future__ import annotations

import re
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from rag_kit.errors import InvalidInputError
from rag_kit.evaluation.cells import Cell
from rag_kit.evaluation.metric import Metric, Source, Stage
from rag_kit.evaluation.metrics import require_ir_measures, retrieval_metrics
from rag_kit.evaluation.ranking.ids import REPEATS, Repeats, ranked_ids

if TYPE_CHECKING:
    from rag_kit.evaluation.examples import Example
    from rag_kit.evaluation.judge.judge import Judge
    from rag_kit.evaluation.outputs import Output

#: As `rag_kit.evaluation.retrieval_metrics` names them; K is a whole number from 1.
NAMES = (
    "hit_rate@k", "mrr", "mrr@k", "map", "map@k", "ndcg", "ndcg@k", "ndcg_exp", "ndcg_exp@k",
    "precision@k", "recall@k",
)  # fmt: skip

_CUTOFF = re.compile(r"@[1-9][0-9]{0,5}$")
_MOST_MISSED = 20


class RankingMetric(Metric):
    """One ranking metric; the mean over questions is what `rag_kit.evaluation.retrieval_metrics` gives.

    The passages' ids are compared with ``example.relevant``. A passage counts when its own id or its document's id
    is judged relevant; `ranked_ids` says what several passages of one document are.

    Args:
        name: One of ``NAMES`` with a number for k, such as ``"ndcg@10"``. nDCG has linear gains, ``ndcg_exp``
            ``2**grade - 1``; ``precision@k`` divides by k also where fewer came back.
        repeats: ``"collapse"`` (documents are ranked) or ``"keep"`` (passages are).

    Raises:
        InvalidInputError: If there is no such metric.
        MissingExtraError: If ir-measures is not installed.

    Example:
        >>> import asyncio
        >>> from rag_kit.evaluation.examples import Example
        >>> from rag_kit.evaluation.outputs import Output, Passage
        >>> found = Output(passages=(Passage("b", ""), Passage("a", "")))
        >>> asyncio.run(RankingMetric("mrr@10").measure(Example("q", "?", relevant={"a": 1}), found)).value
        0.5
    """

    source: Source = "ir_measures"
    stage: Stage = "retrieval"
    example_needs = frozenset({"relevant"})
    output_needs = frozenset({"passages"})

    def __init__(self, name: str, *, repeats: Repeats = "collapse") -> None:
        if not isinstance(name, str) or _CUTOFF.sub("@k", name) not in NAMES or name.endswith("@k"):
            raise InvalidInputError(
                f"unknown ranking metric {name!r:.80}; allowed are {', '.join(NAMES)} with a whole number for k"
            )
        if repeats not in REPEATS:
            raise InvalidInputError(f"repeats is {repeats!r}; allowed are {', '.join(REPEATS)}")
        require_ir_measures()
        self.name = name
        self.repeats = repeats

    async def score(self, example: Example, output: Output, judge: Judge | None) -> Cell:
        """The score; it is not applicable where nothing is known to be relevant."""
        wanted = [key for key, grade in example.relevant.items() if grade > 0]
        if not wanted:
            return Cell.not_applicable("the example has no relevant id with a grade above 0")
        ranking = ranked_ids(output.passages or (), example.relevant, repeats=self.repeats)
        scores = retrieval_metrics({example.id: ranking}, {example.id: example.relevant}, [self.name])
        ranks = {key: rank for rank, key in enumerate(ranking, start=1) if key in wanted}
        missed = [key for key in wanted if key not in ranks]
        places = ", ".join(map(str, ranks.values()))
        reason = f"relevant at rank {places}" if ranks else "nothing relevant found"
        return Cell.ok(
            scores.per_query[example.id][self.name], reason,
            relevant_at=ranks, missed=missed[:_MOST_MISSED], relevant=len(wanted), ranked=len(ranking),
        )  # fmt: skip

    def settings(self) -> dict[str, Any]:
        """How repeats are counted, and which ir-measures computes."""
        return {"repeats": self.repeats, "ir_measures": version("ir-measures")}


def ranking(name: str) -> Metric:
    """The metric of a name such as ``"ndcg@10"``."""
    return RankingMetric(name)
