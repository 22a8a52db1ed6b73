"""Build an index of files and folders, or bring it up to date.

Read are pdf, docx, pptx, xlsx, html, md, txt, csv, json, jsonl, ipynb, epub, eml, mbox. Unchanged files are skipped,
changed ones replaced.
"""

from __future__ import annotations

import argparse
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from rag_kit.cli import exits
from rag_kit.cli.options import add_options, index_embeddings, index_name, pick
from rag_kit.cli.output import STATUS, hint, problem, say, say_json
from rag_kit.errors import IndexMissingError

if TYPE_CHECKING:
    from rag_kit.indexing.ingestion.report import IngestReport

_SPLITTERS = "structure (default), sentence, paragraph, tokens, recursive, semantic"
_REPRESENTATIONS = """texts by which passages are found too, written by --model: children, summary, questions, keywords,
qa, tags, translation, triples, situation, with commas between them; none drops them"""
#: Options that `IngestOptions` has under the same name, where they were given.
_SETTINGS = ("strict", "wait", "chunk_size", "chunk_overlap", "splitter", "represent", "ocr", "pictures", "vision",
             "keep_duplicates", "workers", "scheduler")  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``ingest``."""
    add = parser.add_argument
    add("paths", nargs="+", type=Path, metavar="PATH", help="files and folders")
    add_options(parser, "--index", "--wait", "--model", "--quiet", "--json")
    add("--prune", action="store_true", help="remove what vanished from the given folders")
    add("--strict", action="store_true", help="stop at the first file that cannot be read")
    text = "write nothing; say what would be done, by how many model calls"
    add("--dry-run", action="store_true", help=text)
    text = "e5, minilm, none, or openai:NAME and others (default: as recorded)"
    add("--embedding-model", metavar="NAME", help=text)
    add("--chunk-size", type=int, metavar="N", help="characters of a passage (default 1000)")
    add("--chunk-overlap", type=int, metavar="N", help="characters repeated (default 100; at most half)")
    add("--splitter", metavar="NAME", help=_SPLITTERS)
    add("--represent", metavar="NAMES", help=_REPRESENTATIONS)
    text = "beside words and vectors: trigram (typos), tokens (--rerank colbert-small is faster), or none"
    add("--legs", metavar="NAMES", help=text)
    add("--ocr", metavar="on|none", help="recognise text in pictures and scans: on (or languages), or none")
    text = "keep the pictures of documents, each with a passage of its own"
    add("--pictures", action=argparse.BooleanOptionalAction, help=text)
    add("--vision-model", dest="vision", metavar="NAME", help="chat model that describes them, or none")
    text = "all files with the same text, or one"
    add("--keep-duplicates", action=argparse.BooleanOptionalAction, help=text)
    cluster = parser.add_mutually_exclusive_group()
    cluster.add_argument("--workers", type=int, metavar="N", help="processes that read and embed")
    cluster.add_argument("--scheduler", metavar="ADDRESS", help="Dask scheduler whose workers read and embed")


def run(arguments: argparse.Namespace) -> int:
    """Ingest and print a report; return `exits.PARTIAL` if a file could not be read."""
    STATUS.show("loading ...")
    from rag_kit.indexing import IngestOptions, ingest
    from rag_kit.models import chat_model, embedding_model

    settings = pick(arguments, *_SETTINGS)
    # "none" on the command line is an empty text in `IngestOptions`
    settings |= {name: "" for name in ("represent", "ocr", "vision") if settings.get(name) == "none"}
    if arguments.ocr == "on":
        settings["ocr"] = True
    if arguments.legs is not None:
        settings["legs"] = [] if arguments.legs == "none" else arguments.legs.split(",")
    if arguments.model is not None:
        settings["llm"] = chat_model(arguments.model)
    index, embeddings = index_name(arguments), None
    with suppress(IndexMissingError):
        embeddings = index_embeddings(index, arguments.embedding_model)
    report = ingest(
        arguments.paths,
        index,
        embeddings=embeddings or embedding_model(arguments.embedding_model),
        options=IngestOptions(**settings),
        prune=arguments.prune,
        dry_run=arguments.dry_run,
        on_progress=None if arguments.quiet else STATUS.count,
    )
    say_json(report.as_dict()) if arguments.json else _print_report(report)
    return exits.PARTIAL if report.failed else exits.OK


def _print_report(report: IngestReport) -> None:
    for file, reason in report.failed:
        problem(f"not read: {file}: {reason}")
    for file, text, _ in report.lost:
        problem(f"a correction has no place any more: {file}: {' '.join(text.split())[:60]}")
    for file, original in report.duplicates:
        hint(f"left out: {file} is a copy of {original}")
    for note in [*report.remark_lines(), *report.notes]:
        hint(f"note: {note}")
    say(report.summary())
    if report.embedding == "none":
        say("no vectors, so found by keyword only (rag-kit models install e5, or RAG_KIT_EMBEDDING_MODEL)")
    else:
        say(f"vectors by {report.embedding}")
