"""Graded relevance of passages without gold, by the judge."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from rag_kit.concurrency import afan_out_map
from rag_kit.errors import InvalidInputError
from rag_kit.evaluation.cells import Cell
from rag_kit.evaluation.metric import Metric, Source, Stage
from rag_kit.evaluation.ranking.metrics import ndcg
from rag_kit.prompts import render_passages

if TYPE_CHECKING:
    from rag_kit.evaluation.examples import Example
    from rag_kit.evaluation.judge.judge import Judge
    from rag_kit.evaluation.outputs import Output, Passage

DEFAULT_K = 10
"""Passages graded where the name gives no number."""

_MOST = 1000
_HIGHEST = 3
_REASON = 300


class Umbrela(Metric):
    """The judge grades each passage from 0 to 3 (prompt ``judge_relevance``), one call a passage.

    0: nothing to do with the question; 1: related, answers nothing; 2: answers in part; 3: holds the answer. The
    scale and the way to decide are those of UMBRELA (Upadhyay et al., 2024), the prompt is this kit's own. The value
    is the mean grade of the first k passages, from 0 to 3 (``ours_umbrela@k``), or the nDCG of their grades against
    the best order of the same passages (``ours_umbrela_ndcg@k``): is the order right? What was not found, it does
    not know: only judgements of people, or of the pooled results of all pipelines, say that.

    Args:
        what: ``"mean"`` or ``"ndcg"``.
        k: Passages to grade.

    Raises:
        InvalidInputError: If a setting is out of range.
    """

    source: Source = "ours"
    stage: Stage = "retrieval"
    output_needs = frozenset({"passages"})
    needs_judge: bool = True

    def __init__(self, what: Literal["mean", "ndcg"] = "mean", *, k: int = DEFAULT_K) -> None:
        if what not in ("mean", "ndcg"):
            raise InvalidInputError(f"what is {what!r}; allowed are mean and ndcg")
        if type(k) is not int or not 1 <= k <= _MOST:
            raise InvalidInputError(f"k is {k!r}; give a whole number from 1 to {_MOST}")
        self.what = what
        self.k = k
        name = "ours_umbrela" if what == "mean" else "ours_umbrela_ndcg"
        self.name = name if k == DEFAULT_K else f"{name}@{k}"
        self.high = float(_HIGHEST) if what == "mean" else 1.0

    async def score(self, example: Example, output: Output, judge: Judge | None) -> Cell:
        """The value; the details hold each passage's grade and the judge's reason."""
        assert judge is not None
        asked = judge
        passages = (output.passages or ())[: self.k]
        if not passages:
            return Cell.undefined("nothing was retrieved: there is nothing to grade")

        async def grade(passage: Passage) -> tuple[int, str]:
            values = {"question": example.question, "passages": render_passages([passage.text])}
            reply = await asked.ask("judge_relevance", values)
            return reply.grade, reply.reason

        found = (await afan_out_map(grade, passages)).values
        grades = [grade for grade, _ in found]
        details = {
            "grades": grades,
            "passages": [
                {"id": passage.id, "grade": grade, "reason": reason[:_REASON]}
                for passage, (grade, reason) in zip(passages, found, strict=True)
            ],
        }
        reason = f"grades {', '.join(map(str, grades))}"
        if self.what == "mean":
            return Cell.ok(sum(grades) / len(grades), reason, **details)
        if not any(grades):
            return Cell.undefined(f"{reason}: no order of them is better than another", **details)
        return Cell.ok(ndcg(grades), reason, **details)

    def settings(self) -> dict[str, Any]:
        """What the value is, and how many passages are graded."""
        return {"what": self.what, "k": self.k}


def umbrela(name: str) -> Metric:
    """``ours_umbrela``, ``ours_umbrela_ndcg``, each also with ``@k``."""
    base, _, k = name.partition("@")
    return Umbrela("ndcg" if base.endswith("_ndcg") else "mean", k=int(k) if k else DEFAULT_K)
