"""``rag-kit evaluate``: ask a pipeline every question of a set, score what it gives."""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from rag_kit.cli import exits
from rag_kit.cli.evaluate_arguments import add_parser, dataset, json_value
from rag_kit.cli.evaluate_arguments import minima as minima_of
from rag_kit.cli.evaluate_parts import judge_of, pipeline_of
from rag_kit.cli.output import hint, problem, say, say_json
from rag_kit.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from rag_kit.evaluation import Results
    from rag_kit.evaluation.runs.metering import Progress

__all__ = ["add_parser", "run"]


def run(arguments: argparse.Namespace) -> int:
    """Evaluate and print.

    Raises:
        InvalidInputError: If the set, the pipeline, a metric or a setting is wrong.
        QualityError: If a metric does not reach what ``--min`` asks.
    """
    from rag_kit.evaluation import evaluate
    from rag_kit.evaluation.runs.run import take_examples
    from rag_kit.evaluation.scorers import default_metrics, get_metrics

    minima = minima_of(arguments)
    prices = json_value(arguments.prices, "--prices")
    named = None if arguments.metric is None else get_metrics(arguments.metric)
    examples = take_examples(dataset(arguments))
    metrics = default_metrics(examples) if named is None else named
    unknown = sorted(set(minima) - {metric.name for metric in metrics})
    if unknown:
        raise InvalidInputError(f"--min names {unknown[0]!r}, which is no --metric of this run")
    _check_folder(arguments.out, {example.id for example in examples})
    if arguments.limit is not None and arguments.limit < 1:
        raise InvalidInputError(f"--limit is {arguments.limit}; give a whole number from 1")
    with ExitStack() as stack:
        pipeline, name, version = pipeline_of(arguments, stack)
        try:
            results = evaluate(
                pipeline,
                examples[: arguments.limit],
                metrics,
                judge=judge_of(arguments, metrics),
                out=arguments.out,
                name=arguments.name or name,
                version=arguments.pipeline_version or version,
                max_concurrency=arguments.max_concurrency,
                timeout=arguments.timeout,
                max_calls=arguments.max_calls,
                max_tokens=arguments.max_tokens,
                deadline=arguments.deadline,
                prices=prices,
                progress=_progress(),
                retry_errors=not arguments.keep_errors,
            )
        except KeyboardInterrupt:
            if arguments.out is not None:
                hint(f"what is done is in {arguments.out}; the same command goes on from there")
            raise
    _show(results, arguments)
    _tell_what_is_missing(results, answers=bool(arguments.graph) or ":" in arguments.pipeline)
    _tell_of_ids_that_never_meet(results)
    return _verdict(results, minima, arguments)


def _check_folder(out: Path | None, ids: set[str]) -> None:
    """A folder with the results of other questions is not written to: they would be gone.

    Raises:
        InvalidInputError: If it has none of these questions.
    """
    from rag_kit.evaluation import Results

    if out is None or not (out / "manifest.json").is_file():
        return
    try:
        kept = {row.example.id for row in Results.load(out)}
    except InvalidInputError:  # damaged; the run itself says what becomes of it
        return
    if kept and not kept & ids:
        raise InvalidInputError(
            f"{str(out)!r} holds results of other questions ({sorted(kept)[0]!r:.80}, ...); name another folder"
        )


def _tell_what_is_missing(results: Results, *, answers: bool) -> None:
    """A metric without a single value is easily overlooked in a table."""
    for metric in results.metrics:
        cells = list(results.cells(metric).values())
        if cells and not any(cell.status == "ok" for cell in cells):
            reason = cells[0].reason or cells[0].status.replace("_", " ")
            if not answers and reason.endswith("gave no answer"):
                reason += (
                    "; without --graph the index is searched and nothing is answered: give --graph plain"
                )
            hint(f"{metric} has no value for any question: {reason}")


def _tell_of_ids_that_never_meet(results: Results) -> None:
    """Gold under other names than the passages have scores 0 everywhere, which looks like a bad retriever."""
    from rag_kit.evaluation.ranking.metrics import ranked_ids

    rows = [row for row in results.rows if row.output.passages and any(row.example.relevant.values())]
    ranked = any("relevant_at" in cell.details for row in rows for cell in row.cells.values())
    if not ranked or any(
        set(row.example.relevant) & set(ranked_ids(row.output.passages or (), row.example.relevant))
        for row in rows
    ):
        return
    gold = next(iter(rows[0].example.relevant))
    passages = rows[0].output.passages or ()
    names = " and ".join(repr(each)[:80] for each in dict.fromkeys(passages[0].ids))
    hint(
        f"none of the relevant documents was found for any question: they are named as {gold!r:.80}, a passage as "
        f"{names}; are these names of the same kind?"
    )


def _verdict(results: Results, minima: dict[str, float], arguments: argparse.Namespace) -> int:
    from rag_kit.evaluation.runs.results import QualityError, assert_quality

    if stopped := results.manifest.get("stopped_by"):
        problem(str(stopped))
        return exits.BUDGET
    errors = [row.output.error for row in results.rows if row.output.error is not None]
    if errors and len(errors) == len(results):
        problem(f"the pipeline failed on every question; on the first: {errors[0]}")
        return exits.FAILED
    if minima:
        try:
            assert_quality(results, minima, rule=arguments.min_rule)
        except QualityError as error:
            for line in str(error).splitlines():
                problem(line)
            return exits.FAILED
    return exits.OK


def _show(results: Results, arguments: argparse.Namespace) -> None:
    if arguments.json:
        manifest = results.manifest
        say_json(
            {
                "name": results.name,
                "examples": results.examples,
                "rows": len(results),
                "metrics": {name: each.to_json() for name, each in results.summary().items()},
                **{key: manifest.get(key) for key in ("status", "stopped_by", "usage", "done")},
            }
        )
    else:
        say(str(results))
    if arguments.out is not None:
        hint(f"written to {arguments.out}")


def _progress() -> bool | Callable[[Progress], None]:
    """A bar on a terminal; elsewhere one line at the end."""
    import sys

    if sys.stderr.isatty():
        return True

    def report(state: Progress) -> None:
        if state.done == state.total:
            hint(f"{state.total} questions done in {state.seconds:.1f} s; {state.cost()}")

    return report
