"""``rag-kit chunks export`` and ``import``: correct the passages of an index by hand."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from rag_kit.cli import exits
from rag_kit.cli.opening import index_embeddings, index_folder
from rag_kit.cli.options import add_options
from rag_kit.cli.output import STATUS, say, say_json


def add_parser(commands: Any) -> None:
    """Add ``chunks``."""
    parser = commands.add_parser("chunks", help="correct the passages of an index by hand")
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    export = actions.add_parser("export", help="write all passages to a new JSONL file")
    taken = actions.add_parser(
        "import", help="take over the texts of such a file that were changed; null takes a passage out"
    )
    for action in (export, taken):
        action.add_argument("file", type=Path, metavar="FILE", help="the JSONL file")
        add_options(action, "--index", "--json")
    add_options(taken, "--embedding-model", "--wait")


def run(arguments: argparse.Namespace) -> int:
    """Export or import, and print how many passages."""
    STATUS.show("loading ...")
    from rag_kit.indexing import DocumentIndex
    from rag_kit.indexing.correcting import export_chunks, import_chunks

    folder = index_folder(arguments)
    if arguments.action == "export":
        with DocumentIndex.open(folder) as index:
            counts = {"exported": export_chunks(index, arguments.file)}
        text = f"{counts['exported']} passages written to {arguments.file}"
    else:
        model = index_embeddings(folder, arguments.embedding_model)
        with DocumentIndex.open(folder, mode="w", embeddings=model, wait=arguments.wait) as index:
            counts = import_chunks(index, arguments.file)._asdict()
        text = ", ".join(f"{count} {what}" for what, count in counts.items())
    STATUS.clear()
    say_json(counts) if arguments.json else say(text)
    return exits.OK
