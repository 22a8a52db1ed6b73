"""Citations as the judge sees them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rag_kit.concurrency import afan_out_map
from rag_kit.evaluation.metric import Metric
from rag_kit.evaluation.ours.citations import Checked, Citations, What, sorted_out, unsourced
from rag_kit.prompts import render_passages
from rag_kit.text.citations.statements import Statement, statements

if TYPE_CHECKING:
    from rag_kit.evaluation.examples import Example
    from rag_kit.evaluation.judge.judge import Judge
    from rag_kit.evaluation.outputs import Output


class JudgedCitations(Citations):
    """`Citations` where the judge says whether a passage supports a statement (prompt ``judge_citation``).

    A part is no support. One call for each citation; where no passage that a statement cites supports it alone and
    it cites several, one more for all of them together: if together they do, each of its citations holds.

    Args:
        what: ``"f1"``, ``"precision"`` or ``"recall"``.
    """

    needs_judge: bool = True

    def __init__(self, what: What = "f1") -> None:
        super().__init__(what)
        self.name = f"{self.name}_judged"

    async def check(self, example: Example, output: Output, judge: Judge | None) -> list[Checked]:
        """Each statement of the answer, checked by the judge."""
        assert judge is not None
        asked = judge
        texts = output.contexts

        async def holds(statement: str, passages: list[str]) -> bool:
            values = {
                "question": example.question,
                "passages": render_passages(passages),
                "statement": statement,
            }
            verdict = await asked.ask("judge_citation", values)
            return bool(verdict.support == "full")

        async def checked(statement: Statement) -> dict[int, bool]:
            known = [number for number in statement.numbers if 1 <= number <= len(texts)]
            held = dict.fromkeys(statement.numbers, False)
            for number in known:
                held[number] = await holds(statement.text, [texts[number - 1]])
            if len(known) > 1 and not any(held.values()):
                together = await holds(statement.text, [texts[number - 1] for number in known])
                held.update(dict.fromkeys(known, together))
            return held

        answer = output.answer or ""
        held = await afan_out_map(checked, statements(answer))
        return sorted_out(answer, held.values, unsourced(output))

    def settings(self) -> dict[str, Any]:
        """What the value is, and who decides what supports a statement."""
        return {**super().settings(), "by": "judge"}


def judged_citations(name: str) -> Metric:
    """``ours_citations_judged``, ``ours_citation_precision_judged`` or ``ours_citation_recall_judged``."""
    plain: dict[str, What] = {
        "ours_citations_judged": "f1",
        "ours_citation_precision_judged": "precision",
        "ours_citation_recall_judged": "recall",
    }
    return JudgedCitations(plain[name])
