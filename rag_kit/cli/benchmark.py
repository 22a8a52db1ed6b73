"""``rag-kit benchmark``: measure pipelines on a retrieval data set."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rag_kit.cli import exits
from rag_kit.cli.output import hint, say_json


def add_parser(commands: Any) -> None:
    """Add ``benchmark``."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "benchmark",
        help="measure pipelines on a retrieval data set",
        description="Measure how well and how fast pipelines find the relevant documents of a data set: "
        "corpus.jsonl[.gz], queries.jsonl, qrels.tsv (BEIR's layout), and qa.jsonl where there are answers.",
    )
    parser.add_argument("dataset", metavar="DATASET", type=Path, help="folder of the data set")
    parser.add_argument(
        "--pipeline",
        action="append",
        required=True,
        metavar="NAME",
        help="bm25, dense, hybrid, or module:object: a retriever, or a function from a list of documents to "
        "one, such as my_module:MyRetriever.from_documents (its code is run); may be given several times",
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the result as JSON")
    parser.add_argument(
        "--rows", type=Path, metavar="FILE", help="write one JSON line for each pipeline and query"
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--limit", type=int, metavar="N", help="ask only the first N scorable queries")
    parser.add_argument(
        "--depth", type=int, default=100, metavar="N", help="passages of a ranking that count (default 100)"
    )
    parser.add_argument(
        "--chunk-size",
        type=int,
        metavar="N",
        help="split documents into chunks of at most N characters; a document ranks where its best chunk does "
        "(default: whole documents)",
    )
    parser.add_argument(
        "--embedding-model",
        metavar="NAME",
        help="for dense and hybrid (default: RAG_KIT_EMBEDDING_MODEL, else minilm if installed)",
    )
    parser.add_argument("--cache", type=Path, metavar="DIR", help="keep the documents' vectors between runs")


def run(arguments: argparse.Namespace) -> int:
    """Measure and print.

    Raises:
        InvalidInputError: If the data set, a pipeline's name or a setting is wrong.
    """
    from rag_kit.evaluation import benchmark, format_table

    with _progress() as progress:
        result = benchmark(
            arguments.dataset,
            arguments.pipeline,
            out=arguments.out,
            rows_out=arguments.rows,
            limit=arguments.limit,
            depth=arguments.depth,
            chunk_size=arguments.chunk_size,
            embeddings=arguments.embedding_model,
            cache=arguments.cache,
            progress=progress,
        )
    if arguments.json:
        say_json(result)
    else:
        print(format_table(result))
    if arguments.out is not None:
        hint(f"written to {arguments.out}")
    return exits.OK


@contextmanager
def _progress() -> Iterator[Callable[[str, int, int], None]]:
    """A bar for each step on a terminal; one line for each finished step elsewhere. All on stderr."""
    from tqdm import tqdm

    tqdm.monitor_interval = 0  # its watching thread is not needed
    bar: tqdm[Any] | None = None
    step = ""

    def report(what: str, done: int, total: int) -> None:
        nonlocal bar, step
        if what != step:
            if bar is not None:
                bar.close()
            step = what
            bar = tqdm(total=total, desc=what, file=sys.stderr, disable=None, mininterval=0.2)
        if bar is not None:
            bar.update(done - bar.n)
            if done == total and bar.disable:
                hint(f"{what}: {total} done")

    try:
        yield report
    finally:
        if bar is not None:
            bar.close()
