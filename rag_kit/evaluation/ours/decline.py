"""Does the pipeline decline where it should, and only there?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rag_kit.evaluation.cells import Cell
from rag_kit.evaluation.metric import Metric, Source, Stage
from rag_kit.text.citations import is_declined

if TYPE_CHECKING:
    from rag_kit.evaluation.examples import Example
    from rag_kit.evaluation.judge.judge import Judge
    from rag_kit.evaluation.outputs import Output

#: Ends of a run that are neither an answer nor a decline: a guard stepped in, or a question was asked back.
_NEITHER = {"refused": "a guard refused the question", "clarify": "the pipeline asked a question back"}


class Decline(Metric):
    """1 where a question with an answer in the corpus is answered, and one without is declined; else 0.

    A decline is the status ``declined`` of a graph, or an answer that says that the documents do not hold it and
    nothing else (`rag_kit.text.citations.is_declined`, English and Chinese). Whether an answer is right does not
    matter here. Slice by ``details["kind"]``: ``answered``, ``answered_wrongly`` (there is nothing to answer with),
    ``declined``, ``declined_wrongly``.

    Example:
        >>> import asyncio
        >>> from rag_kit.evaluation.examples import Example
        >>> from rag_kit.evaluation.outputs import Output
        >>> example = Example("q", "谁发明了它？", answerable=False)
        >>> asyncio.run(Decline().measure(example, Output(answer="文档中没有答案。"))).value
        1.0
    """

    name = "ours_decline"
    source: Source = "ours"
    stage: Stage = "end_to_end"
    example_needs = frozenset({"answerable"})

    async def score(self, example: Example, output: Output, judge: Judge | None) -> Cell:
        """1 or 0, with the kind of case."""
        if output.status in _NEITHER:
            return Cell.undefined(_NEITHER[output.status])
        declined = output.status == "declined" or is_declined(output.answer or "")
        right = declined != example.answerable
        kind = ("declined" if declined else "answered") + ("" if right else "_wrongly")
        return Cell.ok(float(right), _REASONS[kind], kind=kind)

    def settings(self) -> dict[str, Any]:
        """What counts as a decline."""
        return {"decline": "status or wording"}


_REASONS = {
    "answered": "it answers, and the corpus holds an answer",
    "answered_wrongly": "it answers, though the corpus holds no answer",
    "declined": "it declines, and the corpus holds no answer",
    "declined_wrongly": "it declines, though the corpus holds an answer",
}


def decline(name: str) -> Metric:
    """The metric ``ours_decline``."""
    return Decline()
