"""Factual correctness: the claims of the answer held against the reference, and the other way round."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

from rag_kit.errors import InvalidInputError
from rag_kit.evaluation.cells import Cell
from rag_kit.evaluation.judge.calls import Call, Calls
from rag_kit.evaluation.scorers.ragas_judged.base import RagasMetric, check_choice
from rag_kit.evaluation.scorers.ragas_judged.statements import verdicts_call

if TYPE_CHECKING:
    from rag_kit.evaluation.examples import Example
    from rag_kit.evaluation.outputs import Output

Level = Literal["low", "high"]


def claims_call(text: str, atomicity: str, coverage: str) -> Call:
    """Take a text apart into claims."""
    return Call("judge_claims", {"text": text, "atomicity": atomicity, "coverage": coverage})


class FactualCorrectness(RagasMetric):
    """Ragas's ``FactualCorrectness``: precision, recall or F of claims, rounded by Ragas to two digits.

    It needs no vectors. Where the answer or the reference makes no claim, it is undefined.

    Args:
        mode: ``"f1"``, ``"precision"`` (is all that the answer claims in the reference?) or ``"recall"``.
        beta: For ``"f1"``: above 1 recall weighs more.
        atomicity: How fine the claims are.
        coverage: How much of a text the claims cover.
    """

    name = "factual_correctness"
    stage = "end_to_end"
    example_needs = frozenset({"reference"})
    prompts = ("judge_claims", "judge_verdicts")

    def __init__(
        self,
        name: str | None = None,
        *,
        mode: Literal["precision", "recall", "f1"] = "f1",
        beta: float = 1.0,
        atomicity: Level = "low",
        coverage: Level = "low",
    ) -> None:
        check_choice("mode", mode, ("precision", "recall", "f1"))
        check_choice("atomicity", atomicity, ("low", "high"))
        check_choice("coverage", coverage, ("low", "high"))
        if isinstance(beta, bool) or not isinstance(beta, int | float) or not 0 < beta < 1000:
            raise InvalidInputError(f"beta is {beta!r}; give a number above 0")
        super().__init__(name)
        self.mode: Literal["precision", "recall", "f1"] = mode
        self.beta = float(beta)
        self.atomicity: Level = atomicity
        self.coverage: Level = coverage

    async def ahead(self, calls: Calls, example: Example, output: Output) -> Cell | None:
        """Both directions at once."""
        answer, reference = output.answer or "", example.reference or ""

        async def check(text: str, against: str) -> list[str]:
            claims: list[str] = (await calls.ahead(claims_call(text, self.atomicity, self.coverage)))[
                "claims"
            ]
            if claims:
                await calls.ahead(verdicts_call(against, claims))
            return claims

        chains: list[Any] = [lambda: check(answer, reference)]
        if self.mode != "precision":
            chains.append(lambda: check(reference, answer))
        found = await calls.beside(chains)
        for whose, claims in zip(("answer", "reference"), found, strict=False):
            if not claims:
                return Cell.undefined(f"the {whose} makes no claim")
        return None

    def build(self, ragas: ModuleType, calls: Calls) -> Any:
        """Ragas's object."""
        from rag_kit.evaluation.judge.adapter import FilePrompt, ragas_llm

        metric = ragas.FactualCorrectness(
            llm=ragas_llm(calls),
            mode=self.mode,
            beta=self.beta,
            atomicity=self.atomicity,
            coverage=self.coverage,
        )
        metric.prompt = FilePrompt(lambda data: claims_call(data.response, data.atomicity, data.coverage))
        metric.nli_prompt = FilePrompt(lambda data: verdicts_call(data.context, data.statements))
        return metric

    def inputs(self, example: Example, output: Output) -> Mapping[str, Any]:
        """Answer and reference."""
        return {"response": output.answer, "reference": example.reference}

    def details(self, calls: Calls) -> dict[str, Any]:
        """Verdicts on the claims of the answer, and on those of the reference."""
        names = ("claims", "reference_claims")
        return {
            name: list(reply["statements"])
            for name, reply in zip(names, calls.seen("judge_verdicts"), strict=False)
        }

    def reason(self, calls: Calls, example: Example, output: Output) -> str:
        """How many hold."""
        found = self.details(calls)
        parts = [
            f"{sum(each['verdict'] for each in found[name])} of {len(found[name])} {said}"
            for name, said in (
                ("claims", "claims hold"),
                ("reference_claims", "claims of the reference covered"),
            )
            if name in found
        ]
        return ", ".join(parts)

    def settings(self) -> dict[str, Any]:
        """With mode, beta, atomicity, coverage."""
        own = {"mode": self.mode, "beta": self.beta, "atomicity": self.atomicity, "coverage": self.coverage}
        return {**super().settings(), **own}
