"""The four abilities that RGB measures (Chen et al., 2023), by ``evaluate`` with RGB's own rules as metrics."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import product, zip_longest
from math import ceil
from pathlib import Path
from typing import Any, Literal, NamedTuple

from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel

from rag_kit.concurrency.bridge import acall_function, blocking, run_in_thread
from rag_kit.documents.display import Table, TabularResult
from rag_kit.errors import InvalidInputError
from rag_kit.evaluation._files import find_file, read_jsonl
from rag_kit.evaluation.cells import Cell, Summary
from rag_kit.evaluation.examples import Example
from rag_kit.evaluation.metric import Metric
from rag_kit.evaluation.outputs import Output
from rag_kit.evaluation.runs.evaluating import aevaluate
from rag_kit.evaluation.runs.results import Results, interval_text
from rag_kit.evaluation.runs.rows import Row
from rag_kit.evaluation.sets.evaluation_set import EvaluationSet
from rag_kit.indexing.files import as_path
from rag_kit.models import atext_call
from rag_kit.prompts import load_prompt, render_passages
from rag_kit.retrieval.fields import check_count
from rag_kit.text.citations.decline import DECLINED


class Ability(NamedTuple):
    """An ability: the kind of question that measures it, its noise rates where they are fixed, its figures."""

    kind: Literal["plain", "integration", "wrong"]
    noise_rates: Sequence[float] | None
    figures: Sequence[str]


ABILITIES: dict[str, Ability] = {
    "noise_robustness": Ability("plain", None, ["accuracy"]),
    "negative_rejection": Ability("plain", [1.0], ["rejection"]),
    "information_integration": Ability("integration", None, ["accuracy"]),
    "counterfactual_robustness": Ability("wrong", [0.0], ["accuracy", "error_detection", "error_correction"]),
}
_FIGURES = ("accuracy", "rejection", "error_detection", "error_correction")
_DECLINES = ("信息不足", "insufficient information")
_ERROR_WORDS = ("事实性错误", "factual errors")
_SEED = 2333  # of RGB's own script


class AbilityMetric(Metric):
    """A figure of RGB, by searching for strings, without a judge.

    A reply that holds words of a decline sentence declines, whatever else it says; else it is right where one text of
    each part of the answer occurs in it, whatever the case of letters. Blanks of a Chinese reply do not count.
    """

    source, stage = "ours", "generation"
    output_needs = frozenset()

    def __init__(self, figure: str, declines: Sequence[str]) -> None:
        self.name, self.figure, self.declines = f"ours_rgb_{figure}", figure, list(declines)

    def settings(self) -> dict[str, Any]:
        """Return the words by which a reply declines."""
        return {"declines": self.declines}

    async def score(self, example: Example, output: Output, judge: Any) -> Cell:
        """Return 1 or 0; a correction is undefined where no error was detected."""
        if self.figure not in ABILITIES[example.tags["ability"]].figures:
            return Cell.not_applicable(f"{self.figure} is no figure of {example.tags['ability']}")
        if output.answer is None:
            return Cell.error("the pipeline gave no answer")
        texts = [output.answer, *self.declines]
        if example.tags["language"] == "zh":  # blanks between signs carry no meaning
            texts = [text.replace(" ", "") for text in texts]
        reply, *declines = texts
        is_decline = any(words in reply for words in declines)
        is_error_detected = any(words in reply for words in _ERROR_WORDS)
        if self.figure == "rejection":
            return Cell.ok(float(is_decline))
        if self.figure == "error_detection":
            return Cell.ok(float(is_error_detected))
        if self.figure == "error_correction" and not is_error_detected:
            return Cell.undefined("the reply does not speak of factual errors")
        has_parts = [
            any(text.lower() in reply.lower() for text in part) for part in example.metadata["parts"]
        ]
        return Cell.ok(float(all(has_parts) and not is_decline))


@dataclass(frozen=True)
class AbilityReport(TabularResult):
    """Result of `abilities`: ``results``, also loaded from a folder, and the scores made of them."""

    results: Results

    @cached_property
    def scores(self) -> dict[tuple[str, str, str, float], Summary]:
        """Mean, interval and counts by ``(ability, figure, language, noise)``."""
        groups: dict[tuple[str, str, str], list[Row]] = {}
        for row in self.results:
            tags = row.example.tags
            groups.setdefault((tags["ability"], tags["language"], tags["noise"]), []).append(row)
        summaries = {}
        for (ability, language, noise), rows in groups.items():
            by_metric = Results(ability, rows, self.results.metrics).summary()
            for figure in ABILITIES[ability].figures:
                summaries[ability, figure, language, float(noise)] = by_metric[f"ours_rgb_{figure}"]
        return summaries

    def to_json(self) -> dict[str, Any]:
        """Return the scores as plain JSON, without texts."""
        scores = []
        for (ability, figure, language, noise), score in self.scores.items():
            condition = {"ability": ability, "metric": figure, "language": language, "noise_rate": noise}
            scores.append({**condition, "value": score.mean, **asdict(score)})
        about = {key: self.results.manifest[key] for key in ("dataset", "stopped_by")}
        return {"name": self.results.name, **about, "scores": scores}

    def _contents(self) -> tuple[str, list[Table], list[str]]:
        rows = []
        for (*names, noise), score in self.scores.items():
            replies = f"{score.n} of {score.total}" + (f", {score.errors} failed" if score.errors else "")
            rows.append([*names, noise, score.mean, interval_text(score.low, score.high), replies])
        head = ["ability", "figure", "language", "noise", "mean", "95% interval", "replies"]
        stopped = self.results.manifest["stopped_by"]
        return self.results.name, [Table(head, rows)], [f"ended early: {stopped}"] if stopped else []


async def aabilities(
    pipeline: Any,
    folder: Path | str,
    *,
    abilities: Sequence[str] = tuple(ABILITIES),
    noise_rates: Sequence[float] = (0.0, 0.2, 0.4, 0.6, 0.8),
    passages: int = 5,
    limit: int | None = None,
    **run: Any,
) -> AbilityReport:
    """Measure what RGB measures (Chen et al., 2023, https://arxiv.org/abs/2309.01431), by its own rules.

    `abilities` is the same for scripts and Jupyter.

    - ``noise_robustness``: share of right answers while a share of the passages is noise, for each noise rate
    - ``negative_rejection``: share of declines where all of them are noise
    - ``information_integration``: share of right answers where all parts are needed, for each noise rate
    - ``counterfactual_robustness``: where the passages state a wrong answer, shares of right answers, of replies that
      tell of factual errors, and of right answers among these

    Args:
        pipeline: A chat model (asked with the prompt ``answer_or_doubt``), or a function, async or not, of a question
            and its passages (LangChain documents). For a graph, one that builds it upon them: ``lambda question,
            passages: build_plain_rag(RunnableLambda(lambda query: passages), llm).invoke(...)``.
        folder: With RGB's files: ``en.json``, ``en_int.json``, ``en_fact.json``; ``zh`` alike.
        abilities: Which of the four.
        noise_rates: Shares of noise, each at least 0 and less than 1.
        passages: Passages a question is asked with.
        limit: Only the first so many questions of each language and ability.
        run: As for `evaluate`: ``out``, ``name``, ``max_concurrency``, ``timeout``, caps, ``prices``, ``progress``.

    Raises:
        InvalidInputError: If an argument is not allowed, or the folder holds nothing for these abilities.

    Example:
        >>> import json, tempfile
        >>> one = {"id": 0, "query": "What pulls the sea?", "answer": "moon", "positive": ["The moon pulls the sea."],
        ...        "negative": ["The sea is salty."]}
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = (Path(folder) / "en.json").write_text(json.dumps(one))
        ...     report = abilities(lambda question, passages: passages[0].page_content, folder, progress=False,
        ...                        abilities=["noise_robustness", "negative_rejection"], noise_rates=[0.0], passages=1)
        >>> [(figure, score.mean) for (_, figure, _, _), score in report.scores.items()]
        [('accuracy', 1.0), ('rejection', 0.0)]
    """
    is_model = isinstance(pipeline, BaseChatModel)
    if not is_model and not callable(pipeline):
        raise InvalidInputError(f"{pipeline!r:.60} is no chat model, and no function of (question, passages)")
    # a graph declines in the kit's own words
    words = [*_DECLINES, *(sentence.rstrip(".。") for sentence in DECLINED.values() if not is_model)]
    metrics = [AbilityMetric(figure, words) for figure in _FIGURES]
    examples = await run_in_thread(_make_examples, folder, abilities, noise_rates, passages, limit)
    run.setdefault("name", getattr(pipeline, "__name__", type(pipeline).__name__))
    ask = _make_ask(pipeline)
    return AbilityReport(await aevaluate(ask, examples, metrics, make_input=lambda example: example, **run))


abilities = blocking(aabilities, "abilities")


def _make_ask(pipeline: Any) -> Callable[[Example], Awaitable[Any]]:
    prompts = {language: load_prompt("answer_or_doubt", language=language) for language in ("en", "zh")}

    async def ask(example: Example) -> Any:
        texts = enumerate(example.metadata["passages"], start=1)
        passages = [Document(id=f"{example.id}-{number}", page_content=text) for number, text in texts]
        if not isinstance(pipeline, BaseChatModel):
            return await acall_function(pipeline, example.question, passages)
        values = {"question": example.question, "passages": render_passages(passages)}
        return await atext_call(pipeline, prompts[example.tags["language"]], values)

    return ask


def _make_examples(folder: Any, abilities: Any, rates: Any, count: int, limit: int | None) -> EvaluationSet:
    """Make an example for each ability, question and noise rate, with ``count`` passages in its metadata."""
    if not abilities or isinstance(abilities, str) or set(abilities) - set(ABILITIES):
        raise InvalidInputError(f"abilities is {abilities!r:.120}; give a list of {', '.join(ABILITIES)}")
    for argument, number in (("passages", count), ("limit", 1 if limit is None else limit)):
        check_count(argument, number)
    if not isinstance(rates, Sequence) or not all(isinstance(r, (int, float)) and 0 <= r < 1 for r in rates):
        raise InvalidInputError(f"noise_rates is {rates!r:.80}; give a list of numbers from 0 to below 1")
    records: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for kind, language, record in _read_questions(as_path(folder, "folder")):
        records.setdefault((kind, language), []).append(record)
    examples = []
    for (name, ability), language in product(ABILITIES.items(), ("en", "zh")):
        questions = records.get((ability.kind, language), []) if name in abilities else []
        for record, rate in product(questions[:limit], ability.noise_rates or rates):
            examples.append(_make_example(name, language, record, rate, count))
    if not examples:
        raise InvalidInputError(
            f"{str(folder)!r:.200} holds no question for {', '.join(abilities)}; a folder of RGB has en.json or "
            "zh_int.json"
        )
    return EvaluationSet("rgb", examples)


def _make_example(ability: str, language: str, record: Mapping[str, Any], rate: float, count: int) -> Example:
    """Make the example of a record of RGB's; each part of the answer is a list of texts, any of which is right."""
    answer = record["answer"] if isinstance(record["answer"], list) else [record["answer"]]
    return Example(
        f"{ability}:{language}:{rate:g}:{record['id']}",
        record["query"],
        tags={"ability": ability, "language": language, "noise": f"{rate:g}"},
        metadata={
            "parts": [part if isinstance(part, list) else [part] for part in answer],
            "passages": draw_passages(ABILITIES[ability].kind, record, rate, count),
        },
    )


def draw_passages(kind: str, record: Mapping[str, Any], rate: float, count: int) -> list[str]:
    """Draw the passages that a question is asked with, as RGB's own script draws them.

    ``ceil(count * rate)`` of them are noise. Where there are too few of one sort, the other fills up. A question of
    several parts gets a passage of each part in turn, at least one, before noise; a counterfactual one the passages
    with the wrong answer.
    """
    generator = random.Random(_SEED)
    positive, negative = record["positive"], record["negative"]
    positive_count = count - ceil(count * rate)
    if kind == "wrong":
        wrong = record["positive_wrong"]
        chosen = generator.sample(wrong, min(len(wrong), count))
    elif kind == "integration":
        groups = [list(group) for group in positive if group]
        for group in groups:
            generator.shuffle(group)
        in_turn = [text for turn in zip_longest(*groups) for text in turn if text is not None]
        chosen = in_turn[: max(positive_count, len(groups))]
        chosen += negative[: max(0, count - len(chosen))]
    else:
        if rate < 1:  # else noise alone
            positive_count = max(positive_count, count - len(negative))
        chosen = positive[:positive_count]
        chosen = chosen + negative[: count - len(chosen)]
    generator.shuffle(chosen)
    return chosen


def _read_questions(folder: Path) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Yield kind, language and record of each question; the first file found for a kind is read."""
    names_by_kind = {"plain": ["{}_refine", "{}", "{}_fact"], "integration": ["{}_int"], "wrong": ["{}_fact"]}
    for language, (kind, names) in product(("en", "zh"), names_by_kind.items()):
        stems = [name.format(language) for name in names]
        endings = ("json", "jsonl", "json.gz", "jsonl.gz")
        path = find_file(folder, *(f"{stem}.{ending}" for stem in stems for ending in endings))
        for where, record in read_jsonl(path) if path else ():
            missing = {"id", "query", "answer", "positive", "negative"} - set(record)
            if missing or (kind == "wrong" and "positive_wrong" not in record):
                raise InvalidInputError(
                    f"{where}: no question of RGB, which has id, query, answer, and passages"
                )
            yield kind, language, record
