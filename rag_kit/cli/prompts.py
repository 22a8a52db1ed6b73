"""``rag-kit prompts list|show|check``: see, copy and check prompt files. Imports no LangChain module."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_kit.cli import exits
from rag_kit.cli.options import add_options
from rag_kit.cli.output import hint, say, say_json, say_table
from rag_kit.documents.clean import clean_text
from rag_kit.errors import InvalidInputError

if TYPE_CHECKING:
    from rag_kit.prompts.format import PromptFile
    from rag_kit.prompts.library import PromptLibrary


def add_parser(commands: Any) -> None:
    """Add ``prompts`` with its three actions."""
    top = commands.add_parser(
        "prompts", help="list, show and check prompt files", description="List, show and check prompt files."
    )
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument(
        "--folder",
        type=Path,
        metavar="DIR",
        help="your own prompts, which win over the packaged ones (default: RAG_KIT_PROMPTS, if set)",
    )
    common.add_argument("--language", choices=("en", "zh"), help="this language alone (show: en)")
    add_options(common, "--json")
    actions = top.add_subparsers(dest="action", metavar="ACTION", required=True)
    actions.add_parser("list", parents=[common], help="every prompt: inputs, output, where it comes from")
    show = actions.add_parser(
        "show", parents=[common], help="print a prompt file; redirect it to start your own version"
    )
    show.add_argument("name", metavar="NAME", help="name of the prompt, such as answer")
    actions.add_parser("check", parents=[common], help="report all that is wrong, with file and line")


def run(arguments: argparse.Namespace) -> int:
    """Run one of the three actions.

    Returns:
        0 when all is well, 1 when ``check`` found problems.

    Raises:
        InvalidInputError: A prompt or folder is wrong or unknown.
    """
    from rag_kit.prompts.library import PromptLibrary

    action = {"list": _list, "show": _show, "check": _check}[arguments.action]
    return action(PromptLibrary(arguments.folder), arguments)


def _list(library: PromptLibrary, arguments: argparse.Namespace) -> int:
    """One row a prompt and language; files that cannot be loaded are named."""
    rows: list[dict[str, Any]] = []
    broken = 0
    for name, language in library.entries():
        if arguments.language not in (None, language):
            continue
        try:
            row = _facts(library, library.read(name, language))
        except InvalidInputError as error:
            broken += 1
            row = {"name": name, "language": language, "error": str(error)}
        rows.append(row)
    if arguments.json:
        say_json(rows)
    else:
        say_table(_cells(row) for row in rows)
    if broken:
        hint(f"{broken} cannot be loaded; 'rag-kit prompts check' says why")
    return exits.OK


def _cells(row: dict[str, Any]) -> list[str]:
    """A prompt as a row of the listing."""
    if "error" in row:
        return [row["name"], row["language"], f"broken: {row['error'].splitlines()[0]}", "", ""]
    flow = f"{', '.join(row['inputs']) or 'nothing'} -> {_output(row['schema'])}"
    return [row["name"], row["language"], f"v{row['version']}", row["origin"], flow]


def _show(library: PromptLibrary, arguments: argparse.Namespace) -> int:
    """The file itself on stdout, where it lies on stderr."""
    parsed = library.read(arguments.name, arguments.language or "en")
    if arguments.json:
        messages = [{"role": section.role, "text": section.text} for section in parsed.sections]
        say_json({**_facts(library, parsed), "messages": messages})
        return exits.OK
    hint(f"{parsed.file} ({parsed.hash})")
    print(clean_text(Path(parsed.file).read_text(encoding="utf-8-sig").rstrip("\n")))
    return exits.OK


def _check(library: PromptLibrary, arguments: argparse.Namespace) -> int:
    """Each problem on a line as ``file:line: message``."""
    from rag_kit.prompts.checks import check_library

    problems = check_library(library, arguments.language)
    count = len(library.names())
    if arguments.json:
        listed = [{"file": p.file, "line": p.line, "message": p.message} for p in problems]
        say_json({"ok": not problems, "prompts": count, "problems": listed})
    else:
        for found in problems:
            say(str(found))
        languages = arguments.language or "en and zh"
        say(f"{len(problems)} problem(s)" if problems else f"{count} prompts are right in {languages}")
    return exits.FAILED if problems else exits.OK


def _facts(library: PromptLibrary, parsed: PromptFile) -> dict[str, Any]:
    """What a listing says about a prompt, as plain JSON."""
    own = library.folder is not None and Path(parsed.file).parent == library.folder
    return {
        "name": parsed.name,
        "language": parsed.language,
        "version": parsed.version,
        "description": parsed.description,
        "inputs": parsed.inputs,
        "schema": parsed.schema,
        "hash": parsed.hash,
        "origin": "own" if own else "packaged",
        "file": parsed.file,
    }


def _output(schema: str | dict[str, Any] | None) -> str:
    """The output of a prompt in a word."""
    if schema is None:
        return "text"
    return schema if isinstance(schema, str) else str(schema.get("title", "JSON"))
