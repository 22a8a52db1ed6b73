"""Calls, tokens and money that a run will take, from a sample whose prompts the judge is not sent."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rag_kit._redact import redact
from rag_kit.concurrency import use_budget
from rag_kit.concurrency.bridge import run_in_thread
from rag_kit.documents.display import Table
from rag_kit.errors import BudgetExceededError
from rag_kit.evaluation.judge.cache import JudgeCache
from rag_kit.evaluation.judge.judge import Judge
from rag_kit.evaluation.runs.metering import RunBudget, cost
from rag_kit.evaluation.runs.results import Results
from rag_kit.evaluation.runs.rows import PIPELINE, Row, RunFolder, digest
from rag_kit.evaluation.runs.run import Run, RunSubject
from rag_kit.models.replies import estimate_tokens
from rag_kit.models.schema import target_of
from rag_kit.text import sentences

SAMPLE = 5  # questions
_WORDS = "This is what the passages say about it."
_KINDS: Mapping[str, Any] = {"integer": 1, "number": 1, "boolean": True}


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

    def _contents(self) -> tuple[str, list[Table], list[str]]:
        names = ("questions", "calls", "input_tokens", "output_tokens", "money")
        header = ["", *(name.replace("_", " ") for name in names)]
        rows = [[part, *(counts[name] for name in names)] for part, counts in self.parts.items()]
        notes = [
            f"The pipeline was asked {self.asked} questions for this; the judge was asked nothing. Tokens are "
            "estimated to about 30%, and replies as short: a judge that reasons writes more."
        ]
        if self.failed:
            notes.append(
                f"{self.failed} of the {self.asked} failed and are not counted: the others cost as said."
            )
        if self.stopped:
            notes.append(f"A cap ended the asking: {self.stopped}.")
        return f"{self.name}: expected", [Table(header, rows, right=range(1, 6))], notes


class _Rehearsal(Judge):
    """A judge that counts what it would send, and makes up replies in the form asked for."""

    def __init__(self, judge: Judge) -> None:
        vars(self).update(vars(judge))
        self._cache = JudgeCache(None)
        self.counts = [0, 0, 0]  # calls, tokens in and out

    async def _request_reply(self, prompt: Any, values: Mapping[str, Any], schema: Any) -> Any:
        sent = "\n".join(str(message.content) for message in prompt.format_messages(**values))
        form = None if schema is None else target_of(schema)
        made = _WORDS if form is None else _make_up(form.json_schema, form.json_schema, _input_of(sent))
        sizes = 1, estimate_tokens(sent + (form.text if form else "")), estimate_tokens(json.dumps(made))
        self.counts = [count + size for count, size in zip(self.counts, sizes, strict=True)]
        return made if form is None else form.accept(made)

    async def embed(self, texts: Any) -> list[list[float]]:
        return [[1.0] for _ in texts]


def _input_of(prompt: str) -> dict[str, Any]:
    """Return the input in a prompt of Ragas's, JSON at its end; empty for others."""
    for begin, end in (("input: ", "Output:"), ("Statements to translate:", None)):
        if begin in prompt:
            text = prompt.rpartition(begin)[2]
            try:
                data = json.loads((text.rpartition(end)[0] if end else text).strip())
            except ValueError:
                continue
            return data if isinstance(data, dict) else {"statements": data}
    return {}


def _make_up(schema: Mapping[str, Any], root: Mapping[str, Any], data: Mapping[str, Any]) -> Any:
    """Make up a value for a JSON schema; a list is as long as the list, or the last text, in the prompt's input."""
    if "$ref" in schema:
        return _make_up(root["$defs"][schema["$ref"].rpartition("/")[2]], root, data)
    if "enum" in schema:
        return schema["enum"][0]
    if "anyOf" in schema:
        return _make_up(schema["anyOf"][0], root, data)
    kind = schema.get("type")
    if kind == "object":
        return {name: _make_up(part, root, data) for name, part in schema.get("properties", {}).items()}
    if kind == "array":
        lists = [item for item in data.values() if isinstance(item, list)]
        texts = [item for item in data.values() if isinstance(item, str)]
        if lists and schema.get("items", {}).get("type") == "string":
            return [str(item) for item in lists[0]]  # such as translations, which are about as long
        size = len(lists[0]) if lists else len(sentences(texts[-1])) if texts else 2
        return [_make_up(schema.get("items", {}), root, data)] * size
    return _WORDS if kind == "string" else _KINDS.get(str(kind), 1)


async def estimate_run(job: RunSubject, folder: RunFolder | None) -> Estimate:
    """Ask the pipeline a few of the questions not done yet, and count the prompts that would judge them."""
    run = Run(job, folder, lambda progress: None)
    await run_in_thread(run.take_over)
    done = {row.example.id for row in run.rows}
    left = [example for example in job.examples if example.id not in done]
    asked: list[Row] = []
    try:
        with use_budget(RunBudget(**job.caps)):
            for example in sorted(left, key=lambda item: digest(item.id))[:SAMPLE]:  # from anywhere
                if row := await run.ask_example(example):
                    asked.append(row)
                if run.stopped:
                    break
    except BudgetExceededError as error:
        run.stopped = run.stopped or redact(str(error))
    rows = [row for row in asked if row.output.error is None]
    parts = {PIPELINE: _pipeline_part(rows, len(left), job)}
    for metric in job.metrics if job.judge else ():
        lacking = [row for row in run.rows if metric.name not in row.cells]
        answered = [row for row in lacking if row.output.error is None]
        if metric.needs_judge and answered:
            number = len(lacking) + len(job.examples) - len(run.rows)
            parts[metric.name] = await _metric_part(metric, answered[-SAMPLE:], number, job)
    money = [part["money"] for part in parts.values()]
    total: dict[str, Any] = {"questions": len(job.examples)}
    total |= {
        name: sum(part[name] for part in parts.values())
        for name in ("calls", "input_tokens", "output_tokens")
    }
    total["money"] = None if None in money else sum(money)
    names = tuple(metric.name for metric in job.metrics)
    parts["total"] = total
    return Estimate(
        job.name,
        [],
        names,
        {},
        len(job.examples),
        parts=parts,
        asked=len(asked),
        failed=len(asked) - len(rows),
        stopped=run.stopped,
    )


def _pipeline_part(rows: list[Row], number: int, job: RunSubject) -> dict[str, Any]:
    """Estimate what the pipeline costs for ``number`` questions, from the rows of a few."""
    used = [counts for row in rows for counts in row.usage.get(PIPELINE, {}).values()]
    share = number / max(1, len(rows))
    tokens = {name: sum(counts.get(name, 0) for counts in used) for name in ("input_tokens", "output_tokens")}
    if not used:
        tokens["input_tokens"] = sum(row.output.tokens for row in rows)
    costs = [cost(job.prices, row.usage.get(PIPELINE, {}), row.output) for row in rows]
    return {
        "questions": number, "calls": round(share * sum(row.output.calls for row in rows)),
        **{name: round(share * count) for name, count in tokens.items()},
        "money": None if not job.prices or None in costs else share * sum(filter(None, costs)),
    }  # fmt: skip


async def _metric_part(metric: Any, rows: list[Row], number: int, job: RunSubject) -> dict[str, Any]:
    """Estimate what a metric costs for so many questions; what it asks once, as translations, counts once."""
    judge = _Rehearsal(job.judge)  # type: ignore[arg-type]  # asked only with one
    measured = []
    for row in [rows[0], *rows]:
        judge.counts = [0, 0, 0]
        await metric.measure(row.example, row.output, judge)
        measured.append(judge.counts)
    first, *each = measured
    once = [max(0, a - b) for a, b in zip(first, each[0], strict=True)]
    means = [sum(column) / len(each) for column in zip(*each, strict=True)]
    calls, sent, received = (round(a + number * mean) for a, mean in zip(once, means, strict=True))
    usage = {judge.name: {"input_tokens": sent, "output_tokens": received}}
    counts = {"questions": number, "calls": calls, "input_tokens": sent, "output_tokens": received}
    return {**counts, "money": cost(job.prices, usage, None)}
