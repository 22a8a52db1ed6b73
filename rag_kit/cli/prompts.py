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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the three actions of ``prompts``."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    actions.add_parser("list", help="every prompt: inputs, output, where it comes from")
    show = actions.add_parser("show", help="print a prompt file; redirect it to start your own version")
    show.add_argument("name", metavar="NAME", help="name of the prompt, such as answer")
    actions.add_parser("check", help="report all that is wrong, with file and line")
    what = "your own prompts, which win (default: RAG_KIT_PROMPTS)"
    for action in actions.choices.values():
        action.add_argument("--folder", type=Path, metavar="DIR", help=what)
        action.add_argument("--language", choices=("en", "zh"), help="this language alone (show: en)")
        add_options(action, "--json")


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
    """Print a row a prompt and language; files that cannot be loaded are named."""
    rows: list[dict[str, Any]] = []
    for name, language in library.entries():
        if arguments.language in (None, language):
            try:
                rows.append(_facts(library, library.read(name, language)))
            except InvalidInputError as error:
                rows.append({"name": name, "language": language, "error": str(error)})
    say_json(rows) if arguments.json else say_table(map(_cells, rows))
    if broken := sum("error" in row for row in rows):
        hint(f"{broken} cannot be loaded; 'rag-kit prompts check' says why")
    return exits.OK


def _cells(row: dict[str, Any]) -> list[str]:
    """A prompt as a row of the listing."""
    if "error" in row:
        return [row["name"], row["language"], f"broken: {row['error'].splitlines()[0]}", "", ""]
    schema = row["schema"] or "text"
    output = schema if isinstance(schema, str) else str(schema.get("title", "JSON"))
    flow = f"{', '.join(row['inputs']) or 'nothing'} -> {output}"
    return [row["name"], row["language"], f"v{row['version']}", row["origin"], flow]


def _show(library: PromptLibrary, arguments: argparse.Namespace) -> int:
    """Print the file itself on stdout, where it lies on stderr."""
    parsed = library.read(arguments.name, arguments.language or "en")
    if arguments.json:
        messages = [{"role": section.role, "text": section.text} for section in parsed.sections]
        say_json({**_facts(library, parsed), "messages": messages})
    else:
        hint(f"{parsed.file} ({parsed.hash})")
        print(clean_text(Path(parsed.file).read_text(encoding="utf-8-sig").rstrip("\n")))
    return exits.OK


def _check(library: PromptLibrary, arguments: argparse.Namespace) -> int:
    """Print each problem on a line as ``file:line: message``."""
    from rag_kit.prompts.checks import check_library

    problems = check_library(library, arguments.language)
    count = len(library.names())
    if arguments.json:
        listed = [{"file": p.file, "line": p.line, "message": p.message} for p in problems]
        say_json({"ok": not problems, "prompts": count, "problems": listed})
    else:
        right = f"{count} prompts are right in {arguments.language or 'en and zh'}"
        say("\n".join([*map(str, problems), f"{len(problems)} problem(s)" if problems else right]))
    return exits.FAILED if problems else exits.OK


def _facts(library: PromptLibrary, parsed: PromptFile) -> dict[str, Any]:
    """What a listing says about a prompt, as plain JSON."""
    own = library.folder is not None and Path(parsed.file).parent == library.folder
    names = ("name", "language", "version", "description", "inputs", "schema", "hash", "file")
    return {**{name: getattr(parsed, name) for name in names}, "origin": "own" if own else "packaged"}
