"""Context precision: do the passages that helped stand before those that did not?"""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any

from rag_kit.evaluation.cells import Cell
from rag_kit.evaluation.judge.calls import Call, Calls
from rag_kit.evaluation.scorers.ragas_judged.base import NO_PASSAGES, RagasMetric, contexts_of

if TYPE_CHECKING:
    from rag_kit.evaluation.examples import Example
    from rag_kit.evaluation.outputs import Output

_EMPTY = {"reason": "", "verdict": 0}


def context_call(question: str, context: str, answer: str) -> Call:
    """Was this passage useful for arriving at the answer? An empty one is not, and nobody is asked."""
    values = {"question": question, "context": context, "answer": answer}
    return Call("judge_context", values, finish=_with_reason, known=None if context.strip() else _EMPTY)


async def _with_reason(calls: Calls, reply: Any) -> dict[str, Any]:
    """Some judges give none, and Ragas wants one."""
    return {"reason": str(reply.get("reason") or ""), "verdict": reply["verdict"]}


class ContextPrecision(RagasMetric):
    """Ragas's ``ContextPrecision``: average precision of the passages, each judged by the reference answer.

    All passages are judged side by side. Where nothing was retrieved, or nothing of use, it is 0. Ragas divides by
    the number of useful passages plus 1e-10, so a perfect ranking is 0.9999999999.
    """

    name = "context_precision"
    stage = "retrieval"
    example_needs = frozenset({"reference"})
    output_needs = frozenset({"passages"})
    prompts = ("judge_context",)

    def judged_by(self, example: Example, output: Output) -> str:
        """The answer that the passages are to lead to."""
        return example.reference or ""

    async def ahead(self, calls: Calls, example: Example, output: Output) -> Cell | None:
        """All passages at once."""
        answer = self.judged_by(example, output)
        await calls.all_ahead([context_call(example.question, text, answer) for text in contexts_of(output)])
        return None

    def build(self, ragas: ModuleType, calls: Calls) -> Any:
        """Ragas's object."""
        return self.asking(ragas.ContextPrecision, calls)

    @staticmethod
    def asking(kind: Any, calls: Calls) -> Any:
        """An object of one of Ragas's two classes, which differ in the answer alone."""
        from rag_kit.evaluation.judge.adapter import FilePrompt, ragas_llm

        metric = kind(llm=ragas_llm(calls))
        metric.prompt = FilePrompt(lambda data: context_call(data.question, data.context, data.answer))
        return metric

    def inputs(self, example: Example, output: Output) -> Mapping[str, Any]:
        """Question, reference, passages."""
        return {
            "user_input": example.question,
            "reference": example.reference,
            "retrieved_contexts": contexts_of(output),
        }

    def details(self, calls: Calls) -> dict[str, Any]:
        """The verdict on each passage, in their order."""
        return {"passages": [dict(reply) for reply in calls.seen("judge_context")]}

    def reason(self, calls: Calls, example: Example, output: Output) -> str:
        """How many were useful."""
        if not output.contexts:
            return NO_PASSAGES
        found = [reply["verdict"] for reply in calls.seen("judge_context")]
        return f"{sum(found)} of {len(found)} passages useful"


class ContextPrecisionWithoutReference(ContextPrecision):
    """Ragas's ``ContextPrecisionWithoutReference``: the same, judged by the answer that was given."""

    name = "context_precision_without_reference"
    example_needs = frozenset()
    output_needs = frozenset({"answer", "passages"})

    def judged_by(self, example: Example, output: Output) -> str:
        """The pipeline's answer."""
        return output.answer or ""

    def build(self, ragas: ModuleType, calls: Calls) -> Any:
        """Ragas's object."""
        return self.asking(ragas.ContextPrecisionWithoutReference, calls)

    def inputs(self, example: Example, output: Output) -> Mapping[str, Any]:
        """Question, answer, passages."""
        return {
            "user_input": example.question,
            "response": output.answer,
            "retrieved_contexts": contexts_of(output),
        }
