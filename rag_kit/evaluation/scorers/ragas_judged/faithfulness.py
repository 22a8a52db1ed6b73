"""Faithfulness: the share of what the answer states that the retrieved passages support."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any

from rag_kit.evaluation.cells import Cell
from rag_kit.evaluation.scorers.ragas_judged.base import NO_PASSAGES, RagasMetric, contexts_of
from rag_kit.evaluation.scorers.ragas_judged.statements import statements_call, verdicts_call

if TYPE_CHECKING:
    from rag_kit.evaluation.examples import Example
    from rag_kit.evaluation.judge import Calls
    from rag_kit.evaluation.outputs import Output


class Faithfulness(RagasMetric):
    """Ragas's ``Faithfulness``: statements of the answer that the passages support, over all of them.

    An answer that states nothing (a greeting, a decline) has no value. Where nothing was retrieved, nothing is
    supported.

    Paper: Es et al., 2023, "RAGAS: Automated Evaluation of Retrieval Augmented Generation".
    """

    name = "faithfulness"
    stage = "generation"
    output_needs = frozenset({"answer", "passages"})
    prompts = ("judge_statements", "judge_verdicts")

    async def ahead(self, calls: Calls, example: Example, output: Output) -> Cell | None:
        """What the answer states; nothing to compute if that is nothing."""
        assert output.answer is not None
        split = await calls.ahead(statements_call(example.question, output.answer))
        return None if split["statements"] else Cell.undefined("the answer holds no statement")

    def build(self, ragas: ModuleType, calls: Calls) -> Any:
        """Ragas's object."""
        from rag_kit.evaluation.judge.adapter import FilePrompt, ragas_llm

        metric = ragas.Faithfulness(llm=ragas_llm(calls))
        metric.statement_generator_prompt = FilePrompt(
            lambda data: statements_call(data.question, data.answer)
        )
        metric.nli_statement_prompt = FilePrompt(lambda data: verdicts_call(data.context, data.statements))
        return metric

    def inputs(self, example: Example, output: Output) -> Mapping[str, Any]:
        """Question, answer, passages."""
        return {
            "user_input": example.question,
            "response": output.answer,
            "retrieved_contexts": contexts_of(output),
        }

    def details(self, calls: Calls) -> dict[str, Any]:
        """The statements with their verdicts."""
        return {
            "statements": [each for reply in calls.seen("judge_verdicts") for each in reply["statements"]]
        }

    def reason(self, calls: Calls, example: Example, output: Output) -> str:
        """The first statement without support."""
        if not output.contexts:
            return NO_PASSAGES
        missing = [each for each in self.details(calls)["statements"] if not each["verdict"]]
        return f"not supported: {missing[0]['statement']}" if missing else ""
