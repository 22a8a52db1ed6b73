"""``rag-kit verify``, ``repair`` and ``reembed``: check an index, rebuild damaged parts, make its vectors anew."""

from __future__ import annotations

import argparse
from functools import partial
from typing import Any

from rag_kit.cli import exits
from rag_kit.cli.opening import index_folder
from rag_kit.cli.options import add_options
from rag_kit.cli.output import STATUS, Progress, say, say_json
from rag_kit.errors import InvalidInputError

_COMMANDS = {
    "verify": "check that the files of an index agree with its stored text",
    "repair": "rebuild the damaged parts of an index from its stored text",
    "reembed": "make the vectors of an index anew with another embedding model; the old ones serve until then",
}


def add_parser(commands: Any) -> None:
    """Add ``verify``, ``repair`` and ``reembed``."""
    for name, what in _COMMANDS.items():
        parser: argparse.ArgumentParser = commands.add_parser(
            name, help=what, description=what.capitalize() + "."
        )
        add_options(parser, "--index", "--json")
        if name == "reembed":
            add_options(parser, "--wait", "--quiet")
            parser.add_argument(
                "--embedding-model", required=True, metavar="NAME", help="minilm, or openai:NAME and others"
            )


def run(arguments: argparse.Namespace) -> int:
    """Run the command, and print its report."""
    if arguments.command == "reembed":
        return _reembed(arguments)
    from rag_kit.indexing import DocumentIndex

    folder = index_folder(arguments)
    if arguments.command == "verify":
        with DocumentIndex.open(folder, check=False) as index:
            report = index.verify()
    else:
        with DocumentIndex.open(folder, mode="w", check=False) as index:
            report = index.repair()
    say_json(report.as_dict()) if arguments.json else say(str(report))
    return exits.OK if report.ok else exits.FAILED


def _reembed(arguments: argparse.Namespace) -> int:
    """Embed the passages with another model; after a kill the same command continues."""
    STATUS.show("loading ...")
    from rag_kit.indexing import DocumentIndex
    from rag_kit.models import embedding_model

    embeddings = embedding_model(arguments.embedding_model)
    STATUS.clear()
    if embeddings is None:
        raise InvalidInputError(
            "reembed needs an embedding model: --embedding-model minilm, or e.g. openai:text-embedding-3-small."
        )
    folder = index_folder(arguments)
    with DocumentIndex.open(folder, mode="w", wait=arguments.wait, check=False) as index:
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
