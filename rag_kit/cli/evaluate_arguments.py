"""The arguments of ``rag-kit evaluate``."""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_kit.cli.ask import GRAPHS
from rag_kit.cli.opening import DEFAULT_K, add_index_argument
from rag_kit.errors import InvalidInputError

if TYPE_CHECKING:
    from rag_kit.evaluation import EvaluationSet

_DESCRIPTION = """Ask a pipeline every question of a set and score what it gives. With --out every finished step is
kept: killed or stopped, the same command goes on from there; unchanged, it asks nobody anything."""


def add_parser(commands: Any) -> None:
    """Add ``evaluate`` and its arguments."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "evaluate", help="score a pipeline on a set of questions", description=_DESCRIPTION
    )
    parser.add_argument(
        "dataset",
        metavar="DATASET",
        type=Path,
        help="set of questions: .jsonl, .json, .csv, .tsv, .parquet, or a folder (BEIR's layout)",
    )
    parser.add_argument(
        "--metric", action="append", metavar="NAME",
        help="such as faithfulness, context_recall, ndcg@10; may be given several times (default: those that need no "
        "model and that the set has gold for)",
    )  # fmt: skip
    parser.add_argument(
        "--column", action="append", default=[], metavar="FIELD=NAME",
        help="which column of the set is which field, such as answers=Solution or relevant=File; may be given several "
        "times (usual names are known)",
    )  # fmt: skip
    parser.add_argument(
        "--encoding", metavar="NAME", help="how the set is encoded (default: utf-8; Excel in China: gb18030)"
    )
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
    group.add_argument(
        "--graph",
        choices=sorted(GRAPHS),
        help="a graph that answers from the index (default: none, it is searched alone)",
    )
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
        help="language model that judges, e.g. openai:gpt-5.5 (default: RAG_KIT_CHAT_MODEL)",
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


def dataset(arguments: argparse.Namespace) -> EvaluationSet:
    """The set, with the columns that were named.

    Raises:
        InvalidInputError: If it cannot be read, or a column is not FIELD=NAME.
    """
    from rag_kit.evaluation import EvaluationSet

    columns: dict[str, str] = {}
    for text in arguments.column:
        field, equals, name = text.partition("=")
        if not equals or not field or not name:
            raise InvalidInputError(f"--column is {text!r:.80}; give FIELD=NAME, such as answers=Solution")
        columns[field] = name
    if columns and arguments.dataset.is_dir():
        raise InvalidInputError("--column is for a file; the columns of a folder are known")
    settings: dict[str, Any] = {"columns": columns} if columns else {}
    if arguments.encoding is not None:
        settings["encoding"] = arguments.encoding
    return EvaluationSet.load(arguments.dataset, **settings)


def minima(arguments: argparse.Namespace) -> dict[str, float]:
    """Metric -> what ``--min`` asks of it.

    Raises:
        InvalidInputError: If one is not METRIC=VALUE.
    """
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


def json_value(text: str | None, option: str) -> Any:
    """What was given as JSON.

    Raises:
        InvalidInputError: If it is none.
    """
    if text is None:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(f"{option} is not JSON ({error})") from None
