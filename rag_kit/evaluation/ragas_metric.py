"""The one wrapper that runs any metric of ``ragas.metrics.collections``."""

from __future__ import annotations

import asyncio
import copy
import inspect
import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import Enum
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from itertools import chain
from typing import Any, Literal
from weakref import WeakKeyDictionary

from rag_kit.concurrency.bridge import run_coroutine, run_in_thread
from rag_kit.documents.identity import to_plain
from rag_kit.errors import InvalidInputError, MissingExtraError, ModelOutputError
from rag_kit.evaluation.cells import Cell
from rag_kit.evaluation.examples import Example
from rag_kit.evaluation.judge import adapter
from rag_kit.evaluation.judge.cache import PerLoop
from rag_kit.evaluation.judge.judge import Judge
from rag_kit.evaluation.judge.ragas_columns import arguments_of, needs_of, read_column, rubric, scores_of
from rag_kit.evaluation.judge.ragas_table import CLASSES, ROWS, RagasRow, reason_for_no_value, reply_fault
from rag_kit.evaluation.metric import Metric, Source
from rag_kit.evaluation.outputs import Output

_MOST_REPLIES = 50


class RagasMetric(Metric):
    """Any metric of ``ragas.metrics.collections``, with the judge in place of its LLM and embeddings.

    Ragas's own class computes the value and its own prompts are sent, so the number is the one that Ragas gives with
    the same model. Which columns it reads is taken from the signature of its ``ascore``: ``user_input``, ``response``,
    ``retrieved_contexts``, ``reference``, ``reference_contexts`` come from the example and the output, any other from
    the example's metadata; where one is missing, the cell is ``not_applicable`` and says which. In Chinese, the
    kit's translations of its prompts are sent (`prompts/ragas`); of a prompt that has none, the judge translates the
    examples, once, as Ragas's ``adapt`` does it. ``details["prompts"]`` of each cell says which were sent.
    `ragas_table` says which faults of Ragas are caught.

    Args:
        metric: A name such as ``"faithfulness"``, the name of a class of Ragas's, the class, a ``partial`` of it, or an
            object. Its ``llm`` and ``embeddings`` are not asked, the judge is: ``llm=ragas_llm(None)`` will do.
        name: The metric's name in tables; default: its own.
        chinese: Who translates for Chinese questions: the ``"kit"``, or always the ``"judge"``.
        **settings: What the class is made with, such as ``strictness=1`` or ``rubrics={1: "Rude.", 3: "Kind."}``.

    Raises:
        InvalidInputError: If there is no such metric, or settings come with an object.
        MissingExtraError: If Ragas is not installed.
    """

    source: Source = "ragas"

    def __init__(
        self,
        metric: Any,
        name: str | None = None,
        *,
        chinese: Literal["kit", "judge"] = "kit",
        **settings: Any,
    ) -> None:
        if chinese not in ("kit", "judge"):
            raise InvalidInputError(f"chinese is {chinese!r:.80}; allowed are 'kit' and 'judge'")
        if find_spec("ragas") is None:
            raise MissingExtraError("eval", "Ragas's metrics")
        if isinstance(metric, partial):
            bound = {key: value for key, value in metric.keywords.items() if key not in (*_MODELS, "name")}
            name, metric = name or metric.keywords.get("name"), metric.func
            settings = {**bound, **settings}
        if "rubrics" in settings:
            settings["rubrics"] = rubric(settings["rubrics"])
        self._source, self.name, self._settings, row = _resolve(metric, name, settings)
        self._row, self._chinese = row, chinese
        self._is_object = not isinstance(self._source, (str, type))
        self._object: Any = metric if self._is_object else None  # of a class, one is made at the first use
        self.stage, self.needs_judge = row.stage, row.llm
        attributes = vars(metric) if self._is_object else self._settings
        # AnswerCorrectness compares vectors only if the second of its weights is above 0
        self.needs_embeddings = row.embeddings and (attributes.get("weights") or (0, 1))[-1] > 0
        columns = {*row.needs, *(["reference"] if attributes.get("with_reference") else [])}
        vars(self).update(needs_of(columns, best_of=row.best_of))  # example_needs and the like
        scores = scores_of(attributes.get("rubrics") or {})
        self.low, self.high = min(scores, default=row.low), max(scores, default=row.high)
        self.higher_is_better, self.skips_declined = row.higher_is_better, row.skips_declined
        self._adapted: WeakKeyDictionary[Judge, Any] = WeakKeyDictionary()  # Chinese prompts, or an error
        self._locks = PerLoop(asyncio.Lock)

    async def score(self, example: Example, output: Output, judge: Judge | None) -> Cell:
        """Return Ragas's value; with several accepted answers, the best over them where the metric allows it."""
        if self.needs_embeddings and judge is not None and judge.embeddings is None:
            return Cell.not_applicable(
                "the judge has no embedding model; give it one, or: rag-kit models install e5"
            )
        metric = await self._get_object()
        values = self._read_arguments(metric, example, output)
        if not self._row.best_of:
            return await self._compute(metric, values, example, judge)
        references = dict.fromkeys(filter(None, (example.reference, *example.answers)))
        versions = [{**values, "reference": text} for text in references]
        cells = [await self._compute(metric, version, example, judge) for version in versions]
        return max(cells, key=lambda cell: cell.value or 0.0)

    def settings(self) -> dict[str, Any]:
        """Give the record of this metric: Ragas's version, the metric's class and its arguments.

        ``prompts``, the kit's prompt files, is empty for one that asks a judge: Ragas sends its own prompts.
        """
        settings = _public_settings(self._source) if self._is_object else self._settings
        record = {"ragas": version("ragas"), "class": self._row.ragas_class, "with": to_plain(settings)}
        record["reads"] = "answers without marks of citations; questions after their earlier turns"
        chinese = "judge" if self._chinese == "judge" else f"kit {adapter.chinese_digest()}"
        sent = {"sent": "Ragas's own prompts", "chinese": chinese}
        return {**record, "prompts": [], **sent} if self.needs_judge else record

    async def prompts(self, judge: Judge, language: str) -> dict[str, Any]:
        """Return the prompts as sent in ``"en"`` or ``"zh"``, by attribute; Chinese ones are made once for a judge."""
        metric = await self._get_object()
        originals = adapter.prompts_of(metric)
        if language != "zh":
            return originals
        async with self._locks.for_running_loop():
            if judge not in self._adapted:
                by_judge = self._chinese == "judge"
                try:
                    self._adapted[judge] = await adapter.adapted_prompts(metric, judge, by_judge=by_judge)
                except ModelOutputError as error:  # kept, so that not each row asks again
                    self._adapted[judge] = error
        if isinstance(adapted := self._adapted[judge], ModelOutputError):
            raise adapted
        return {**originals, **adapted}

    async def _compute(
        self, metric: Any, values: Mapping[str, Any], example: Example, judge: Judge | None
    ) -> Cell:
        """Return Ragas's cell for the arguments of ``ascore``; if a model is needed, a copy asks the judge."""
        row = self._row
        if (cell := row.cell_without_ragas(values)) is not None:
            return cell
        if judge is None or not (self.needs_judge or self.needs_embeddings):
            result = await run_in_thread(lambda: run_coroutine(metric.ascore(**values)))
            return _make_cell(result, row.remark(values))
        scores = scores_of(values.get("rubrics") or getattr(metric, "rubrics", None) or {})
        calls = adapter.Calls(judge, lambda data, reply: reply_fault(data, reply, scores))
        metric_copy, details = await self._copy_for(metric, calls, judge.language_for(example.question))
        await calls.embed([values[column] for column in row.ahead])  # ``calls`` keeps the vectors for Ragas
        result, failure = None, None
        try:
            result = await metric_copy.ascore(**values)
        except Exception as error:  # noqa: BLE001 - Ragas fails on the empty lists that make no value; else raised
            failure = error
        why_undefined = reason_for_no_value(calls.replies)
        cause = calls.failure or failure
        if why_undefined is None and cause is not None:
            raise cause
        if calls.replies:
            records = [reply.model_dump(mode="json") for reply in calls.replies[:_MOST_REPLIES]]
            details["replies"] = to_plain(records)
        if why_undefined is not None:
            return Cell.undefined(why_undefined, **details)
        return _make_cell(result, result.reason or _first_rejected(calls.replies), **details)

    async def _copy_for(self, metric: Any, calls: adapter.Calls, language: str) -> tuple[Any, dict[str, Any]]:
        """Return a copy of the metric that asks the judge through ``calls``, and a record of its prompts."""
        metric_copy = copy.copy(metric)
        if self.needs_embeddings:
            metric_copy.embeddings = adapter.ragas_llm(calls)
        if not self.needs_judge:
            return metric_copy, {}
        metric_copy.llm = adapter.ragas_llm(calls)
        originals, sent = adapter.prompts_of(metric), await self.prompts(calls.judge, language)
        for name, prompt in sent.items():
            setattr(metric_copy, name, adapter.ObservedPrompt(prompt, calls))
        used = {name: "english" if sent[name] is originals[name] else sent[name].language for name in sent}
        return metric_copy, {"prompts": used}

    def _read_arguments(self, metric: Any, example: Example, output: Output) -> dict[str, Any]:
        """Return the arguments of ``ascore`` by name; optional ones without a value are left out."""
        arguments = {}
        for name, (column, is_required) in arguments_of(metric).items():
            if name == "reference" and getattr(metric, "with_reference", None) is False:
                continue
            value = read_column(self._row.reads.get(name) or column, example, output)
            if value is not None or is_required:
                arguments[name] = value
        return arguments

    async def _get_object(self) -> Any:
        """Return the metric object; of a class one is made at the first use."""
        if self._object is None:
            self._object = await run_in_thread(self._build_object)
        return self._object

    def _build_object(self) -> Any:
        metric_class = adapter.ragas_class(self._source) if isinstance(self._source, str) else self._source
        accepted = inspect.signature(metric_class).parameters
        models = {name: adapter.ragas_llm(None) for name in _MODELS if name in accepted}
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of the packages below Ragas
                return metric_class(**{**models, **self._settings})
        except ImportError as error:
            raise MissingExtraError("eval", f"the metric {self.name!r}") from error


_MODELS = ("llm", "embeddings")  # of Ragas's classes: the judge serves as both


def _resolve(metric: Any, name: str | None, settings: dict[str, Any]) -> tuple[Any, str, Any, RagasRow]:
    """Return a metric's source (an object, a class, or the name of one to import later), name, settings and row."""
    row = None
    if isinstance(metric, str):
        row, name = ROWS.get(metric) or CLASSES.get(metric), name or metric
        if row is not None and not settings:
            return row.ragas_class, name, dict(row.settings), row
        settings = {**(row.settings if row else {}), **settings}
        metric = adapter.ragas_class(row.ragas_class if row else metric)
    if isinstance(metric, type):
        name = name or _snake_case(metric.__name__)
        _check_settings(metric, settings)
    elif settings:
        raise InvalidInputError(f"settings {sorted(settings)} come with an object; give them to its class")
    return metric, name or str(metric.name), settings, row or _find_table_row(metric)


def _find_table_row(metric: Any) -> RagasRow:
    """Return the row of a metric's class or of a base class, else one made from the arguments of ``ascore``."""
    metric_class = metric if isinstance(metric, type) else type(metric)
    class_name = metric_class.__name__
    if "MultiModal" in class_name:
        raise InvalidInputError(
            f"{class_name} asks with pictures over a client of its own; the judge asks with text"
        )
    for base in metric_class.__mro__:
        if base.__name__ in CLASSES:
            return replace(CLASSES[base.__name__], ragas_class=class_name)
    needs = tuple(column for column, is_required in arguments_of(metric_class).values() if is_required)
    # names of what a class is made with, or an object has: the models that it asks are among them
    names = inspect.signature(metric_class).parameters if metric is metric_class else vars(metric)
    low, high = getattr(metric, "allowed_values", None) or (0.0, 1.0)
    return RagasRow(class_name, "end_to_end", needs, "llm" in names, "embeddings" in names, low, high)


def _check_settings(metric_class: Any, settings: Mapping[str, Any]) -> None:
    """Refuse settings that the class does not name: Ragas's classes ignore unknown keywords."""
    parameters = inspect.signature(metric_class).parameters.values()
    named = {parameter.name for parameter in parameters if parameter.kind is not parameter.VAR_KEYWORD}
    valid = named - {*_MODELS, "name"}
    if unknown := sorted(set(settings) - valid):
        raise InvalidInputError(
            f"{metric_class.__name__} takes no {unknown[0]!r}; it takes {', '.join(sorted(valid)) or 'no settings'}"
        )


def _public_settings(metric: Any) -> dict[str, Any]:
    """Return the attributes of a metric object that decide its value: plain ones, and the texts of prompts."""
    settings: dict[str, Any] = {}
    for name, attribute in vars(metric).items():
        value = attribute.value if isinstance(attribute, Enum) else attribute
        if isinstance(value, (str, int, float, list, tuple, dict)):
            settings[name] = value
    for name, prompt in adapter.prompts_of(metric).items():
        settings[name] = [getattr(prompt, "instruction", ""), str(getattr(prompt, "examples", ""))]
    return settings


def _make_cell(result: Any, reason: str, **details: Any) -> Cell:
    value, reason = float(result.value), reason or result.reason or ""
    if math.isnan(value):
        return Cell.undefined(reason or "Ragas has no value: the judge found nothing to judge", **details)
    return Cell.ok(value, reason, **details)


def _first_rejected(replies: Sequence[Any]) -> str:
    """Return a reason that names the first statement which the judge rejected; "" if there is none."""
    for value in chain.from_iterable(vars(reply).values() for reply in replies):
        for item in value if isinstance(value, list) else ():
            if 0 in (getattr(item, "verdict", 1), getattr(item, "attributed", 1)):  # 0: a rejected statement
                return f"not supported: {item.statement}"
    return ""


def _snake_case(name: str) -> str:
    """Return the kit's name of a class of Ragas's, else the class's name in snake case."""
    known = next((key for key, row in ROWS.items() if row.ragas_class == name and not row.settings), None)
    return known or "".join(f"_{sign.lower()}" if sign.isupper() else sign for sign in name).strip("_")
