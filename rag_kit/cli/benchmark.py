"""Measure pipelines on a retrieval data set.

The set is a folder with corpus.jsonl[.gz], queries.jsonl, qrels.tsv (BEIR's layout), and qa.jsonl where there are
answers. A pipeline is bm25, dense, hybrid, rrf, convex, mmr, parent and others (an unknown name lists them all),
or module:object: a retriever, or a function from a list of documents to one (its code is run).
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rag_kit.cli.options import add_options, pick
from rag_kit.cli.output import STATUS, say, say_json
from rag_kit.documents.display import Table, tables_text

_SPEEDS = {"p50_ms": "{:.2f}", "p95_ms": "{:.2f}", "queries_per_second": "{:.0f}"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``benchmark``."""
    add = parser.add_argument
    add("dataset", metavar="DATASET", type=Path, help="folder of the data set")
    text = "one to measure; may be given several times"
    add("--pipeline", action="append", required=True, metavar="NAME", help=text)
    add("--out", type=Path, metavar="FILE", help="write the result as JSON")
    text = "write one JSON line for each pipeline and query"
    add("--rows", type=Path, metavar="FILE", dest="rows_out", help=text)
    add("--limit", type=int, metavar="N", help="ask only the first N scorable queries")
    add("--depth", type=int, default=100, metavar="N", help="passages of a ranking that count (default 100)")
    add("--chunk-size", type=int, metavar="N", help="split documents into chunks of N characters")
    text = "for dense and hybrid (default: the first installed of e5, minilm, bge-small-en)"
    add("--embedding-model", metavar="NAME", dest="embeddings", help=text)
    add("--cache", type=Path, metavar="DIR", help="keep the documents' vectors between runs")
    text = "most of the gold that the corpus may lack, as a share (default 0.1); with more nothing is asked"
    add("--max-missing-gold", type=float, metavar="SHARE", help=text)
    add_options(parser, "--json")


def run(arguments: argparse.Namespace) -> None:
    """Measure the pipelines on the data set, and print the result as a table or as JSON."""
    from rag_kit.evaluation import benchmark

    names = ("out", "rows_out", "limit", "depth", "chunk_size", "embeddings", "cache", "max_missing_gold")
    settings = pick(arguments, *names)
    result = benchmark(arguments.dataset, arguments.pipeline, progress=STATUS.count, **settings)
    say_json(result) if arguments.json else say(_table(result))


def _table(result: Mapping[str, Any]) -> str:
    """Write the result as a table: a row for each metric, a column for each pipeline; counts above, notes below."""
    pipelines = result["pipelines"]
    names = [name for name in pipelines[0] if _cell(pipelines[0], name)]
    rows = [[name, *(_cell(entry, name) or "-" for entry in pipelines)] for name in names]
    notes = ["In brackets: 95% bootstrap interval of the mean."]
    notes += [f"{entry['pipeline']}: {note}" for entry in pipelines for note in entry["notes"]]
    counts = ", ".join(f"{count} {unit.replace('_', ' ')}" for unit, count in result["counts"].items())
    header = ["", *(str(entry["pipeline"]) for entry in pipelines)]
    return tables_text(f"{result['dataset']}: {counts}", [Table(header, rows)], notes)


def _cell(entry: Mapping[str, Any], name: str) -> str | None:
    """Write a value of a pipeline's result: a mean with its interval, or a speed; ``None`` for anything else."""
    value = entry.get(name)
    if isinstance(value, Mapping) and value.keys() == {"value", "low", "high"}:
        return f"{value['value']:.3f} [{value['low']:.3f}, {value['high']:.3f}]"
    return _SPEEDS[name].format(value) if name in _SPEEDS and value is not None else None
