"""``abilities``: questions with given passages, run by ``evaluate`` with RGB's own rules as metrics."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.retrievers import BaseRetriever

from rag_kit.concurrency.bridge import acall_function, blocking, run_in_thread
from rag_kit.documents.tables import Table, tables_html, tables_text
from rag_kit.errors import InvalidInputError
from rag_kit.evaluation.cells import Cell, Summary
from rag_kit.evaluation.examples import Example
from rag_kit.evaluation.metric import Metric
from rag_kit.evaluation.outputs import Output
from rag_kit.evaluation.rgb.questions import ABILITIES, examples_of
from rag_kit.evaluation.runs.evaluating import aevaluate
from rag_kit.evaluation.runs.results import Results
from rag_kit.evaluation.runs.rows import Row
from rag_kit.evaluation.sets.evaluation_set import EvaluationSet
from rag_kit.models import atext_call
from rag_kit.prompts import load_prompt, render_passages
from rag_kit.text.citations.decline import DECLINED

_FIGURES = ("accuracy", "rejection", "error_detection", "error_correction")
_DECLINES = ("信息不足", "insufficient information")
_ERRORS = ("事实性错误", "factual errors")


class GivenPassages(BaseRetriever):
    """A retriever that returns the same passages for every query: with it, `abilities` measures any graph."""

    passages: list[Document]

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        return [document.model_copy(deep=True) for document in self.passages]


class AbilityMetric(Metric):
    """A figure of RGB, by searching for strings; no judge is asked.

    A reply that holds words of a decline sentence declines, whatever else it says; else it is right where one text of
    each part of the answer occurs in it, whatever the case of letters. Blanks of a Chinese reply do not count.
    """

    source, stage = "ours", "generation"
    output_needs = frozenset()

    def __init__(self, figure: str, declines: Sequence[str] = _DECLINES) -> None:
        self.name, self.figure, self.declines = f"ours_rgb_{figure}", figure, list(declines)

    def settings(self) -> dict[str, Any]:
        """The words by which a reply declines."""
        return {"declines": self.declines}

    async def score(self, example: Example, output: Output, judge: Any) -> Cell:
        """1 or 0; a correction is undefined where no error was detected."""
        if self.figure not in ABILITIES[example.tags["ability"]][2]:
            return Cell.not_applicable(f"{self.figure} is no figure of {example.tags['ability']}")
        if output.answer is None:
            return Cell.error("the pipeline gave no answer")
        blank = " " if example.tags["language"] == "zh" else "\0"
        reply = output.answer.replace(blank, "")
        declined = any(words.replace(blank, "") in reply for words in self.declines)
        parts = [any(text.lower() in reply.lower() for text in part) for part in example.metadata["parts"]]
        detected = any(words in reply for words in _ERRORS)
        if self.figure == "error_correction" and not detected:
            return Cell.undefined("the reply does not speak of factual errors")
        values = {"rejection": declined, "error_detection": detected}
        return Cell.ok(float(values.get(self.figure, all(parts) and not declined)))


@dataclass(frozen=True)
class AbilityReport:
    """What `abilities` measured: ``results``, also loaded from a folder, and the scores made of them."""

    results: Results

    @cached_property
    def scores(self) -> dict[tuple[str, str, str, float], Summary]:
        """``(ability, figure, language, noise)`` -> mean, interval and counts."""
        groups: dict[tuple[str, str, str], list[Row]] = {}
        for row in self.results:
            tags = row.example.tags
            groups.setdefault((tags["ability"], tags["language"], tags["noise"]), []).append(row)
        found = {}
        for (ability, language, noise), rows in groups.items():
            part = Results(ability, rows, self.results.metrics).summary()
            for figure in ABILITIES[ability][2]:
                found[ability, figure, language, float(noise)] = part[f"ours_rgb_{figure}"]
        return found

    def to_json(self) -> dict[str, Any]:
        """The scores as plain JSON; no texts."""
        names = ("ability", "metric", "language", "noise_rate")
        return {
            "name": self.results.name,
            "dataset": self.results.manifest["dataset"],
            "stopped_by": self.results.manifest["stopped_by"],
            "scores": [
                {**dict(zip(names, key, strict=True)), "value": score.mean, **score.to_json()}
                for key, score in self.scores.items()
            ],
        }

    def __str__(self) -> str:
        return tables_text(*self._shown())

    def _repr_html_(self) -> str:
        return tables_html(*self._shown())

    def _shown(self) -> tuple[str, list[Table], list[str]]:
        rows = []
        for (*names, noise), score in self.scores.items():
            interval = None if score.low is None else f"{score.low:.3f} to {score.high:.3f}"
            failed = f", {score.errors} failed" if score.errors else ""
            rows.append([*names, noise, score.mean, interval, f"{score.n} of {score.total}{failed}"])
        head = ["ability", "figure", "language", "noise", "mean", "95% interval", "replies"]
        stopped = self.results.manifest["stopped_by"]
        return self.results.name, [Table(head, rows)], [f"ended early: {stopped}"] if stopped else []


async def aabilities(
    pipeline: Any,
    source: EvaluationSet | Path | str,
    *,
    abilities: Sequence[str] = tuple(ABILITIES),
    noise_rates: Sequence[float] = (0.0, 0.2, 0.4, 0.6, 0.8),
    passages: int = 5,
    limit: int | None = None,
    declines: Sequence[str] | None = None,
    **run: Any,
) -> AbilityReport:
    """Measure what RGB measures (Chen et al., 2023, https://arxiv.org/abs/2309.01431), by its own rules.

    `abilities` is the same for scripts and Jupyter.

    - ``noise_robustness``: share of right answers while a share of the passages is noise, for each noise rate
    - ``negative_rejection``: share of declines where all of them are noise
    - ``information_integration``: share of right answers where all parts are needed, for each noise rate
    - ``counterfactual_robustness``: share of right answers where the passages state a wrong one, of replies that tell
      of factual errors, and of right answers among these

    Args:
        pipeline: A chat model (asked with the prompt ``answer_or_doubt``), or a function of a question and its
            passages (LangChain documents), async or not. For a graph, a function that builds it upon the passages:
            ``lambda question, passages: build_plain_rag(GivenPassages(passages=passages), llm).invoke(...)``.
        source: A folder of RGB's files (``en.json``, ``en_int.json``, ``en_fact.json``; ``zh`` alike), or an
            `EvaluationSet` with a corpus, short answers and relevant ids: then questions are made of it.
        abilities: Which of the four.
        noise_rates: Shares of noise, each at least 0 and less than 1.
        passages: Passages a question is asked with.
        limit: Only the first so many questions of each language and ability.
        declines: Words that decline beside RGB's ("insufficient information", 信息不足); default: the kit's own
            decline sentences for functions, nothing for chat models.
        run: As for `evaluate`: ``out``, ``name``, ``max_concurrency``, ``timeout``, caps, ``prices``, ``progress``.

    Returns:
        ``report.scores``: ``(ability, figure, language, noise)`` -> mean, interval and counts; ``print`` shows a table.

    Raises:
        InvalidInputError: If an argument is not allowed, or the source holds nothing for these abilities.

    Example:
        >>> from rag_kit.evaluation import EvaluationSet
        >>> texts = ("The moon pulls the sea.", "The sea is salty.")
        >>> one = Example("q1", "What pulls the sea?", answers=("moon",), reference_contexts=texts[:1])
        >>> tides = EvaluationSet("tides", [one], corpus=texts)
        >>> report = abilities(lambda question, passages: passages[0].page_content, tides, progress=False,
        ...                    abilities=["noise_robustness", "negative_rejection"], noise_rates=[0.0], passages=1)
        >>> [(figure, score.mean) for (_, figure, _, _), score in report.scores.items()]
        [('accuracy', 1.0), ('rejection', 0.0)]
    """
    model = isinstance(pipeline, BaseChatModel)
    if not model and not callable(pipeline):
        raise InvalidInputError(f"{pipeline!r:.60} is no chat model, and no function of (question, passages)")
    own = [] if model else [sentence.rstrip(".。") for sentence in DECLINED.values()]
    words = [*_DECLINES, *(own if declines is None else declines)]
    metrics = [AbilityMetric(figure, words) for figure in _FIGURES]
    examples = await run_in_thread(examples_of, source, abilities, noise_rates, passages, limit)
    run.setdefault("name", getattr(pipeline, "__name__", type(pipeline).__name__))
    results = await aevaluate(_asker(pipeline), examples, metrics, make_input=lambda example: example, **run)
    return AbilityReport(results)


abilities = blocking(aabilities, "abilities")


def _asker(pipeline: Any) -> Callable[[Example], Awaitable[Any]]:
    prompts = {language: load_prompt("answer_or_doubt", language=language) for language in ("en", "zh")}

    async def ask(example: Example) -> Any:
        passages = [
            Document(id=f"{example.id}-{place}", page_content=text)
            for place, text in enumerate(example.metadata["passages"], start=1)
        ]
        if not isinstance(pipeline, BaseChatModel):
            return await acall_function(pipeline, example.question, passages)
        values = {"question": example.question, "passages": render_passages(passages)}
        return await atext_call(pipeline, prompts[example.tags["language"]], values)

    return ask
