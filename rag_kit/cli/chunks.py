"""``rag-kit chunks export`` and ``import``: correct the passages of an index by hand."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from rag_kit.cli import exits
from rag_kit.cli.opening import add_index_argument, add_wait_argument, index_embeddings, index_folder
from rag_kit.cli.output import STATUS, say, say_json


def add_parser(commands: Any) -> None:
    """Add ``chunks``."""
    parser = commands.add_parser("chunks", help="correct the passages of an index by hand")
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    for name, what in {
        "export": "write all passages to a new JSONL file",
        "import": "take over the texts of such a file that were changed; null takes a passage out",
    }.items():
        action: argparse.ArgumentParser = actions.add_parser(
            name, help=what, description=what.capitalize() + "."
        )
        action.add_argument("file", type=Path, metavar="FILE", help="the JSONL file")
        add_index_argument(action)
        if name == "import":
            action.add_argument(
                "--embedding-model", metavar="NAME", help="the index's model, to embed what is new"
            )
            add_wait_argument(action)
        action.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace) -> int:
    """Export or import, and print how many passages."""
    STATUS.show("loading ...")
    from rag_kit.indexing import DocumentIndex
    from rag_kit.indexing.correcting import export_chunks, import_chunks

    folder = index_folder(arguments)
    if arguments.action == "export":
        with DocumentIndex.open(folder) as index:
            count = export_chunks(index, arguments.file)
        STATUS.clear()
        if arguments.json:
            say_json({"exported": count})
        else:
            say(f"{count} passages written to {arguments.file}")
        return exits.OK
    model = index_embeddings(folder, arguments.embedding_model)
    with DocumentIndex.open(folder, mode="w", embeddings=model, wait=arguments.wait) as index:
        done = import_chunks(index, arguments.file)
    STATUS.clear()
    if arguments.json:
        say_json(done._asdict())
    else:
        say(", ".join(f"{count} {what}" for what, count in done._asdict().items()))
    return exits.OK
