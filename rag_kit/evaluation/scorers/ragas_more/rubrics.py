"""Rubrics: an answer scored by a scale whose levels are described, one scale for all examples or one for each."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any

from rag_kit.errors import InvalidInputError
from rag_kit.evaluation.cells import Cell
from rag_kit.evaluation.scorers.ragas_more.judged import JudgedMetric, tagged

if TYPE_CHECKING:
    from rag_kit.evaluation.examples import Example
    from rag_kit.evaluation.judge import Call, Calls
    from rag_kit.evaluation.outputs import Output

_SCORE = re.compile(r"(?:score)?\s*(-?\d{1,3})(?:_description)?")
_MOST_LEVELS, _MOST_CHARS = 20, 4_000

DEFAULTS: dict[str, dict[int, str]] = {
    "en": {
        1: "Wrong throughout, or beside the question.",
        2: "Right in places, with grave faults or gaps.",
        3: "Right in the main, but unclear, or important details are missing.",
        4: "Right and clear; only small things are missing or inexact.",
        5: "Right, clear and complete.",
    },
    "zh": {
        1: "完全错误，或答非所问。",
        2: "部分正确，但有严重错误或遗漏。",
        3: "大体正确，但表述不清，或缺少重要细节。",
        4: "正确且清楚，只有细小的遗漏或不准确。",
        5: "正确、清楚、完整。",
    },
}
"""The scale where none is given; it is shown to the judge in the language of the question."""


class Rubrics(JudgedMetric):
    """Ragas's ``DomainSpecificRubrics``: one scale for all examples.

    Args:
        rubrics: Score -> what an answer of that score is like, such as ``{1: "Wrong.", 3: "Right."}``; Ragas's keys
            (``score1_description``) do too. Default: `DEFAULTS`, from 1 to 5.
        with_reference: Whether the judge is shown the reference answer.

    Raises:
        InvalidInputError: If the scale has fewer than 2 or more than 20 levels, or is none.
    """

    name = "rubrics"
    stage = "end_to_end"
    prompts = ("judge_rubric",)

    def __init__(
        self,
        name: str | None = None,
        *,
        rubrics: Mapping[Any, str] | None = None,
        with_reference: bool = False,
    ) -> None:
        super().__init__(name)
        self.rubrics = None if rubrics is None else levels(rubrics, "rubrics")
        self.with_reference = bool(with_reference)
        self.example_needs = frozenset({"reference"}) if with_reference else frozenset()
        scores = self.rubrics or DEFAULTS["en"]
        self.low, self.high = float(min(scores)), float(max(scores))

    def scale(self, example: Example, language: str) -> dict[int, str]:
        """The levels that hold for an example."""
        return self.rubrics or DEFAULTS[language]

    async def ahead(self, calls: Calls, example: Example, output: Output) -> Cell | None:
        """See that the scale is one."""
        self.scale(example, calls.language)
        return None

    def make(self, ragas: ModuleType, calls: Calls, example: Example, output: Output) -> Any:
        """Ragas's object."""
        from rag_kit.evaluation.judge.adapter import FilePrompt, ragas_llm

        scale = self.scale(example, calls.language)
        metric = self.ragas_metric(ragas, ragas_llm(calls), scale)
        metric.scoring_prompt = FilePrompt(
            lambda data: _call(scale, example, output, example.reference if self.with_reference else None)
        )
        return metric

    def ragas_metric(self, ragas: ModuleType, llm: Any, scale: Mapping[int, str]) -> Any:
        """The object with its own prompt."""
        return ragas.DomainSpecificRubrics(
            llm=llm, rubrics=as_ragas(scale), with_reference=self.with_reference
        )

    def inputs(self, example: Example, output: Output) -> Mapping[str, Any]:
        """Question, answer, and the reference if it is shown."""
        found = {"user_input": example.question, "response": output.answer}
        return {**found, "reference": example.reference} if self.with_reference else found

    def details(self, calls: Calls) -> dict[str, Any]:
        """What the judge says of the answer."""
        replies = calls.seen("judge_rubric")
        return {"feedback": replies[0]["feedback"]} if replies else {}

    def reason(self, calls: Calls, example: Example, output: Output) -> str:
        """The same, as a sentence."""
        return str(self.details(calls).get("feedback", ""))

    def settings(self) -> dict[str, Any]:
        """The scale too."""
        scale = {str(score): text for score, text in (self.rubrics or {}).items()} or "default"
        return {**super().settings(), "rubrics": scale, "with_reference": self.with_reference}


class InstanceRubrics(Rubrics):
    """Ragas's ``InstanceSpecificRubrics``: the scale is the example's own ``metadata["rubrics"]``.

    Args:
        low: Smallest score that a scale may have.
        high: Greatest score that a scale may have.
        with_reference: Whether the judge is shown the reference answer, where there is one.
    """

    name = "instance_rubrics"
    metadata_needs = frozenset({"rubrics"})

    def __init__(
        self, name: str | None = None, *, low: int = 1, high: int = 5, with_reference: bool = True
    ) -> None:
        super().__init__(name, with_reference=with_reference)
        if type(low) is not int or type(high) is not int or low >= high:
            raise InvalidInputError(
                f"low={low!r}, high={high!r} is not allowed; give whole numbers, low below high"
            )
        self.example_needs = frozenset()
        self.low, self.high = float(low), float(high)

    def scale(self, example: Example, language: str) -> dict[int, str]:
        """The example's own."""
        found = levels(example.metadata["rubrics"], "metadata['rubrics']")
        if min(found) < self.low or max(found) > self.high:
            raise InvalidInputError(
                f"metadata['rubrics'] goes from {min(found)} to {max(found)}, the metric from {self.low:g} to "
                f"{self.high:g}; give InstanceRubrics(low=, high=) that hold for all examples"
            )
        return found

    def ragas_metric(self, ragas: ModuleType, llm: Any, scale: Mapping[int, str]) -> Any:
        """The object with its own prompt."""
        return ragas.InstanceSpecificRubrics(llm=llm)

    def inputs(self, example: Example, output: Output) -> Mapping[str, Any]:
        """The scale too."""
        return {**super().inputs(example, output), "rubrics": as_ragas(self.scale(example, "en"))}

    def settings(self) -> dict[str, Any]:
        """The range; the scale is a part of the example."""
        return {**super().settings(), "rubrics": "of the example", "low": self.low, "high": self.high}


def levels(rubrics: Any, where: str) -> dict[int, str]:
    """A scale as score -> description, in order.

    Raises:
        InvalidInputError: If it is none.

    Example:
        >>> levels({"score2_description": "Right.", "1": "Wrong."}, "rubrics")
        {1: 'Wrong.', 2: 'Right.'}
    """
    found: dict[int, str] = {}
    if isinstance(rubrics, Mapping):
        for key, text in rubrics.items():
            match = None if isinstance(key, bool) else _SCORE.fullmatch(str(key).strip())
            if match and isinstance(text, str) and text.strip() and len(text) <= _MOST_CHARS:
                found[int(match[1])] = text.strip()
    if not isinstance(rubrics, Mapping) or len(found) != len(rubrics) or not 2 <= len(found) <= _MOST_LEVELS:
        raise InvalidInputError(
            f"{where} is {rubrics!r:.120}; give from 2 to {_MOST_LEVELS} scores, each with a text of at most "
            f"{_MOST_CHARS:,} characters, such as {{1: 'Wrong.', 3: 'Right.'}}"
        )
    return dict(sorted(found.items()))


def as_ragas(scale: Mapping[int, str]) -> dict[str, str]:
    """A scale with Ragas's keys."""
    return {f"score{score}_description": text for score, text in scale.items()}


def rubrics(name: str) -> Rubrics:
    """The default scale; with reference if the name says so."""
    return Rubrics(name, with_reference=name.endswith("_with_reference"))


def _call(scale: Mapping[int, str], example: Example, output: Output, reference: str | None) -> Call:
    from rag_kit.errors import ModelOutputError
    from rag_kit.evaluation.judge.calls import Call

    async def finish(calls: Calls, reply: Any) -> Any:
        if reply["score"] not in scale:
            allowed = ", ".join(map(str, scale))
            raise ModelOutputError(
                f"the judge gave the score {reply['score']!r:.40}; the scale has {allowed}"
            )
        return reply

    values = {
        "question": example.question,
        "answer": output.answer or "",
        "rubric": tagged("level", [({"score": score}, text) for score, text in scale.items()]),
        "reference": reference or "",
        "context": "\n\n".join(output.contexts),
    }
    return Call("judge_rubric", values, finish=finish, keep=lambda reply: reply["score"] in scale)
