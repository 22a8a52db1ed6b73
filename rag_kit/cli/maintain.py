"""``rag-kit verify``, ``repair``, ``reembed`` and ``chunks``: check an index, mend it, correct its passages by hand."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import Any

from rag_kit.cli import exits
from rag_kit.cli.opening import index_embeddings, index_folder
from rag_kit.cli.options import add_options
from rag_kit.cli.output import STATUS, Progress, say, say_json
from rag_kit.errors import InvalidInputError

_COMMANDS = {
    "verify": "check that the files of an index agree with its stored text",
    "repair": "rebuild the damaged parts of an index from its stored text",
    "reembed": "make the vectors of an index anew with another embedding model; the old ones serve until then",
}


def add_parser(commands: Any) -> None:
    """Add the four commands."""
    for name, what in _COMMANDS.items():
        parser = commands.add_parser(name, help=what, description=what.capitalize() + ".")
        add_options(parser, "--index", "--json")
        if name == "reembed":
            add_options(parser, "--wait", "--quiet")
            parser.add_argument(
                "--embedding-model", required=True, metavar="NAME", help="minilm, or openai:NAME and others"
            )
    chunks = commands.add_parser("chunks", help="correct the passages of an index by hand")
    actions = chunks.add_subparsers(dest="action", required=True, metavar="ACTION")
    export = actions.add_parser("export", help="write all passages to a new JSONL file")
    taken = actions.add_parser(
        "import", help="take over the texts of such a file that were changed; null takes a passage out"
    )
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
    folder = index_folder(arguments)
    if arguments.command == "verify":
        with DocumentIndex.open(folder, check=False) as index:
            report = index.verify()
    else:
        with DocumentIndex.open(folder, mode="w", check=False) as index:
            report = index.repair()
    STATUS.clear()
    say_json(report.as_dict()) if arguments.json else say(str(report))
    return exits.OK if report.ok else exits.FAILED


def _reembed(arguments: argparse.Namespace) -> int:
    """Embed the passages with another model; after a kill the same command continues."""
    from rag_kit.indexing import DocumentIndex
    from rag_kit.models import embedding_model

    embeddings = embedding_model(arguments.embedding_model)
    STATUS.clear()
    if embeddings is None:
        raise InvalidInputError(
            "reembed needs an embedding model: --embedding-model minilm, or e.g. openai:text-embedding-3-small."
        )
    with DocumentIndex.open(index_folder(arguments), mode="w", wait=arguments.wait, check=False) as index:
        with Progress("passages", quiet=arguments.quiet or arguments.json) as progress:
            before = index.embedding
            embedded = index.reembed(embeddings, partial(progress.show, ""))
        after = index.embedding
    if arguments.json:
        say_json({"before": before, "embedding": after, "embedded": embedded})
    elif before == after and not embedded:
        say(f"all vectors are by {after} already")
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
    STATUS.clear()
    say_json(counts) if arguments.json else say(
        ", ".join(f"{count} {what}" for what, count in counts.items())
    )
    return exits.OK
