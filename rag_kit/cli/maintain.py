"""``rag-kit verify``, ``repair``, ``reembed`` and ``chunks``: check an index, mend it, correct its passages by hand."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path

from rag_kit.cli import exits
from rag_kit.cli.opening import index_embeddings, index_folder
from rag_kit.cli.options import add_options
from rag_kit.cli.output import STATUS, say, say_json
from rag_kit.errors import InvalidInputError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of one of the four commands."""
    command = parser.prog.split()[-1]
    if command != "chunks":
        add_options(parser, "--index", "--json")
    if command == "reembed":
        add_options(parser, "--wait", "--quiet")
        parser.add_argument(
            "--embedding-model", required=True, metavar="NAME", help="minilm, or openai:NAME and others"
        )
    if command == "chunks":
        actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
        export = actions.add_parser("export", help="write all passages to a new JSONL file")
        what = "take over the texts of such a file that were changed; null takes a passage out"
        taken = actions.add_parser("import", help=what)
        for action in (export, taken):
            action.add_argument("file", type=Path, metavar="FILE", help="the JSONL file")
            add_options(action, "--index", "--json")
        add_options(taken, "--embedding-model", "--wait")


def run(arguments: argparse.Namespace) -> int:
    """Run the command, and print its report."""
    STATUS.show("loading ...")
    from rag_kit.indexing import DocumentIndex

    if arguments.command == "reembed":
        return _reembed(arguments)
    if arguments.command == "chunks":
        return _chunks(arguments)
    repairs = arguments.command == "repair"
    with DocumentIndex.open(index_folder(arguments), mode="w" if repairs else "r", check=False) as index:
        report = index.repair() if repairs else index.verify()
    say_json(report.as_dict()) if arguments.json else say(str(report))
    return exits.OK if report.ok else exits.FAILED


def _reembed(arguments: argparse.Namespace) -> int:
    """Embed the passages with another model; after a kill the same command continues."""
    from rag_kit.indexing import DocumentIndex
    from rag_kit.models import embedding_model

    embeddings = embedding_model(arguments.embedding_model)
    if embeddings is None:
        raise InvalidInputError(
            "reembed needs an embedding model: --embedding-model minilm, or e.g. openai:text-embedding-3-small."
        )
    progress = None if arguments.quiet else partial(STATUS.count, "passages")
    with DocumentIndex.open(index_folder(arguments), mode="w", wait=arguments.wait, check=False) as index:
        before = index.embedding
        embedded = index.reembed(embeddings, progress)
        after = index.embedding
    if arguments.json:
        say_json({"before": before, "embedding": after, "embedded": embedded})
    else:
        say(f"{embedded} texts embedded; vectors by {after} (before: {before or 'none'})")
    return exits.OK


def _chunks(arguments: argparse.Namespace) -> int:
    """Export or import, and print how many passages."""
    from rag_kit.indexing import DocumentIndex
    from rag_kit.indexing.correcting import export_chunks, import_chunks

    folder = index_folder(arguments)
    if arguments.action == "export":
        with DocumentIndex.open(folder) as index:
            counts = {"exported": export_chunks(index, arguments.file)}
    else:
        model = index_embeddings(folder, arguments.embedding_model)
        with DocumentIndex.open(folder, mode="w", embeddings=model, wait=arguments.wait) as index:
            counts = import_chunks(index, arguments.file)._asdict()
    said = ", ".join(f"{count} {what}" for what, count in counts.items())
    say_json(counts) if arguments.json else say(said)
    return exits.OK
