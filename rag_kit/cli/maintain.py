"""``rag-kit verify`` and ``rag-kit repair``: is the index whole, and if not, make it so."""

from __future__ import annotations

import argparse
from typing import Any

from rag_kit.cli import exits
from rag_kit.cli.opening import add_index_argument, index_folder
from rag_kit.cli.output import say, say_json


def add_parser(commands: Any) -> None:
    """Add ``verify`` and ``repair``."""
    for name, what in {
        "verify": "check that every passage of an index finds itself",
        "repair": "rebuild the damaged parts of an index from its stored text",
    }.items():
        parser: argparse.ArgumentParser = commands.add_parser(
            name, help=what, description=what.capitalize() + "."
        )
        add_index_argument(parser)
        parser.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace) -> int:
    """Verify or repair, and print the report."""
    from rag_kit.indexing import DocumentIndex

    repairing = arguments.command == "repair"
    with DocumentIndex.open(index_folder(arguments), mode="w" if repairing else "r", check=False) as index:
        report = index.repair() if repairing else index.verify()
    if arguments.json:
        say_json(report.as_dict())
    else:
        say(str(report))
    return exits.OK if report.ok else exits.FAILED
