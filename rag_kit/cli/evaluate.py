"""Score a pipeline on a set of questions.

With --out every finished step is kept: killed or stopped, the same command goes on from there; unchanged, it asks
nobody anything. --metric, --column and --min may be given several times.
"""

from __future__ import annotations

import argparse
import hashlib
import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_kit.cli import exits
from rag_kit.cli.options import (
    CAPS,
    DEFAULT_K,
    GRAPHS,
    MODEL,
    PIPELINE,
    add_options,
    open_graph,
    open_retriever,
    pick,
)
from rag_kit.cli.output import hint, problem, say, say_json
from rag_kit.errors import InvalidInputError

if TYPE_CHECKING:
    from rag_kit.evaluation import Judge, Results
    from rag_kit.evaluation.metric import Metric
    from rag_kit.indexing import DocumentIndex

_PIPELINE = """with --index: bm25, dense, hybrid (default), or module:object that makes a retriever from the index;
without: module:object, a Runnable, graph, retriever or function from a question (its code is run)"""
_METRIC = "such as faithfulness or ndcg@10 (default: those that need no model and that the set has gold for)"
_COLUMN = "which column of the set is which field, such as answers=Solution (usual names are known)"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``evaluate``."""
    add = parser.add_argument
    text = "set of questions: .json, .jsonl, .csv, .tsv, .parquet, .xlsx, or a folder"
    add("dataset", metavar="DATASET", type=Path, help=text)
    add("--metric", action="append", dest="metrics", metavar="NAME", help=_METRIC)
    parser.set_defaults(columns=[], minima=[], metrics=[])
    add("--column", action="append", dest="columns", type=_pair, metavar="FIELD=NAME", help=_COLUMN)
    add("--out", type=Path, metavar="DIR", help="folder of the results; a run goes on from what is there")
    text = "score this metric too, and end with exit code 1 unless its mean reaches the value"
    add("--min", action="append", dest="minima", type=_minimum, metavar="METRIC=VALUE", help=text)
    add("--limit", type=int, metavar="N", help="only the first N questions")
    add("--timeout", type=float, metavar="SECONDS", help="time the pipeline has for one question")
    add("--dry-run", action="store_true", help="only estimate calls, tokens and money, from 5 questions")
    text = "most of the gold that the index may lack, as a share (default 0.1); with more nothing is asked"
    add("--max-missing-gold", type=float, metavar="SHARE", help=text)
    add("--pipeline", metavar="NAME", default="hybrid", help=_PIPELINE)
    add("--graph", choices=sorted(GRAPHS), help="a graph that answers (default: none, the index is searched)")
    add("--name", metavar="NAME", help="what the pipeline is called in tables")
    add_options(parser, *(flag for flag in PIPELINE if flag != "--pipeline"), *MODEL)
    add("--judge", metavar="NAME", help="language model that judges (default: RAG_KIT_CHAT_MODEL)")
    add("--judge-embeddings", metavar="NAME", help="embedding model of the judge")
    add("--judge-cache", type=Path, metavar="FILE", help="keep the judge's replies between runs")
    add_options(parser, "--max-concurrency", "--json")


def _pair(text: str) -> tuple[str, str]:
    """Split ``NAME=VALUE`` at the first ``=``; refuse a text without both parts."""
    name, _, value = (part.strip() for part in text.partition("="))
    if not name or not value:
        raise argparse.ArgumentTypeError(f"{text!r:.80} has no form such as answers=Solution")
    return name, value


def _minimum(text: str) -> tuple[str, float]:
    """Read ``METRIC=VALUE``, a mean to reach; argparse refuses a wrong one before a run that may take hours."""
    name, value = _pair(text)
    with suppress(ValueError):
        if math.isfinite(number := float(value)):
            return name, number
    raise argparse.ArgumentTypeError(f"{value!r:.80} is no number; give a form such as mrr=0.8")


def run(arguments: argparse.Namespace) -> int:
    """Evaluate the pipeline, print its scores, and return the exit code."""
    from rag_kit.evaluation import EvaluationSet, evaluate
    from rag_kit.evaluation.runs.estimate import Estimate
    from rag_kit.evaluation.scorers import get_metrics

    minima = dict(arguments.minima)
    names = list(dict.fromkeys([*arguments.metrics, *minima]))
    metrics = get_metrics(names) if names else ()
    questions = EvaluationSet.load(arguments.dataset, columns=dict(arguments.columns) or None)
    earlier_version = _version_in(arguments.out, {example.id for example in questions})
    if arguments.limit is not None:
        questions = questions[: max(arguments.limit, 0)]
    with _open_pipeline(arguments) as (pipeline, name, version):
        settings = pick(arguments, "out", "max_concurrency", "timeout", "max_missing_gold", *CAPS)
        settings |= {"name": arguments.name or name, "version": version}
        settings |= {"judge": _make_judge(arguments, metrics), "progress": sys.stderr.isatty()}
        version = version or name
        if not arguments.dry_run and earlier_version and earlier_version != version:
            replaced = f"{arguments.out} holds results of: {earlier_version}. They are replaced by those of: {version}."
            hint(f"{replaced} To keep both, name another folder.")
        results = evaluate(pipeline, questions, metrics or None, dry_run=arguments.dry_run, **settings)
    if isinstance(results, Estimate):
        say_json({"name": results.name, "expected": results.parts}) if arguments.json else say(str(results))
        return exits.OK
    say_json(_summary(results)) if arguments.json else say(str(results))
    only_searches = arguments.index and arguments.graph is None and not names
    any_worked = any(row.output.error is None for row in results)
    if only_searches and any_worked and not any(map(results.values, results.metrics)):
        hint("No metric has a value, for the index was searched and nobody answered: add --graph plain.")
    return _exit_code(results, minima)


def _summary(results: Results) -> dict[str, Any]:
    manifest = {key: results.manifest.get(key) for key in ("status", "stopped_by", "usage", "done")}
    metrics = {metric: asdict(summary) for metric, summary in results.summary().items()}
    counts = {"examples": results.examples, "rows": len(results)}
    return {"name": results.name, **counts, "metrics": metrics, "notes": results.notes, **manifest}


def _version_in(out: Path | None, ids: set[str]) -> str | None:
    """Return the version of the pipeline that a folder has results of; refuse results of other questions."""
    from rag_kit.evaluation import Results

    if out is None:
        return None
    try:
        results = Results.load(out)
    except InvalidInputError:  # no results, or damaged ones, of which the run itself says so
        return None
    saved = {row.example.id for row in results}
    if saved and not saved & ids:
        raise InvalidInputError(
            f"{str(out)!r} holds results of other questions ({min(saved)!r:.80}, ...); name another folder"
        )
    pipeline = results.manifest.get("pipeline")  # anything, in a file that somebody edited
    return pipeline.get("version") if isinstance(pipeline, dict) else None


@contextmanager
def _open_pipeline(arguments: argparse.Namespace) -> Iterator[tuple[Any, str, str | None]]:
    """Yield the pipeline, its name, and a version that says what it is made of; close the index afterwards."""
    name = arguments.pipeline
    names_index = bool(pick(arguments, "index", "graph", "k", "filter", "model"))
    asks_model = arguments.base_url is not None and not arguments.judge  # else the URL is the judge's
    if ":" in name and not names_index and not asks_model:
        yield name, name, None
    elif arguments.graph is None:
        with open_retriever(arguments) as (index, retriever):
            yield retriever, name, f"{name}, {_describe_settings(arguments, index)}"
    else:
        with open_graph(arguments, output="full") as (index, _, graph, model):
            hint(model)
            name = f"{arguments.graph} {name}"
            yield graph, name, f"{name}, model={model}, {_describe_settings(arguments, index)}"


def _describe_settings(arguments: argparse.Namespace, index: DocumentIndex) -> str:
    """Write what decides the results: options, and hashes of one's own code and prompts, and of the index."""
    from rag_kit.evaluation.runs.evaluating import load_object
    from rag_kit.evaluation.runs.fingerprint import pipeline_hash
    from rag_kit.prompts.library import PromptLibrary

    # k and filter also if None: a version is compared with those of earlier runs, which have them
    settings = {"k": arguments.k or DEFAULT_K, "filter": arguments.filter}
    options = ("rerank", "allow_degraded", "embedding_model")
    settings |= {name: value for name in options if (value := getattr(arguments, name))}
    is_own_code = ":" in arguments.pipeline
    if is_own_code:
        settings["code"] = pipeline_hash(load_object(arguments.pipeline))[:12]
    if arguments.graph or is_own_code:
        library = PromptLibrary()
        if files := [path for path in library.files() if path.parent == library.folder]:
            texts = b"\0".join(path.name.encode() + path.read_bytes() for path in files)
            settings["prompts"] = hashlib.sha256(texts).hexdigest()[:12]
    settings["index"] = _hash_index(index)[:12]
    return ", ".join(f"{name}={value}" for name, value in settings.items())


def _hash_index(index: DocumentIndex) -> str:
    """Hash ids and texts of all passages, of which 1000 at a time are in memory."""
    digest = hashlib.sha256()
    ids = sorted(index.ids())
    for start in range(0, len(ids), 1000):
        for document in index.get(ids[start : start + 1000]):
            digest.update(f"{document.id}\0{document.page_content}\0".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def _make_judge(arguments: argparse.Namespace, metrics: Sequence[Metric]) -> Judge | None:
    needs_llm = any(metric.needs_judge for metric in metrics)
    if not needs_llm and not any(metric.needs_embeddings for metric in metrics):
        return None
    from rag_kit.evaluation import Judge
    from rag_kit.models import chat_model

    llm = chat_model(arguments.judge, **pick(arguments, "base_url")) if needs_llm else "none"
    judge = Judge(llm, arguments.judge_embeddings, cache=arguments.judge_cache)
    hint(f"judge: {judge!r}")
    return judge


def _exit_code(results: Results, minima: dict[str, float]) -> int:
    """Return the exit code; print why a run stopped, has no score for errors, or missed a least mean."""
    from rag_kit.evaluation.runs.results import QualityError, assert_quality

    if stopped := results.manifest.get("stopped_by"):
        problem(str(stopped))
        return exits.BUDGET
    errors = [row.output.error for row in results.rows if row.output.error is not None]
    errors += [cell.reason for row in results.rows for cell in row.cells.values() if cell.status == "error"]
    if errors and not any(map(results.values, results.metrics)):
        problem(f"no question has a score; the first error: {errors[0]}")
        return exits.FAILED
    try:
        if minima:
            assert_quality(results, minima)
    except QualityError as error:
        problem(str(error))
        return exits.FAILED
    return exits.OK
