"""A chat model as an evaluator: several passages in one call, the calls at the same time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from langchain_core.documents import Document

from rag_kit.errors import InvalidInputError
from rag_kit.graphs.evaluators.base import Evaluator, Grading, Thresholds
from rag_kit.graphs.steps import ask, beside
from rag_kit.prompts import load_prompt, render_passages
from rag_kit.retrieval.base import check_count
from rag_kit.retrieval.prompting import check_model, field_of, grade_score, read_numbers

_LONGEST_REASON = 200


class LLMEvaluator(Evaluator):
    """Ask a chat model whether each passage states the answer or a part of it.

    The paper measured ChatGPT as a grader (58 to 65% right) well below its small trained model (84%): an LLM is not
    the better evaluator because it is the larger model. Its thresholds here are those of the prompt's own scale:
    above 0.3 lies what the prompt calls stating a part of the answer, below 0 what it calls not relevant.

    Args:
        llm: A chat model.
        prompts: Folder whose ``grade_passage`` and ``grade_passages`` files replace the packaged ones.
        batch_size: Most passages in one call. 1 judges each by itself; more costs fewer calls and lets passages
            influence each other.
        max_chars: Longest part of a passage that is shown to the model, in characters; a call of several passages shows
            at most four times as much.
        thresholds: Where its confidence is enough, if you fitted them.

    Raises:
        InvalidInputError: An argument is not allowed.
        InvalidInputError: A prompt file is wrong.

    Example:
        >>> from langchain_core.language_models import FakeListChatModel
        >>> from rag_kit.concurrency.steps import run
        >>> reply = '{"grades": [{"id": 1, "relevant": true, "score": 0.9, "reason": "It says why."}]}'
        >>> model = FakeListChatModel(responses=[reply])
        >>> judged = run(LLMEvaluator(model).grade("Why is it loud?", [Document("Worn, so loud.")], "en"), {})
        >>> judged[0].reason
        'It says why.'
    """

    name = "llm"
    thresholds = Thresholds(0.0, 0.3)
    takes_instructions = True

    def __init__(
        self,
        llm: Any,
        *,
        prompts: Path | None = None,
        batch_size: int = 10,
        max_chars: int = 8_000,
        thresholds: Thresholds | None = None,
    ) -> None:
        self.llm = check_model(llm)
        self.batch_size = check_count("batch_size", batch_size)
        self.max_chars = check_count("max_chars", max_chars)
        self.single = self.batch_size == 1
        name = "grade_passage" if self.single else "grade_passages"
        self._prompts = {each: load_prompt(name, language=each, folder=prompts) for each in ("en", "zh")}
        self.thresholds = thresholds or type(self).thresholds

    async def grade(
        self, question: str, passages: Sequence[Document], language: str, *, instructions: str | None = None
    ) -> list[Grading]:
        """Judge passages; see ``Evaluator.grade``. ``instructions`` go in place of the prompt file's own."""
        prompt = self._prompts["zh" if language == "zh" else "en"]
        prompt = prompt.with_instructions(instructions) if instructions and instructions.strip() else prompt
        batches = self._batches([_cut(passage, self.max_chars) for passage in passages])
        calls = []
        for batch in batches:
            values: dict[str, Any] = {"question": question, "passages": render_passages(batch)}
            calls.append(ask(self.llm, prompt, values if self.single else {**values, "count": len(batch)}))
        fan = await beside(calls)
        gradings: list[Grading] = []
        for batch, outcome in zip(batches, fan.outcomes, strict=True):
            if isinstance(outcome.error, InvalidInputError):
                raise outcome.error
            if outcome.error is not None:
                gradings += [self.ungraded(outcome.error)] * len(batch)
            elif self.single:
                gradings.append(self._grading(outcome.value))
            else:
                gradings += self._of_batch(outcome.value, len(batch))
        return gradings

    def _batches(self, passages: Sequence[Document]) -> list[list[Document]]:
        """The passages of each call, so that neither their number nor their text grows without bound."""
        batches: list[list[Document]] = []
        room = 0
        for passage in passages:
            length = len(passage.page_content)
            if not batches or len(batches[-1]) == self.batch_size or room < length:
                batches.append([])
                room = 4 * self.max_chars
            batches[-1].append(passage)
            room -= length
        return batches

    def _grading(self, grade: Any) -> Grading:
        score = grade_score(grade)
        if score is None:
            return self.ungraded("the model gave no score from 0 to 1")
        reason = field_of(grade, "reason")
        line = " ".join(reason.split()) if isinstance(reason, str) else ""
        return Grading(2 * score - 1, line[:_LONGEST_REASON] or "the model gave no reason")

    def _of_batch(self, answer: Any, count: int) -> list[Grading]:
        """The grades of one call by id: unknown ids fall away, of a repeated one the first counts."""
        items = field_of(answer, "grades")
        found: dict[int, Any] = {}
        for item in items if isinstance(items, list) else []:
            places = read_numbers([item], count).places if isinstance(item, dict) else []
            if places:
                found.setdefault(places[0], item)
        return [
            self._grading(found[place]) if place in found else self.ungraded("the model left it out")
            for place in range(count)
        ]


def _cut(passage: Document, limit: int) -> Document:
    text = passage.page_content
    return passage if len(text) <= limit else Document(f"{text[: limit - 1]}…", metadata=passage.metadata)
