"""Calls, tokens and money that a run will take, from a sample whose prompts the judge is not sent."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from rag_kit.concurrency import use_budget
from rag_kit.concurrency.bridge import run_in_thread
from rag_kit.documents.display import Table
from rag_kit.errors import BudgetExceededError
from rag_kit.evaluation.judge.cache import JudgeCache
from rag_kit.evaluation.judge.judge import Judge
from rag_kit.evaluation.runs.metering import cost
from rag_kit.evaluation.runs.results import Results
from rag_kit.evaluation.runs.rows import PIPELINE, Row, digest
from rag_kit.evaluation.runs.run import Run
from rag_kit.evaluation.wording import main_language
from rag_kit.models.replies import estimate_tokens
from rag_kit.models.schema import target_of
from rag_kit.text import sentences

SAMPLE = 5  # questions
_MADE_UP_TEXT = "This is what the passages say about it."


@dataclass(repr=False)
class Estimate(Results):
    """Expected cost of a run: ``parts`` has ``pipeline``, each metric that asks the judge, and ``total``.

    Each has ``questions`` (those that are not done yet), ``calls``, ``input_tokens``, ``output_tokens`` and ``money``
    (``None`` where a price is unknown). ``asked`` are the questions that the pipeline was asked for it; those that
    ``failed`` say nothing of the cost. ``stopped`` names the cap that ended the asking, if one did.
    """

    parts: dict[str, dict[str, Any]] = field(default_factory=dict)
    asked: int = 0
    failed: int = 0
    stopped: str | None = None

    def _english(self) -> tuple[str, list[Table], list[str]]:
        names = ("questions", "calls", "input_tokens", "output_tokens", "money")
        header = ["", *(name.replace("_", " ") for name in names)]
        words = {part: self._say(part) for part in (PIPELINE, "total")}  # any other part is a metric
        rows = [[words.get(part, part), *map(counts.get, names)] for part, counts in self.parts.items()]
        notes = [
            f"The pipeline was asked {self.asked} questions for this; the judge was asked nothing. Tokens are "
            "estimated to about 30%, and replies as short: a judge that reasons writes more."
        ]
        if self.failed:
            notes.append(
                f"{self.failed} of the {self.asked} failed and are not counted: the others cost as said."
            )
        if self.stopped:
            notes.append(f"A cap ended the asking: {self.stopped}")
        return f"{self.name}: expected", [Table(header, rows, right=range(1, 6))], notes


class _Rehearsal(Judge):
    """A judge that counts the tokens it would send, and makes up replies that fit the schema."""

    def __init__(self, judge: Judge) -> None:
        vars(self).update(vars(judge))
        self._cache = JudgeCache(None)
        self.counts = [0, 0, 0]  # calls, tokens in and out

    async def _request_reply(self, prompt: Any, values: Mapping[str, Any], schema: Any) -> Any:
        """Count the call and its tokens, and make up a reply in place of the model's."""
        text = "\n".join(str(message.content) for message in prompt.format_messages(**values))
        target = None if schema is None else target_of(schema)
        made_up: Any = _MADE_UP_TEXT
        if target is not None:
            made_up = _make_up(target.json_schema, target.json_schema, _input_of(text))
            text += target.text  # the schema is sent, too
        took = 1, estimate_tokens(text), estimate_tokens(json.dumps(made_up))
        self.counts = [count + more for count, more in zip(self.counts, took, strict=True)]
        return made_up if target is None else target.accept(made_up)

    async def embed(self, texts: Any) -> list[list[float]]:
        return [[1.0] for _ in texts]


def _input_of(prompt: str) -> dict[str, Any]:
    """Return the JSON after ``input:`` in a prompt of Ragas's, or the list to translate; an empty dict for others."""
    for heading, next_heading in (("input: ", "Output:"), ("Statements to translate:", "")):
        if heading in prompt:
            text = prompt.rpartition(heading)[2]
            if next_heading:
                text = text.rpartition(next_heading)[0]
            with suppress(ValueError):  # it is no JSON
                data = json.loads(text)
                return data if isinstance(data, dict) else {"statements": data}
    return {}


def _make_up(schema: Mapping[str, Any], root: Mapping[str, Any], data: Mapping[str, Any]) -> Any:
    """Make up a value for a JSON schema; ``root`` is the schema with the definitions, ``data`` the prompt's input.

    A list is as long as the first list of the input; without one, as many items as its last text has sentences.
    """
    if "$ref" in schema:  # such as "#/$defs/Verdict"
        return _make_up(root["$defs"][schema["$ref"].rpartition("/")[2]], root, data)
    if "enum" in schema:
        return schema["enum"][0]
    if "anyOf" in schema:
        return _make_up(schema["anyOf"][0], root, data)
    json_type = schema.get("type")
    if json_type == "object":
        return {name: _make_up(part, root, data) for name, part in schema.get("properties", {}).items()}
    if json_type != "array":
        return {"string": _MADE_UP_TEXT, "boolean": True}.get(str(json_type), 1)  # 1 for a number
    item_schema = schema.get("items", {})
    lists = [value for value in data.values() if isinstance(value, list)]
    texts = [value for value in data.values() if isinstance(value, str)]
    if lists and item_schema.get("type") == "string":
        return [str(item) for item in lists[0]]  # such as translations, which are about as long
    length = 2
    if lists:
        length = len(lists[0])
    elif texts:
        length = len(sentences(texts[-1]))
    return [_make_up(item_schema, root, data)] * length


async def estimate_run(run: Run) -> Estimate:
    """Estimate what is left of a run: ask the pipeline a few of these questions, and count the judge's prompts."""
    await run_in_thread(run.restore_rows)
    answered_ids = {row.example.id for row in run.rows}
    unanswered = [example for example in run.examples if example.id not in answered_ids]
    asked: list[Row] = []
    try:
        with use_budget(replace(run.caps)):
            for example in sorted(unanswered, key=lambda item: digest(item.id))[:SAMPLE]:  # a random sample
                if row := await run.ask_example(example):
                    asked.append(row)
                if run.stopped:
                    break
    except BudgetExceededError as error:
        run.stop(error)
    succeeded = [row for row in asked if row.output.error is None]
    parts = {PIPELINE: _estimate_pipeline(succeeded, len(unanswered), run)}
    for metric in run.metrics if run.judge else ():
        unscored = [row for row in run.rows if metric.name not in row.cells]
        sample = [row for row in unscored if row.output.error is None][-SAMPLE:]
        if metric.needs_judge and sample:
            count = len(unscored) + len(run.examples) - len(run.rows)  # with those not answered yet
            parts[metric.name] = await _estimate_metric(metric, sample, count, run)
    total: dict[str, Any] = {"questions": len(run.examples)}
    for name in ("calls", "input_tokens", "output_tokens", "money"):
        counts = [part[name] for part in parts.values()]
        total[name] = None if None in counts else sum(counts)
    names = tuple(metric.name for metric in run.metrics)
    return Estimate(
        run.name, [], names, {"language": main_language(example.question for example in run.examples)},
        total=len(run.examples), parts={**parts, "total": total}, asked=len(asked),
        failed=len(asked) - len(succeeded), stopped=run.stopped,
    )  # fmt: skip


def _estimate_pipeline(rows: list[Row], questions: int, run: Run) -> dict[str, Any]:
    """Estimate calls, tokens and money of the pipeline for a number of questions, from the rows of a few."""
    counts_by_model = [counts for row in rows for counts in row.usage.get(PIPELINE, {}).values()]
    factor = questions / max(1, len(rows))
    input_tokens = sum(counts.get("input_tokens", 0) for counts in counts_by_model)
    output_tokens = sum(counts.get("output_tokens", 0) for counts in counts_by_model)
    if not counts_by_model:
        input_tokens = sum(row.output.tokens for row in rows)  # which of them are output is not known
    costs = [cost(run.prices, row.usage.get(PIPELINE, {}), row.output) for row in rows]
    known = [amount for amount in costs if amount is not None]
    has_prices = bool(run.prices) and len(known) == len(costs)
    return {
        "questions": questions, "calls": round(factor * sum(row.output.calls for row in rows)),
        "input_tokens": round(factor * input_tokens), "output_tokens": round(factor * output_tokens),
        "money": factor * sum(known) if has_prices else None,
    }  # fmt: skip


async def _estimate_metric(metric: Any, rows: list[Row], questions: int, run: Run) -> dict[str, Any]:
    """Estimate what a metric takes for a number of questions, from the rows of a few of them."""
    judge = _Rehearsal(run.judge)  # type: ignore[arg-type]  # called only with one
    counts_by_row = []  # each: calls, tokens sent, tokens received
    # the first row twice: the first time, a metric may also ask for translations of its prompts
    for row in [rows[0], *rows]:
        judge.counts = [0, 0, 0]
        await metric.measure(row.example, row.output, judge)
        counts_by_row.append(judge.counts)
    first, *usual = counts_by_row
    only_once = [max(0, count - again) for count, again in zip(first, usual[0], strict=True)]
    means = [sum(column) / len(usual) for column in zip(*usual, strict=True)]
    totals = [round(extra + questions * mean) for extra, mean in zip(only_once, means, strict=True)]
    calls, sent, received = totals
    tokens = {"input_tokens": sent, "output_tokens": received}
    money = cost(run.prices, {judge.name: tokens}, None)
    return {"questions": questions, "calls": calls, **tokens, "money": money}
