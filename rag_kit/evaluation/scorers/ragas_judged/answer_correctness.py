"""Answer correctness: the answer against the reference, by their statements and by their vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

from rag_kit.errors import InvalidInputError, ModelOutputError
from rag_kit.evaluation.cells import Cell
from rag_kit.evaluation.judge.calls import Call, Calls
from rag_kit.evaluation.judge.rendering import render_statements
from rag_kit.evaluation.scorers.ragas_judged.base import RagasMetric
from rag_kit.evaluation.scorers.ragas_judged.statements import matched, plain, statements_call

if TYPE_CHECKING:
    from rag_kit.evaluation.examples import Example
    from rag_kit.evaluation.outputs import Output

_LISTS = ("TP", "FP", "FN")


def classification_call(question: str, answer: Sequence[str], reference: Sequence[str]) -> Call:
    """Sort the statements of an answer and of its reference.

    Statements of the answer that the judge leaves out, or puts into two lists, are asked for again alone; if they still
    have no place, there is no value: Ragas would count only those that it got.
    """
    wanted = list(answer)

    def values(statements: Sequence[str]) -> dict[str, Any]:
        return {
            "question": question,
            "statements": render_statements(statements),
            "reference_statements": render_statements(reference),
        }

    async def finish(calls: Calls, reply: Any) -> dict[str, Any]:
        found = {name: [_entry(each) for each in reply[name]] for name in _LISTS}
        if missing := unplaced(wanted, found):
            again = await calls.judge.ask(
                "judge_correctness", values(missing), language=calls.language, keep=_never
            )
            more = {name: [_entry(each) for each in again[name]] for name in _LISTS}
            if left := unplaced(missing, more, strict=True):
                raise ModelOutputError(
                    f"the judge sorted {len(wanted) - len(missing)} of {len(wanted)} statements of the answer, and not "
                    f"{len(left)} of the others when it was asked again, such as {left[0]!r:.120}"
                )
            gone = {plain(text) for text in missing}
            for name in ("TP", "FP"):
                kept = [each for each in found[name] if plain(each["statement"]) not in gone]
                found[name] = kept + [each for each in more[name] if plain(each["statement"]) in gone]
        return found

    return Call(
        "judge_correctness", values(wanted),
        finish=finish, keep=lambda reply: not unplaced(wanted, reply),
    )  # fmt: skip


def unplaced(
    wanted: Sequence[str], found: Mapping[str, Sequence[Mapping[str, Any]]], *, strict: bool = False
) -> list[str]:
    """Statements of the answer that are in no list or in both.

    A judge may put them in other words; so where there is an entry for each of them, only those in both lists count.

    Example:
        >>> unplaced(["A.", "B."], {"TP": [{"statement": "A."}], "FP": []})
        ['B.']
    """
    right, wrong = ({plain(each["statement"]) for each in found[name]} for name in ("TP", "FP"))
    both = [text for text in wanted if plain(text) in right & wrong]
    entries = [{"verdict": 1, **each} for name in ("TP", "FP") for each in found[name]]
    if len(entries) >= len(wanted) and not strict:
        return both
    return both + matched(wanted, entries)[1]


class AnswerCorrectness(RagasMetric):
    """Ragas's ``AnswerCorrectness``: F1 of the statements and cosine of the texts, weighted.

    Where the answer or the reference states nothing, it is undefined (Ragas takes it for a perfect match).

    Args:
        weights: Of the F1 and of the cosine.
        beta: Above 1 missing statements weigh more, below 1 wrong ones.
    """

    name = "answer_correctness"
    stage = "end_to_end"
    example_needs = frozenset({"reference"})
    needs_embeddings = True
    prompts = ("judge_statements", "judge_correctness")

    def __init__(
        self, name: str | None = None, *, weights: tuple[float, float] = (0.75, 0.25), beta: float = 1.0
    ) -> None:
        right = isinstance(weights, tuple | list) and len(weights) == 2
        if (
            not right
            or not all(isinstance(each, int | float) and each >= 0 for each in weights)
            or not sum(weights)
        ):
            raise InvalidInputError(f"weights is {weights!r}; give two numbers from 0 on, not both 0")
        if isinstance(beta, bool) or not isinstance(beta, int | float) or not 0 < beta < 1000:
            raise InvalidInputError(f"beta is {beta!r}; give a number above 0")
        super().__init__(name)
        self.weights = [float(each) for each in weights]
        self.beta = float(beta)
        self.low = -self.weights[1] / sum(self.weights)  # a cosine may be -1

    @property
    def embeds(self) -> bool:
        """Whether vectors are needed."""
        return self.weights[1] > 0

    async def ahead(self, calls: Calls, example: Example, output: Output) -> Cell | None:
        """Both texts taken apart, and their vectors, at once."""
        texts = [output.answer or "", example.reference or ""]
        chains: list[Any] = [
            lambda: calls.ahead(statements_call(example.question, texts[0])),
            lambda: calls.ahead(statements_call(example.question, texts[1])),
        ]
        if self.embeds:
            chains.append(lambda: calls.embed(texts))
        answer, reference, *_ = await calls.beside(chains)
        for whose, reply in (("answer", answer), ("reference", reference)):
            if not reply["statements"]:
                return Cell.undefined(f"the {whose} holds no statement")
        return None

    def build(self, ragas: ModuleType, calls: Calls) -> Any:
        """Ragas's object."""
        from rag_kit.evaluation.judge.adapter import FilePrompt, ragas_embeddings, ragas_llm

        metric = ragas.AnswerCorrectness(
            llm=ragas_llm(calls), embeddings=ragas_embeddings(calls) if self.embeds else None,
            weights=self.weights, beta=self.beta,
        )  # fmt: skip
        metric.statement_generator_prompt = FilePrompt(
            lambda data: statements_call(data.question, data.answer)
        )
        metric.correctness_classifier_prompt = FilePrompt(
            lambda data: classification_call(data.question, data.answer, data.ground_truth)
        )
        return metric

    def inputs(self, example: Example, output: Output) -> Mapping[str, Any]:
        """Question, answer, reference."""
        return {"user_input": example.question, "response": output.answer, "reference": example.reference}

    def details(self, calls: Calls) -> dict[str, Any]:
        """The statements that are right, wrong and missing."""
        return {name: list(reply[name]) for reply in calls.seen("judge_correctness") for name in _LISTS}

    def reason(self, calls: Calls, example: Example, output: Output) -> str:
        """How many of each."""
        found = self.details(calls)
        right, wrong, missing = (len(found.get(name, ())) for name in _LISTS)
        return f"{right} statements right, {wrong} wrong, {missing} missing"

    def settings(self) -> dict[str, Any]:
        """With weights and beta."""
        return {**super().settings(), "weights": self.weights, "beta": self.beta}


def _entry(each: Mapping[str, Any]) -> dict[str, Any]:
    return {"statement": each["statement"], "reason": str(each.get("reason") or "")}


def _never(reply: Any) -> bool:
    return False
