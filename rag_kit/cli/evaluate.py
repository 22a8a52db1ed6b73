"""``rag-kit evaluate``: ask a pipeline every question of a set, score what it gives."""

from __future__ import annotations

import argparse
import hashlib
import math
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_kit.cli import exits
from rag_kit.cli.opening import open_graph, open_retriever
from rag_kit.cli.options import DEFAULT_K, GRAPHS, add_options, pairs
from rag_kit.cli.output import hint, problem, say, say_json
from rag_kit.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rag_kit.evaluation import Example, Judge, Results
    from rag_kit.evaluation.metric import Metric
    from rag_kit.indexing import DocumentIndex

_DESCRIPTION = """Ask a pipeline every question of a set and score what it gives. With --out every finished step is
kept: killed or stopped, the same command goes on from there; unchanged, it asks nobody anything. --metric,
--column and --min may be given several times."""
_HOW_TO_ANSWER = "give --graph plain to have answers scored"
#: Options that `evaluate` takes under the same name.
_SETTINGS = ("out", "max_concurrency", "timeout", "max_calls", "max_tokens", "deadline")


def add_parser(commands: Any) -> None:
    """Add ``evaluate`` and its arguments."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "evaluate", help="score a pipeline on a set of questions", description=_DESCRIPTION
    )
    add = parser.add_argument
    add(
        "dataset",
        metavar="DATASET",
        type=Path,
        help="set of questions: .jsonl, .csv, .tsv, .parquet, or a folder",
    )
    add(
        "--metric", action="append", metavar="NAME",
        help="such as faithfulness or ndcg@10 (default: those that need no model and that the set has gold for)",
    )  # fmt: skip
    add(
        "--column", action="append", default=[], metavar="FIELD=NAME",
        help="which column of the set is which field, such as answers=Solution (usual names are known)",
    )  # fmt: skip
    add("--out", type=Path, metavar="DIR", help="folder of the results; a run goes on from what is there")
    add(
        "--min", action="append", default=[], metavar="METRIC=VALUE", dest="minima",
        help="end with exit code 1 unless the mean reaches the value",
    )  # fmt: skip
    add_options(parser, "--json")
    _add_pipeline(parser.add_argument_group("pipeline"))
    add = parser.add_argument_group("judge").add_argument
    add("--judge", metavar="NAME", help="language model that judges (default: RAG_KIT_CHAT_MODEL)")
    add("--judge-embeddings", metavar="NAME", help="embedding model of the judge")
    add("--judge-cache", type=Path, metavar="FILE", help="keep the judge's replies between runs")
    limits = parser.add_argument_group("limits")
    limits.add_argument("--limit", type=int, metavar="N", help="only the first N questions")
    limits.add_argument(
        "--timeout", type=float, metavar="SECONDS", help="time the pipeline has for one question"
    )
    add_options(limits, "--max-concurrency", "--max-calls", "--max-tokens", "--deadline")


def _add_pipeline(group: Any) -> None:
    add = group.add_argument
    add(
        "--pipeline",
        metavar="NAME",
        default="hybrid",
        help="with --index: bm25, dense, hybrid (default), or module:object that makes a retriever from the index; "
        "without: module:object, a Runnable, graph, retriever or function from a question (its code is run)",
    )
    add("--graph", choices=sorted(GRAPHS), help="a graph that answers (default: none, the index is searched)")
    add_options(
        group, "--index", "-k", "--filter", "--model", "--base-url", "--embedding-model", "--allow-degraded"
    )
    add("--name", metavar="NAME", help="what the pipeline is called in tables")


def run(arguments: argparse.Namespace) -> int:
    """Evaluate and print.

    Raises:
        InvalidInputError: If the set, the pipeline, a metric or a setting is wrong.
    """
    from rag_kit.evaluation import evaluate
    from rag_kit.evaluation.runs.evaluating import take_examples
    from rag_kit.evaluation.scorers import get_metrics

    minima = _minima(arguments.minima)
    named = None if arguments.metric is None else get_metrics(arguments.metric)
    examples = take_examples(_dataset(arguments))
    metrics = named or _default_metrics(examples, arguments)
    if unknown := sorted(set(minima) - {metric.name for metric in metrics}):
        raise InvalidInputError(f"--min names {unknown[0]!r}, which is no --metric of this run")
    _check_folder(arguments.out, {example.id for example in examples})
    if arguments.limit is not None and arguments.limit < 1:
        raise InvalidInputError(f"--limit is {arguments.limit}; give a whole number from 1")
    with ExitStack() as stack:
        pipeline, name, version = _pipeline(arguments, stack)
        try:
            results = evaluate(
                pipeline,
                examples[: arguments.limit],
                metrics,
                judge=_judge(arguments, metrics),
                name=arguments.name or name,
                version=version,
                progress=sys.stderr.isatty(),
                **{setting: getattr(arguments, setting) for setting in _SETTINGS},
            )
        except KeyboardInterrupt:
            if arguments.out is not None:
                hint(f"what is done is in {arguments.out}; the same command goes on from there")
            raise
    _show(results, arguments)
    _hint_at_unmatched_ids(results)
    return _verdict(results, minima)


def _minima(given: list[str]) -> dict[str, float]:
    """Metric -> the least mean that it must have; read before a run that may take hours."""
    form = "METRIC=VALUE, such as faithfulness=0.8"
    try:
        found = {name: float(value) for name, value in pairs(given, "--min", form).items()}
    except ValueError as error:
        raise InvalidInputError(f"--min: {error}; give {form}") from None
    if not all(map(math.isfinite, found.values())):
        raise InvalidInputError(f"--min is not finite; give {form}")
    return found


def _dataset(arguments: argparse.Namespace) -> Any:
    """The set, with the columns that were named."""
    from rag_kit.evaluation import EvaluationSet

    if not arguments.column:
        return EvaluationSet.load(arguments.dataset)
    if arguments.dataset.is_dir():
        raise InvalidInputError("--column is for a file; the columns of a folder are known")
    columns = pairs(arguments.column, "--column", "FIELD=NAME, such as answers=Solution")
    return EvaluationSet.load(arguments.dataset, columns=columns)


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


def _pipeline(arguments: argparse.Namespace, stack: ExitStack) -> tuple[Any, str, str | None]:
    """The pipeline, its name, and what tells it from others where its settings do not.

    Args:
        arguments: Of the command line.
        stack: Closes the index in the end.

    Raises:
        InvalidInputError: If an option is wrong, or does not go with another one.
    """
    pipeline = arguments.pipeline
    if arguments.index is None:
        for option in ("--graph", "-k", "--filter", "--model", "--base-url"):
            if getattr(arguments, option.lstrip("-").replace("-", "_")) is not None:
                raise InvalidInputError(f"{option} needs --index DIR")
        if ":" not in pipeline:
            raise InvalidInputError(
                f"--pipeline {pipeline} needs --index DIR; without one give module:object of your own"
            )
        return pipeline, pipeline, None
    found: Any
    if arguments.graph is None:
        index, found = stack.enter_context(open_retriever(arguments))
        name, parts = pipeline, []
    else:
        index, _, found, described = stack.enter_context(open_graph(arguments, output="full"))
        hint(described)
        name, parts = f"{arguments.graph} {pipeline}", [f"model={described}"]
    parts += [f"k={arguments.k or DEFAULT_K}", f"index={_content(index)}", f"filter={arguments.filter}"]
    return found, name, ", ".join([name, *parts])


def _content(index: DocumentIndex) -> str:
    """A hash of what an index holds: with another content the pipeline is another one."""
    known = hashlib.sha256()
    ids = sorted(index.ids())
    for start in range(0, len(ids), 1000):
        for document in index.get(ids[start : start + 1000]):
            known.update(f"{document.id}\0{document.page_content}\0".encode("utf-8", "surrogatepass"))
    return known.hexdigest()[:12]


def _judge(arguments: argparse.Namespace, metrics: Sequence[Metric]) -> Judge | None:
    """The judge; ``None`` where no metric needs one, or no model is there: then a line says what is needed."""
    judged = [metric.name for metric in metrics if metric.needs_judge]
    if not judged and not any(metric.needs_embeddings for metric in metrics):
        return None
    from rag_kit.evaluation import Judge
    from rag_kit.models import chat_model
    from rag_kit.models.chat import describe_model, is_extractive

    llm = arguments.judge if judged else "none"
    if llm is None and is_extractive(chat_model()):
        needs = "a judge needs a language model; give --judge NAME, or set RAG_KIT_CHAT_MODEL"
        hint(f"{', '.join(judged)}: {needs}")
        llm = "none"
    judge = Judge(llm, arguments.judge_embeddings, cache=arguments.judge_cache)
    if llm != "none":
        hint(f"judge: {describe_model(judge.llm)}")
    return judge


def _answers(arguments: argparse.Namespace) -> bool:
    """Whether the pipeline may give answers; an index that is searched without a graph gives none."""
    return bool(arguments.graph) or ":" in arguments.pipeline


def _default_metrics(examples: Sequence[Example], arguments: argparse.Namespace) -> tuple[Metric, ...]:
    """The metrics that need no model and that the set has gold for; of answers only where answers are given."""
    from rag_kit.evaluation.scorers import default_metrics

    metrics = default_metrics(examples)
    kept = tuple(each for each in metrics if _answers(arguments) or "answer" not in each.output_needs)
    left_out = [each.name for each in metrics if each not in kept]
    if left_out and kept:
        hint(
            f"{', '.join(left_out)} left out: the index is searched and nothing is answered; {_HOW_TO_ANSWER}"
        )
    return kept or metrics


def _hint_at_unmatched_ids(results: Results) -> None:
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


def _verdict(results: Results, minima: dict[str, float]) -> int:
    """The exit code, after the problem that it stands for."""
    from rag_kit.evaluation.runs.results import QualityError, assert_quality

    if stopped := results.manifest.get("stopped_by"):
        problem(str(stopped))
        return exits.BUDGET
    errors = [row.output.error for row in results.rows if row.output.error is not None]
    if errors and len(errors) == len(results):
        problem(f"the pipeline failed on every question; on the first: {errors[0]}")
        return exits.FAILED
    try:
        if minima:
            assert_quality(results, minima)
    except QualityError as error:
        for line in str(error).splitlines():
            problem(line)
        return exits.FAILED
    return exits.OK


def _show(results: Results, arguments: argparse.Namespace) -> None:
    if arguments.json:
        manifest = {key: results.manifest.get(key) for key in ("status", "stopped_by", "usage", "done")}
        metrics = {name: vars(each) for name, each in results.summary().items()}
        counts = {"examples": results.examples, "rows": len(results)}
        say_json({"name": results.name, **counts, "metrics": metrics, **manifest})
    else:
        say(str(results))
    if arguments.out is not None:
        hint(f"written to {arguments.out}")
