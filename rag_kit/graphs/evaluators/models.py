"""Models as evaluators: a chat model, and a cross-encoder, which reads question and passage together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from langchain_core.cross_encoders import BaseCrossEncoder
from langchain_core.documents import Document
from langchain_core.runnables import RunnableWithFallbacks
from langchain_core.runnables.base import RunnableBindingBase

from rag_kit.concurrency.notes import write_note
from rag_kit.documents.identity import field_of
from rag_kit.errors import InvalidInputError
from rag_kit.graphs.evaluators.base import MAX_REASON, Evaluator, Grading, Thresholds
from rag_kit.graphs.running import ask, call_user_function, run_side_by_side
from rag_kit.models.model_call import is_extractive
from rag_kit.prompts import load_prompt, render_passages
from rag_kit.prompts.rendering import prompt_batches
from rag_kit.retrieval.asking import grade_score, read_numbers
from rag_kit.retrieval.fields import check_count, check_model
from rag_kit.retrieval.rerank.base import check_scores

_MAX_CHARS, _MAX_CHARS_OF_CALL = 8_000, 32_000  # of a passage, and of all passages of a call


class LLMEvaluator(Evaluator):
    """Ask a chat model whether each passage states the answer or a part of it, by its first 8,000 characters.

    Its thresholds are those of the prompt's own scale: above 0.3 lies what the prompt calls stating a part of the
    answer, below 0 what it calls not relevant.

    Args:
        llm: A chat model.
        prompts: Folder whose ``grade_passage`` and ``grade_passages`` files replace the packaged ones.
        batch_size: Most passages in one call. 1 judges each by itself; more cost fewer calls and influence each other.
        thresholds: Where its confidence is enough, if you fitted them.

    Raises:
        InvalidInputError: An argument is not allowed, or a prompt file is wrong.

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
        thresholds: Thresholds | None = None,
    ) -> None:
        self.llm = without_extractive(check_model(llm))
        self.batch_size = check_count("batch_size", batch_size)
        name = "grade_passage" if batch_size == 1 else "grade_passages"
        self._english = load_prompt(name, language="en", folder=prompts)
        self._chinese = load_prompt(name, language="zh", folder=prompts)
        self.thresholds = thresholds or self.thresholds

    async def grade(
        self, question: str, passages: Sequence[Document], language: str, *, instructions: str | None = None
    ) -> list[Grading]:
        """Return a grading for each passage, in order; ``instructions`` replace those of the prompt file."""
        prompt = self._chinese if language == "zh" else self._english
        prompt = prompt.with_instructions(instructions) if instructions and instructions.strip() else prompt
        batches = self._batches(passages)
        if cut_count := sum(len(passage.page_content) > _MAX_CHARS for passage in passages):
            note = f"grade: {cut_count} passages judged by their first {_MAX_CHARS:,} characters"
            write_note(note, unsearched=True)  # the answer may come after these
        calls = []
        for batch in batches:
            values = {"question": question, "passages": render_passages(batch), "count": len(batch)}
            # the prompt for one passage takes no count
            calls.append(ask(self.llm, prompt, {name: values[name] for name in prompt.input_variables}))
        fan = await run_side_by_side(calls)
        gradings: list[Grading] = []
        for batch, outcome in zip(batches, fan.outcomes, strict=True):
            if isinstance(outcome.error, InvalidInputError):
                raise outcome.error
            gradings += self._read_grades(outcome.error or outcome.value, len(batch))
        return gradings

    def _batches(self, passages: Sequence[Document]) -> list[list[Document]]:
        """Shorten passages and group them for calls."""
        shortened = []
        for passage in passages:
            text = passage.page_content
            text = text if len(text) <= _MAX_CHARS else f"{text[: _MAX_CHARS - 1]}…"
            shortened.append(Document(text, metadata=passage.metadata))
        lengths = [len(passage.page_content) for passage in shortened]
        return prompt_batches(shortened, lengths, max_count=self.batch_size, max_size=_MAX_CHARS_OF_CALL)

    def _read_grades(self, answer: Any, count: int) -> list[Grading]:
        """Read the grades of one call by id: unknown ids are dropped, of a repeated one the first counts."""
        if isinstance(answer, Exception):
            return [self.ungraded(answer)] * count
        if self.batch_size == 1:
            return [self._read_grade(answer)]
        gradings = [self.ungraded("the model left it out")] * count
        for item in reversed(field_of(answer, "grades")):  # so that the first entry of an id is written last
            positions = read_numbers([item], count)[0] if isinstance(item, dict) else []
            for position in positions:  # one; none for an unknown id
                gradings[position] = self._read_grade(item)
        return gradings

    def _read_grade(self, grade: Any) -> Grading:
        """Read a grade from 0 to 1 as a confidence from -1 to 1."""
        score = grade_score(grade)
        if score is None:
            return self.ungraded("the model gave no score from 0 to 1")
        reason = field_of(grade, "reason")
        line = " ".join(reason.split()) if isinstance(reason, str) else ""
        return Grading(2 * score - 1, line[:MAX_REASON] or "the model gave no reason")


def without_extractive(model: Any) -> Any:
    """Remove the extractive model from a model's fallbacks: on a language model's scale it rejects every passage.

    Where it would have answered, the call fails instead, and its passages count as not judged.
    """
    if isinstance(model, RunnableBindingBase):
        return model.model_copy(update={"bound": without_extractive(model.bound)})
    if isinstance(model, RunnableWithFallbacks):
        others = [without_extractive(other) for other in model.fallbacks if not is_extractive(other)]
        return model.model_copy(update={"fallbacks": others})
    return model


class CrossEncoderEvaluator(Evaluator):
    """Judge passages with any LangChain cross-encoder, all pairs in one call.

    A score x becomes the confidence tanh(x / 2): 0 where a model of logits gives even odds.

    Args:
        model: A ``langchain_core.cross_encoders.BaseCrossEncoder``.
        thresholds: Where its confidence is enough. The default fits no model: fit yours by ``fit_thresholds``.

    Raises:
        InvalidInputError: ``model`` is not a cross-encoder.
    """

    name = "cross_encoder"

    def __init__(self, model: Any, *, thresholds: Thresholds | None = None) -> None:
        if not isinstance(model, BaseCrossEncoder):
            raise InvalidInputError(
                f"model is a {type(model).__name__}; give a LangChain cross-encoder "
                "(langchain_core.cross_encoders.BaseCrossEncoder)."
            )
        self.model, self.thresholds = model, thresholds or self.thresholds

    async def grade(self, question: str, passages: Sequence[Document], language: str) -> list[Grading]:
        """Return a grading for each passage, in order (see ``Evaluator.grade``)."""
        pairs = [(question, passage.page_content) for passage in passages]
        try:
            given = await call_user_function(self.name, self.model.score, pairs)
            scores = check_scores(given, len(passages))  # None for one that is no finite number
        except Exception as error:  # noqa: BLE001 - whatever it is, no passage is graded
            return [self.ungraded(error) for _ in passages]
        return [
            self.ungraded("the model gave no finite score")
            if score is None
            else Grading(math.tanh(score / 2), f"score {score:.2f}")
            for score in scores
        ]
