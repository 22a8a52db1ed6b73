"""``rag-kit evaluate``: ask a pipeline every question of a set, score what it gives."""

from __future__ import annotations

import argparse
import json
import math
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_kit.cli import exits
from rag_kit.cli.ask import GRAPHS
from rag_kit.cli.opening import (
    DEFAULT_K,
    add_index_argument,
    index_folder,
    is_own,
    make_retriever,
    open_index,
    parse_filter,
    searches_vectors,
)
from rag_kit.cli.output import hint, problem, say, say_json
from rag_kit.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from rag_kit.evaluation import EvaluationSet, Metric, Results
    from rag_kit.evaluation.judge import Judge
    from rag_kit.evaluation.runs.progress import Progress
    from rag_kit.indexing import DocumentIndex

_DESCRIPTION = """Ask a pipeline every question of a set and score what it gives. With --out every finished step is
kept: killed or stopped, the same command goes on from there; unchanged, it asks nobody anything."""


def add_parser(commands: Any) -> None:
    """Add ``evaluate``."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "evaluate", help="score a pipeline on a set of questions", description=_DESCRIPTION
    )
    parser.add_argument(
        "dataset",
        metavar="DATASET",
        type=Path,
        help="set of questions: .jsonl, .csv, or a folder (BEIR's layout)",
    )
    parser.add_argument(
        "--metric", action="append", required=True, metavar="NAME",
        help="such as faithfulness, context_recall, ndcg@10; may be given several times",
    )  # fmt: skip
    parser.add_argument(
        "--column", action="append", default=[], metavar="FIELD=NAME",
        help="which column of the set is which field, such as answers=Solution or relevant=File; may be given several "
        "times (usual names are known)",
    )  # fmt: skip
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="folder of the results; a run goes on from what is there"
    )
    parser.add_argument("--json", action="store_true", help="print the summary as JSON instead of a table")
    _add_pipeline(parser.add_argument_group("pipeline"))
    _add_judge(parser.add_argument_group("judge"))
    _add_limits(parser.add_argument_group("limits"))
    parser.add_argument(
        "--min", action="append", default=[], metavar="METRIC=VALUE", dest="minima",
        help="end with exit code 1 unless the metric reaches the value; may be given several times",
    )  # fmt: skip
    parser.add_argument(
        "--min-rule", choices=["mean", "low"], default="mean",
        help="what must reach it: the mean (default), or the lower end of the 95%% interval",
    )  # fmt: skip


def _add_pipeline(group: Any) -> None:
    add_index_argument(group)
    group.add_argument(
        "--pipeline", metavar="NAME", default="hybrid",
        help="with --index: bm25, dense, hybrid (default), or module:object that makes a retriever from the index; "
        "without: module:object, a Runnable, graph, retriever or function from a question (its code is run)",
    )  # fmt: skip
    group.add_argument("--graph", choices=sorted(GRAPHS), help="a graph that answers from the index")
    group.add_argument("-k", type=int, metavar="N", help=f"how many passages (default {DEFAULT_K})")
    group.add_argument("--filter", metavar="JSON", help="only passages whose metadata match")
    group.add_argument("--model", metavar="NAME", help="chat model of the graph (or RAG_KIT_CHAT_MODEL)")
    group.add_argument("--embedding-model", metavar="NAME", help="the model that the index was built with")
    group.add_argument(
        "--allow-degraded", action="store_true",
        help="search by keyword alone when the embedding endpoint fails (default: the question fails)",
    )  # fmt: skip
    group.add_argument("--name", metavar="NAME", help="what the pipeline is called in tables")
    group.add_argument(
        "--pipeline-version",
        metavar="TEXT",
        help="says whether the pipeline is still the same (default: a hash of it)",
    )


def _add_judge(group: Any) -> None:
    group.add_argument(
        "--judge",
        metavar="NAME",
        help="chat model that judges, e.g. openai:gpt-5.5 (default: RAG_KIT_CHAT_MODEL)",
    )
    group.add_argument("--judge-embeddings", metavar="NAME", help="embedding model of the judge")
    group.add_argument(
        "--judge-cache", type=Path, metavar="FILE", help="keep the judge's replies between runs"
    )
    group.add_argument(
        "--judge-concurrency",
        type=int,
        default=16,
        metavar="N",
        help="requests to the judge at a time (default 16)",
    )


def _add_limits(group: Any) -> None:
    group.add_argument("--limit", type=int, metavar="N", help="only the first N questions")
    group.add_argument(
        "--max-concurrency", type=int, default=8, metavar="N", help="questions asked at a time (default 8)"
    )
    group.add_argument(
        "--timeout", type=float, metavar="SECONDS", help="time the pipeline has for one question"
    )
    group.add_argument(
        "--max-calls", type=int, metavar="N", help="model calls allowed, pipeline and judge together"
    )
    group.add_argument("--max-tokens", type=int, metavar="N", help="tokens allowed, in and out")
    group.add_argument("--deadline", type=float, metavar="SECONDS", help="time allowed for the whole run")
    group.add_argument(
        "--prices",
        metavar="JSON",
        help='e.g. \'{"gpt-5.5": {"input": 1.25, "output": 10}}\' for a million tokens',
    )
    group.add_argument(
        "--keep-errors", action="store_true", help="do not try again what failed in an earlier run"
    )


def run(arguments: argparse.Namespace) -> int:
    """Evaluate and print.

    Raises:
        InvalidInputError: If the set, the pipeline, a metric or a setting is wrong.
        QualityError: If a metric does not reach what ``--min`` asks.
    """
    from rag_kit.evaluation import evaluate
    from rag_kit.evaluation.runs.settings import take_examples
    from rag_kit.evaluation.scorers import get_metrics

    minima = _minima(arguments)
    prices = _json(arguments.prices, "--prices")
    metrics = get_metrics(arguments.metric)
    unknown = sorted(set(minima) - {metric.name for metric in metrics})
    if unknown:
        raise InvalidInputError(f"--min names {unknown[0]!r}, which is no --metric of this run")
    examples, _ = take_examples(_dataset(arguments))
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
    _tell_what_is_missing(results)
    return _verdict(results, minima, arguments)


def _dataset(arguments: argparse.Namespace) -> EvaluationSet:
    """The set, with the columns that were named."""
    from rag_kit.evaluation import EvaluationSet

    columns: dict[str, str] = {}
    for text in arguments.column:
        field, equals, name = text.partition("=")
        if not equals or not field or not name:
            raise InvalidInputError(f"--column is {text!r:.80}; give FIELD=NAME, such as answers=Solution")
        columns[field] = name
    if columns and arguments.dataset.is_dir():
        raise InvalidInputError("--column is for a file; the columns of a folder are known")
    return EvaluationSet.load(arguments.dataset, **({"columns": columns} if columns else {}))


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


def _tell_what_is_missing(results: Results) -> None:
    """A metric without a single value is easily overlooked in a table."""
    for metric in results.metrics:
        cells = list(results.cells(metric).values())
        if cells and not any(cell.status == "ok" for cell in cells):
            reason = cells[0].reason or cells[0].status.replace("_", " ")
            hint(f"{metric} has no value for any question: {reason}")


def _verdict(results: Results, minima: dict[str, float], arguments: argparse.Namespace) -> int:
    from rag_kit.evaluation.runs.quality import QualityError, assert_quality

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


def _pipeline(arguments: argparse.Namespace, stack: ExitStack) -> tuple[Any, str, str | None]:
    """The pipeline, its name, and what tells it from others where its settings do not."""
    if arguments.index is None:
        for option in ("graph", "k", "filter", "model"):
            if getattr(arguments, option) is not None:
                raise InvalidInputError(f"{'-k' if option == 'k' else f'--{option}'} needs --index DIR")
        if not is_own(arguments.pipeline):
            raise InvalidInputError(
                f"--pipeline {arguments.pipeline} needs --index DIR; without one give module:object of your own"
            )
        return arguments.pipeline, arguments.pipeline, None
    where = parse_filter(arguments.filter)
    dense = searches_vectors(arguments.pipeline)
    index = stack.enter_context(open_index(index_folder(arguments), arguments.embedding_model, dense=dense))
    retriever = make_retriever(index, arguments, where)
    parts = [arguments.pipeline, f"k={arguments.k or DEFAULT_K}", f"index={_content(index)}"]
    if where:
        parts.append(f"filter={json.dumps(where, sort_keys=True, ensure_ascii=False)}")
    if arguments.graph is None:
        return retriever, arguments.pipeline, ", ".join(parts)
    from rag_kit import graphs
    from rag_kit.models import chat_model, describe_model

    llm = chat_model(arguments.model)
    hint(describe_model(llm))
    graph = getattr(graphs, GRAPHS[arguments.graph])(retriever, llm)
    parts += [f"graph={arguments.graph}", f"model={describe_model(llm)}"]
    return graph, f"{arguments.graph} {arguments.pipeline}", ", ".join(parts)


def _content(index: DocumentIndex) -> str:
    """A hash of what an index holds: with another content the pipeline is another one."""
    import hashlib

    known = hashlib.sha256()
    ids = sorted(index.ids())
    for start in range(0, len(ids), 1000):
        for document in index.get(ids[start : start + 1000]):
            known.update(f"{document.id}\0{document.page_content}\0".encode("utf-8", "surrogatepass"))
    return known.hexdigest()[:12]


def _judge(arguments: argparse.Namespace, metrics: tuple[Metric, ...]) -> Judge | None:
    if not any(metric.needs_judge or metric.needs_embeddings for metric in metrics):
        return None
    from rag_kit.evaluation.judge import Judge
    from rag_kit.models import describe_model

    judge = Judge(
        arguments.judge,
        arguments.judge_embeddings,
        cache=arguments.judge_cache,
        max_concurrency=arguments.judge_concurrency,
    )
    hint(f"judge: {describe_model(judge.llm)}")
    return judge


def _progress() -> bool | Callable[[Progress], None]:
    """A bar on a terminal; elsewhere one line at the end."""
    import sys

    if sys.stderr.isatty():
        return True

    def report(state: Progress) -> None:
        if state.done == state.total:
            hint(f"{state.total} questions done in {state.seconds:.1f} s; {state.cost()}")

    return report


def _minima(arguments: argparse.Namespace) -> dict[str, float]:
    found: dict[str, float] = {}
    for item in arguments.minima:
        metric, equals, value = item.partition("=")
        try:
            found[metric.strip()] = float(value)
        except ValueError:
            equals = ""
        if not equals or not metric.strip() or not math.isfinite(found[metric.strip()]):
            raise InvalidInputError(f"--min {item} is not of the form METRIC=VALUE, such as faithfulness=0.8")
    return found


def _json(text: str | None, option: str) -> Any:
    if text is None:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(f"{option} is not JSON ({error})") from None
