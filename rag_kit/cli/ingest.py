"""``rag-kit ingest``: build an index of files and folders, or bring it up to date."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from rag_kit.cli import exits
from rag_kit.cli.opening import add_index_argument, add_wait_argument, index_folder
from rag_kit.cli.output import STATUS, Progress, hint, problem, say, say_json


def add_parser(commands: Any) -> None:
    """Add ``ingest``."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "ingest",
        help="build an index of files and folders, or bring it up to date",
        description="Read files (pdf, docx, pptx, xlsx, html, md, txt, csv, json, jsonl, ipynb, epub, eml, mbox) "
        "into an index. Unchanged files are skipped, changed ones replaced.",
    )
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="files and folders")
    add_index_argument(parser)
    parser.add_argument("--prune", action="store_true", help="remove what vanished from the given folders")
    parser.add_argument("--strict", action="store_true", help="stop at the first file that cannot be read")
    parser.add_argument(
        "--embedding-model", metavar="NAME", help="minilm, none, or e.g. openai:text-embedding-3-small"
    )
    parser.add_argument("--chunk-size", type=int, metavar="N", help="characters of a passage (default 1000)")
    parser.add_argument(
        "--chunk-overlap", type=int, metavar="N", help="characters repeated between passages (default 100)"
    )
    parser.add_argument(
        "--splitter",
        metavar="NAME",
        help="how files are cut: structure (default), sentence, paragraph, tokens, recursive, semantic, markdown, "
        "html, latex, code, json",
    )
    parser.add_argument(
        "--tokenizer", metavar="FILE", help="a tokenizer.json that counts, for --splitter tokens"
    )
    parser.add_argument(
        "--represent",
        metavar="NAMES",
        help="further texts by which passages are found, such as summary,questions (children, summary, questions, "
        "keywords, qa, tags, translation, triples, situation; none to drop them)",
    )
    parser.add_argument(
        "--ocr",
        metavar="LANGUAGES",
        help="recognise text in pictures and scanned PDFs: eng, chi_sim, eng+chi_sim, ... (none to switch it off)",
    )
    parser.add_argument(
        "--keep-duplicates",
        action=argparse.BooleanOptionalAction,
        help="take in all files with the same text, or nearly the same; or one of them (default: one in each folder)",
    )
    parser.add_argument("--model", metavar="NAME", help="chat model for these (default: RAG_KIT_CHAT_MODEL)")
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="write nothing; say what would be done, with how many model calls",
    )
    cluster = parser.add_mutually_exclusive_group()
    cluster.add_argument("--workers", type=int, metavar="N", help="processes that read and embed")
    cluster.add_argument("--scheduler", metavar="ADDRESS", help="Dask scheduler whose workers read and embed")
    add_wait_argument(parser)
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace) -> int:
    """Ingest and print what happened to which file."""
    STATUS.show("loading ...")
    from rag_kit.indexing import ingest
    from rag_kit.models import chat_model, embedding_model

    folder = index_folder(arguments)
    embeddings = embedding_model(arguments.embedding_model)
    settings: dict[str, Any] = {
        name: value
        for name in (
            "chunk_size",
            "chunk_overlap",
            "splitter",
            "tokenizer",
            "keep_duplicates",
            "workers",
            "scheduler",
        )
        if (value := getattr(arguments, name)) is not None
    }
    if arguments.represent is not None:
        settings["represent"] = "" if arguments.represent == "none" else arguments.represent
    if arguments.ocr is not None:
        settings["ocr"] = "" if arguments.ocr == "none" else arguments.ocr
    if arguments.model is not None:
        settings["llm"] = chat_model(arguments.model)
    STATUS.clear()
    with Progress("files", quiet=arguments.quiet or arguments.json) as progress:
        report = ingest(
            arguments.paths,
            folder,
            embeddings=embeddings,
            prune=arguments.prune,
            strict=arguments.strict,
            wait=arguments.wait,
            progress=progress.file,
            dry_run=arguments.dry_run,
            **settings,
        )
    if arguments.json:
        say_json(report.as_dict())
    else:
        for file, reason in report.failed:
            problem(f"not read: {file}: {reason}")
        for file, text, _ in report.lost:
            problem(f"a correction has no place any more: {file}: {' '.join(text.split())[:60]}")
        for file, original, likeness in report.duplicates:
            what = "a copy" if likeness == 1 else f"a near copy ({likeness:.0%})"
            hint(f"left out: {file} is {what} of {original}")
        for note in report.notes:
            hint(f"note: {note}")
        say(report.summary())
        none = (
            "no vectors, so found by keyword only (rag-kit models install minilm, or RAG_KIT_EMBEDDING_MODEL)"
        )
        say(none if report.embedding == "none" else f"vectors by {report.embedding}")
    return exits.PARTIAL if report.failed else exits.OK
