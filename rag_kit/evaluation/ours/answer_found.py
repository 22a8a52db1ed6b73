"""Does the answer hold the gold answer?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rag_kit.evaluation.cells import Cell
from rag_kit.evaluation.metric import Metric, Source, Stage
from rag_kit.evaluation.ours.occurrence import occurs, plain, without_citations

if TYPE_CHECKING:
    from rag_kit.evaluation.examples import Example
    from rag_kit.evaluation.judge.judge import Judge
    from rag_kit.evaluation.outputs import Output


class AnswerFound(Metric):
    """1 if one of ``example.answers`` occurs in the answer, else 0.

    Case, width and form of letters (NFKC, case folding), traditional and simplified characters, blanks and commas
    within numbers do not matter; a part of a longer word or number is no occurrence, and the numbers of citations
    are not read. It looks at letters alone: "It is not Paris" holds Paris.

    Example:
        >>> import asyncio
        >>> from rag_kit.evaluation.examples import Example
        >>> from rag_kit.evaluation.outputs import Output
        >>> example = Example("q", "莱茵河有多长？", answers=("1,230公里",))
        >>> asyncio.run(AnswerFound().measure(example, Output(answer="莱茵河长１２３０ 公里。[1]"))).value
        1.0
    """

    name = "ours_answer_found"
    source: Source = "ours"
    stage: Stage = "end_to_end"
    example_needs = frozenset({"answers"})

    async def score(self, example: Example, output: Output, judge: Judge | None) -> Cell:
        """1 or 0, and which of the answers was found."""
        said = plain(without_citations(output.answer or ""))
        wanted = {answer: plain(answer) for answer in example.answers}
        if not any(wanted.values()):
            return Cell.not_applicable("the example's answers are blank")
        found = [answer for answer, key in wanted.items() if occurs(key, said)]
        if found:
            return Cell.ok(1.0, f"found: {found[0]:.200}", found=found)
        return Cell.ok(0.0, "none of the answers occurs", found=[])

    def settings(self) -> dict[str, Any]:
        """How texts are compared."""
        return {"compared": "folded, whole words"}


def answer_found(name: str) -> Metric:
    """The metric ``ours_answer_found``."""
    return AnswerFound()
