"""Noise sensitivity: how much of the answer is wrong because of what was retrieved?"""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from rag_kit.evaluation.cells import Cell
from rag_kit.evaluation.scorers.ragas_judged.base import check_choice
from rag_kit.evaluation.scorers.ragas_judged.statements import statements_call, verdicts_call
from rag_kit.evaluation.scorers.ragas_more.judged import JudgedMetric

if TYPE_CHECKING:
    from rag_kit.evaluation.examples import Example
    from rag_kit.evaluation.judge import Calls
    from rag_kit.evaluation.outputs import Output


class NoiseSensitivity(JudgedMetric):
    """Ragas's ``NoiseSensitivity``: share of the answer's statements that are wrong and that a passage supports.

    Wrong is what the reference does not support. Lower is better. It takes 2k + 3 questions for k passages; Ragas asks
    them one after another, here they are asked side by side.

    Args:
        mode: ``"relevant"`` (passages that support a statement of the reference) or ``"irrelevant"`` (the others).

    Paper: Ru et al., 2024, "RAGChecker".
    """

    name = "noise_sensitivity"
    stage = "generation"
    example_needs = frozenset({"reference"})
    output_needs = frozenset({"answer", "passages"})
    higher_is_better: ClassVar[bool] = False
    prompts = ("judge_statements", "judge_verdicts")

    def __init__(
        self, name: str | None = None, *, mode: Literal["relevant", "irrelevant"] = "relevant"
    ) -> None:
        check_choice("mode", mode, ("relevant", "irrelevant"))
        super().__init__(name)
        self.mode = mode

    async def ahead(self, calls: Calls, example: Example, output: Output) -> Cell | None:
        """All questions, in two rounds."""
        assert output.answer is not None and example.reference is not None
        if not output.contexts:
            return Cell.undefined("no passage was retrieved, so none can mislead")
        gold, mine = await calls.all_ahead(
            [statements_call(example.question, text) for text in (example.reference, output.answer)]
        )
        for what, statements in (("reference", gold["statements"]), ("answer", mine["statements"])):
            if not statements:
                return Cell.undefined(f"the {what} holds no statement")
        verdicts = [verdicts_call(example.reference, mine["statements"])]
        for context in output.contexts:
            verdicts += [
                verdicts_call(context, gold["statements"]),
                verdicts_call(context, mine["statements"]),
            ]
        await calls.all_ahead(verdicts)
        return None

    def make(self, ragas: ModuleType, calls: Calls, example: Example, output: Output) -> Any:
        """Ragas's object."""
        from rag_kit.evaluation.judge.adapter import FilePrompt, ragas_llm

        metric = ragas.NoiseSensitivity(llm=ragas_llm(calls), mode=self.mode)
        metric.statement_prompt = FilePrompt(lambda data: statements_call(data.question, data.text))
        metric.faithfulness_prompt = FilePrompt(lambda data: verdicts_call(data.context, data.statements))
        return metric

    def inputs(self, example: Example, output: Output) -> Mapping[str, Any]:
        """Question, answer, reference, passages."""
        return {
            "user_input": example.question,
            "response": output.answer,
            "reference": example.reference,
            "retrieved_contexts": output.contexts,
        }

    def details(self, calls: Calls) -> dict[str, Any]:
        """The answer's statements, each with whether the reference supports it (asked last)."""
        verdicts = calls.seen("judge_verdicts")
        return {"statements": verdicts[-1]["statements"]} if verdicts else {}

    def reason(self, calls: Calls, example: Example, output: Output) -> str:
        """The first statement that is wrong."""
        wrong = [each["statement"] for each in self.details(calls)["statements"] if not each["verdict"]]
        return f"not in the reference: {wrong[0]}" if wrong else ""

    def settings(self) -> dict[str, Any]:
        """The mode too."""
        return {**super().settings(), "mode": self.mode}


def noise_sensitivity(name: str) -> NoiseSensitivity:
    """To relevant passages, unless the name says irrelevant."""
    return NoiseSensitivity(name, mode="irrelevant" if name.endswith("_irrelevant") else "relevant")
