"""``rag-kit ingest``: build an index of files and folders, or bring it up to date."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_kit.cli import exits
from rag_kit.cli.opening import index_folder
from rag_kit.cli.options import add_options
from rag_kit.cli.output import STATUS, Progress, hint, problem, say, say_json

if TYPE_CHECKING:
    from rag_kit.indexing.ingestion.report import IngestReport

_DESCRIPTION = """Read files (pdf, docx, pptx, xlsx, html, md, txt, csv, json, jsonl, ipynb, epub, eml, mbox) into an
index. Unchanged files are skipped, changed ones replaced."""
#: Options that `ingest` takes under the same name, where they were given.
_SETTINGS = (
    "chunk_size", "chunk_overlap", "splitter", "represent", "ocr", "keep_duplicates", "workers",
    "scheduler",
)  # fmt: skip


def add_parser(commands: Any) -> None:
    """Add ``ingest``."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "ingest", help="build an index of files and folders, or bring it up to date", description=_DESCRIPTION
    )
    add = parser.add_argument
    add("paths", nargs="+", type=Path, metavar="PATH", help="files and folders")
    add_options(parser, "--index", "--wait", "--model", "--quiet", "--json")
    add("--prune", action="store_true", help="remove what vanished from the given folders")
    add("--strict", action="store_true", help="stop at the first file that cannot be read")
    add(
        "--dry-run",
        action="store_true",
        help="write nothing; say what would be done, with how many model calls",
    )
    add("--embedding-model", metavar="NAME", help="minilm, none, or e.g. openai:text-embedding-3-small")
    add("--chunk-size", type=int, metavar="N", help="characters of a passage (default 1000)")
    add("--chunk-overlap", type=int, metavar="N", help="characters repeated between passages (default 100)")
    add(
        "--splitter",
        metavar="NAME",
        help="structure (default), sentence, paragraph, tokens, recursive, semantic",
    )
    add(
        "--represent", metavar="NAMES",
        help="further texts by which passages are found, such as summary,questions (children, summary, questions, "
        "keywords, qa, tags, translation, triples, situation; none to drop them); --model writes them",
    )  # fmt: skip
    add(
        "--ocr", metavar="LANGUAGES",
        help="recognise text in pictures and scanned PDFs: eng, chi_sim, eng+chi_sim, ... (none to switch it off)",
    )  # fmt: skip
    add(
        "--keep-duplicates", action=argparse.BooleanOptionalAction,
        help="take in all files with the same text; or one of them (default: one in each folder)",
    )  # fmt: skip
    cluster = parser.add_mutually_exclusive_group()
    cluster.add_argument("--workers", type=int, metavar="N", help="processes that read and embed")
    cluster.add_argument("--scheduler", metavar="ADDRESS", help="Dask scheduler whose workers read and embed")


def run(arguments: argparse.Namespace) -> int:
    """Ingest and print what happened to which file."""
    STATUS.show("loading ...")
    from rag_kit.indexing import ingest
    from rag_kit.models import chat_model, embedding_model

    folder = index_folder(arguments)
    given = {name: getattr(arguments, name) for name in _SETTINGS}
    settings: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    for name in ("represent", "ocr"):
        if settings.get(name) == "none":
            settings[name] = ""
    if arguments.model is not None:
        settings["llm"] = chat_model(arguments.model)
    embeddings = embedding_model(arguments.embedding_model)
    STATUS.clear()
    with Progress("files", quiet=arguments.quiet or arguments.json) as progress:
        report = ingest(
            arguments.paths,
            folder,
            embeddings=embeddings,
            prune=arguments.prune,
            strict=arguments.strict,
            wait=arguments.wait,
            progress=progress.show,
            dry_run=arguments.dry_run,
            **settings,
        )
    say_json(report.as_dict()) if arguments.json else _show(report)
    return exits.PARTIAL if report.failed else exits.OK


def _show(report: IngestReport) -> None:
    for file, reason in report.failed:
        problem(f"not read: {file}: {reason}")
    for file, text, _ in report.lost:
        problem(f"a correction has no place any more: {file}: {' '.join(text.split())[:60]}")
    for file, original in report.duplicates:
        hint(f"left out: {file} is a copy of {original}")
    for note in report.notes:
        hint(f"note: {note}")
    say(report.summary())
    if report.embedding == "none":
        say(
            "no vectors, so found by keyword only (rag-kit models install minilm, or RAG_KIT_EMBEDDING_MODEL)"
        )
    else:
        say(f"vectors by {report.embedding}")
