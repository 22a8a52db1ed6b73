"""``rag-kit evaluate``: ask a pipeline every question of a set, score what it gives."""

from __future__ import annotations

import argparse
import hashlib
import math
import sys
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_kit.cli import exits
from rag_kit.cli.opening import open_graph, open_retriever
from rag_kit.cli.options import DEFAULT_K, GRAPHS, MODEL, add_options, given
from rag_kit.cli.output import hint, problem, say, say_json
from rag_kit.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rag_kit.evaluation import Example, Judge, Results
    from rag_kit.evaluation.metric import Metric
    from rag_kit.indexing import DocumentIndex

DESCRIPTION = """Ask a pipeline every question of a set and score what it gives. With --out every finished step is
kept: killed or stopped, the same command goes on from there; unchanged, it asks nobody anything. --metric,
--column and --min may be given several times."""
#: Options that `evaluate` takes under the same name.
_SETTINGS = ("out", "max_concurrency", "timeout", "max_calls", "max_tokens", "deadline")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``evaluate``."""
    add = parser.add_argument
    what = "set of questions: .jsonl, .csv, .tsv, .parquet, or a folder"
    add("dataset", metavar="DATASET", type=Path, help=what)
    what = "such as faithfulness or ndcg@10 (default: those that need no model and that the set has gold for)"
    add("--metric", action="append", metavar="NAME", help=what)
    what = "which column of the set is which field, such as answers=Solution (usual names are known)"
    add("--column", action="append", default=[], metavar="FIELD=NAME", help=what)
    add("--out", type=Path, metavar="DIR", help="folder of the results; a run goes on from what is there")
    what = "end with exit code 1 unless the mean reaches the value"
    add("--min", action="append", default=[], metavar="METRIC=VALUE", dest="minima", help=what)
    add("--limit", type=int, metavar="N", help="only the first N questions")
    add("--timeout", type=float, metavar="SECONDS", help="time the pipeline has for one question")
    what = (
        "with --index: bm25, dense, hybrid (default), or module:object that makes a retriever from the index; "
        "without: module:object, a Runnable, graph, retriever or function from a question (its code is run)"
    )
    add("--pipeline", metavar="NAME", default="hybrid", help=what)
    what = "a graph that answers (default: none, the index is searched)"
    add("--graph", choices=sorted(GRAPHS), help=what)
    add("--name", metavar="NAME", help="what the pipeline is called in tables")
    add_options(parser, "--index", "-k", "--filter", "--embedding-model", "--allow-degraded", *MODEL)
    add("--judge", metavar="NAME", help="language model that judges (default: RAG_KIT_CHAT_MODEL)")
    add("--judge-embeddings", metavar="NAME", help="embedding model of the judge")
    add("--judge-cache", type=Path, metavar="FILE", help="keep the judge's replies between runs")
    add_options(parser, "--max-concurrency", "--json")


def run(arguments: argparse.Namespace) -> int:
    """Evaluate and print.

    Raises:
        InvalidInputError: If the set, the pipeline, a metric or a setting is wrong.
    """
    from rag_kit.evaluation import EvaluationSet, evaluate
    from rag_kit.evaluation.runs.evaluating import take_examples
    from rag_kit.evaluation.scorers import get_metrics

    minima = _minima(arguments.minima)
    named = None if arguments.metric is None else get_metrics(arguments.metric)
    columns = _pairs(arguments.column, "--column FIELD=NAME, such as answers=Solution")
    examples = take_examples(EvaluationSet.load(arguments.dataset, columns=columns or None))
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
                **given(arguments, *_SETTINGS),
            )
        except KeyboardInterrupt:
            if arguments.out is not None:
                hint(f"what is done is in {arguments.out}; the same command goes on from there")
            raise
    _show(results, arguments)
    _hint_at_unmatched_ids(results)
    return _verdict(results, minima)


def _pairs(texts: list[str], form: str) -> dict[str, str]:
    """NAME -> VALUE of each ``NAME=VALUE``; the name may hold ``=``."""
    parts = [text.rpartition("=") for text in texts]
    if not all(name.strip() and value.strip() for name, _, value in parts):
        raise InvalidInputError(f"{' '.join(texts)!r:.80} has another form; give {form}")
    return {name.strip(): value.strip() for name, _, value in parts}


def _minima(texts: list[str]) -> dict[str, float]:
    """Metric -> the least mean that it must have; read before a run that may take hours."""
    form = "--min METRIC=VALUE, such as faithfulness=0.8"
    try:
        found = {name: float(value) for name, value in _pairs(texts, form).items()}
    except ValueError as error:
        raise InvalidInputError(f"{error}; give {form}") from None
    if not all(map(math.isfinite, found.values())):
        raise InvalidInputError(f"{' '.join(texts)!r:.80} is not finite; give {form}")
    return found


def _check_folder(out: Path | None, ids: set[str]) -> None:
    """A folder with the results of other questions is not written to: they would be gone.

    Raises:
        InvalidInputError: If it has none of these questions.
    """
    from rag_kit.evaluation import Results

    if out is None or not (out / "manifest.json").is_file():
        return
    kept: set[str] = set()
    with suppress(InvalidInputError):  # damaged; the run itself says what becomes of it
        kept = {row.example.id for row in Results.load(out)}
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
        needs = {"--graph": arguments.graph, "-k": arguments.k, "--filter": arguments.filter,
                 "--model": arguments.model, "--base-url": arguments.base_url}  # fmt: skip
        wrong = [option for option, value in needs.items() if value is not None]
        wrong += [] if ":" in pipeline else [f"--pipeline {pipeline}"]
        if wrong:
            advice = "without one give --pipeline module:object of your own"
            raise InvalidInputError(f"{wrong[0]} needs --index DIR; {advice}")
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


def _default_metrics(examples: Sequence[Example], arguments: argparse.Namespace) -> tuple[Metric, ...]:
    """The metrics that need no model and that the set has gold for; of answers only where answers are given."""
    from rag_kit.evaluation.scorers import default_metrics

    metrics = default_metrics(examples)
    if arguments.graph or ":" in arguments.pipeline:
        return metrics
    kept = tuple(each for each in metrics if "answer" not in each.output_needs)
    if kept and kept != metrics:
        left_out = ", ".join(each.name for each in metrics if each not in kept)
        hint(f"{left_out} left out: nothing is answered; give --graph plain to have answers scored")
    return kept or metrics


def _hint_at_unmatched_ids(results: Results) -> None:
    """Gold under other names than the passages have scores 0 everywhere, which looks like a bad retriever."""
    passages = [passage for row in results.rows for passage in row.output.passages or ()]
    gold = {name for row in results.rows for name in row.example.relevant}
    if passages and gold and gold.isdisjoint(name for passage in passages for name in passage.ids):
        names = " and ".join(repr(each)[:80] for each in passages[0].ids)
        hint(
            f"none of the relevant documents was found for any question: they are named as {min(gold)!r:.80}, a "
            f"passage as {names}; are these names of the same kind?"
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
