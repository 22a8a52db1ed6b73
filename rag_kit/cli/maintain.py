"""Check an index, mend it, correct its passages by hand."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import Any

from rag_kit.cli import exits
from rag_kit.cli.options import add_options, index_embeddings, index_name
from rag_kit.cli.output import STATUS, say, say_json
from rag_kit.errors import InvalidInputError

HELP = {
    "verify": "Check that the files of an index agree with its stored text.",
    "repair": "Rebuild the damaged parts of an index from its stored text.",
    "reembed": "Make the vectors of an index anew with another embedding model.",
    "chunks": "Correct the passages of an index by hand.",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command that the parser is for."""
    command, add = parser.prog.split()[-1], parser.add_argument  # "rag-kit chunks"
    add_options(parser, "--json", "--index")
    if command == "chunks":
        text = "export: write all passages to a file; import: take over its changed texts (null: no passage)"
        add("action", choices=["export", "import"], help=text)
        add("file", type=Path, metavar="FILE", help="JSON Lines")
        add_options(parser, "--embedding-model", "--wait")
    elif command == "reembed":
        add_options(parser, "--wait", "--quiet")
        add("--embedding-model", required=True, metavar="NAME", help="e5, minilm, or openai:NAME and others")


def run(arguments: argparse.Namespace) -> int:
    """Run the command, and print its report."""
    STATUS.show("loading ...")
    from rag_kit.indexing import DocumentIndex

    if action := {"reembed": _reembed, "chunks": _chunks}.get(arguments.command):
        record, text = action(arguments)
        say_json(record) if arguments.json else say(text)
        return exits.OK
    is_repair = arguments.command == "repair"
    with DocumentIndex.open(index_name(arguments), mode="w" if is_repair else "r", check=False) as index:
        report = index.repair() if is_repair else index.verify()
    say_json(report.as_dict()) if arguments.json else say(str(report))
    return exits.OK if report.ok else exits.DAMAGED


def _reembed(arguments: argparse.Namespace) -> tuple[dict[str, Any], str]:
    """Embed the passages with another model; after a kill the same command continues."""
    from rag_kit.indexing import DocumentIndex
    from rag_kit.models import embedding_model

    embeddings = embedding_model(arguments.embedding_model)
    if embeddings is None:
        raise InvalidInputError(
            "reembed needs an embedding model: --embedding-model e5, or e.g. openai:text-embedding-3-small."
        )
    progress = None if arguments.quiet else partial(STATUS.count, "passages")
    with DocumentIndex.open(index_name(arguments), mode="w", wait=arguments.wait, check=False) as index:
        before = index.embedding
        embedded = index.reembed(embeddings, progress)
        after = index.embedding
    text = f"{embedded} texts embedded; vectors by {after} (before: {before or 'none'})"
    return {"before": before, "embedding": after, "embedded": embedded}, text


def _chunks(arguments: argparse.Namespace) -> tuple[dict[str, Any], str]:
    from rag_kit.indexing import DocumentIndex
    from rag_kit.indexing.correcting import export_chunks, import_chunks

    name = index_name(arguments)
    if arguments.action == "export":
        with DocumentIndex.open(name) as index:
            counts = {"exported": export_chunks(index, arguments.file)}
    else:
        model = index_embeddings(name, arguments.embedding_model)
        with DocumentIndex.open(name, mode="w", embeddings=model, wait=arguments.wait) as index:
            counts = import_chunks(index, arguments.file)._asdict()
    return counts, ", ".join(f"{count} {what}" for what, count in counts.items())
