"""Response groundedness: two judges rate how far the passages support the answer."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any

from rag_kit.errors import ModelOutputError
from rag_kit.evaluation.cells import Cell
from rag_kit.evaluation.scorers.ragas_judged.base import NO_PASSAGES, contexts_of
from rag_kit.evaluation.scorers.ragas_more.judged import JudgedMetric

if TYPE_CHECKING:
    from rag_kit.evaluation.examples import Example
    from rag_kit.evaluation.judge import Call, Calls
    from rag_kit.evaluation.outputs import Output

_PROMPTS = ("judge_groundedness", "judge_groundedness_again")


class ResponseGroundedness(JudgedMetric):
    """Ragas's ``ResponseGroundedness``: the mean of two ratings from 0 to 2, halved.

    Ragas swallows whatever goes wrong, asks up to ten times, and takes one rating for both; here both are asked before
    Ragas sees them, and what fails is an error. Where nothing was retrieved the value is 0.
    """

    name = "response_groundedness"
    stage = "generation"
    output_needs = frozenset({"answer", "passages"})
    prompts = _PROMPTS

    async def ahead(self, calls: Calls, example: Example, output: Output) -> Cell | None:
        """Both ratings at once."""
        response, context = output.answer or "", "\n".join(output.contexts)
        if response.strip() and context.strip():
            await calls.all_ahead([_call(prompt, response, context) for prompt in _PROMPTS])
        return None

    def make(self, ragas: ModuleType, calls: Calls, example: Example, output: Output) -> Any:
        """Ragas's object."""
        from rag_kit.evaluation.judge.adapter import FilePrompt, ragas_llm

        metric = ragas.ResponseGroundedness(llm=ragas_llm(calls), max_retries=1)

        def prompt(name: str) -> FilePrompt:
            return FilePrompt(lambda data: _call(name, data.response, data.context))

        metric.judge1_prompt, metric.judge2_prompt = map(prompt, _PROMPTS)
        return metric

    def inputs(self, example: Example, output: Output) -> Mapping[str, Any]:
        """Answer and passages."""
        return {"response": output.answer, "retrieved_contexts": contexts_of(output)}

    def details(self, calls: Calls) -> dict[str, Any]:
        """Both ratings."""
        ratings = [reply["rating"] for prompt in _PROMPTS for reply in calls.seen(prompt)]
        return {"ratings": ratings} if ratings else {}

    def reason(self, calls: Calls, example: Example, output: Output) -> str:
        """Whether anything was retrieved."""
        return "" if output.contexts else NO_PASSAGES


def _call(prompt: str, response: str, context: str) -> Call:
    from rag_kit.evaluation.judge.calls import Call

    async def finish(calls: Calls, reply: Any) -> Any:
        if not _valid(reply):
            raise ModelOutputError(
                f"the judge gave the rating {reply['rating']!r:.40}; 0, 1 and 2 are allowed"
            )
        return reply

    return Call(prompt, {"response": response, "context": context}, finish=finish, keep=_valid)


def _valid(reply: Any) -> bool:
    return reply["rating"] in (0, 1, 2)
