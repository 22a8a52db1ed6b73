"""Answer relevancy: does the answer answer what was asked?"""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any

from rag_kit.errors import InvalidInputError
from rag_kit.evaluation.cells import Cell
from rag_kit.evaluation.judge.calls import Call, Calls
from rag_kit.evaluation.scorers.ragas_judged.base import RagasMetric

if TYPE_CHECKING:
    from rag_kit.evaluation.examples import Example
    from rag_kit.evaluation.outputs import Output


class AnswerRelevancy(RagasMetric):
    """Ragas's ``AnswerRelevancy``: mean cosine between the question and questions guessed from the answer.

    It is 0 where all guesses call the answer evasive. A cosine may be below 0, so the lowest value is -1.

    Args:
        strictness: How many questions are guessed; side by side, each with a reply of its own.
    """

    name = "answer_relevancy"
    stage = "generation"
    needs_embeddings = True
    low = -1.0
    prompts = ("judge_question",)

    def __init__(self, name: str | None = None, *, strictness: int = 3) -> None:
        if isinstance(strictness, bool) or not isinstance(strictness, int) or not 1 <= strictness <= 20:
            raise InvalidInputError(f"strictness is {strictness!r}; give a whole number from 1 to 20")
        super().__init__(name)
        self.strictness = strictness

    async def ahead(self, calls: Calls, example: Example, output: Output) -> Cell | None:
        """All guesses at once, then all vectors in one request."""
        call = question_call(output.answer or "")
        replies = await calls.all_ahead([call] * self.strictness)
        guesses = [reply["question"] for reply in replies if reply["question"].strip()]
        if len(guesses) < self.strictness:  # Ragas takes no guess at all for 0
            return Cell.undefined(f"the judge guessed {len(guesses)} questions instead of {self.strictness}")
        await calls.embed([example.question, *guesses])
        return None

    def build(self, ragas: ModuleType, calls: Calls) -> Any:
        """Ragas's object."""
        from rag_kit.evaluation.judge.adapter import FilePrompt, ragas_embeddings, ragas_llm

        metric = ragas.AnswerRelevancy(
            llm=ragas_llm(calls), embeddings=ragas_embeddings(calls), strictness=self.strictness
        )
        metric.prompt = FilePrompt(lambda data: question_call(data.response))
        return metric

    def inputs(self, example: Example, output: Output) -> Mapping[str, Any]:
        """Question and answer."""
        return {"user_input": example.question, "response": output.answer}

    def details(self, calls: Calls) -> dict[str, Any]:
        """The guessed questions."""
        return {"questions": [dict(reply) for reply in calls.seen("judge_question")]}

    def reason(self, calls: Calls, example: Example, output: Output) -> str:
        """Whether it evades, else the first guess."""
        guesses = calls.seen("judge_question")
        if all(guess["noncommittal"] for guess in guesses):
            return "the answer evades"
        return f"it answers: {guesses[0]['question']}"

    def settings(self) -> dict[str, Any]:
        """With the number of guesses."""
        return {**super().settings(), "strictness": self.strictness}


def question_call(answer: str) -> Call:
    """Which question does this answer?"""
    return Call("judge_question", {"answer": answer})
