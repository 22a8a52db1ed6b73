"""List, show and check prompt files."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_kit.cli import exits
from rag_kit.cli.options import add_options
from rag_kit.cli.output import hint, say, say_json, say_table
from rag_kit.errors import InvalidInputError

if TYPE_CHECKING:
    from rag_kit.prompts.library import PromptLibrary


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the three actions of ``prompts``."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    actions.add_parser("list", help="every prompt: inputs, output, where it comes from")
    show = actions.add_parser("show", help="print a prompt file; redirect it to start your own version")
    show.add_argument("name", metavar="NAME", help="name of the prompt, such as answer")
    actions.add_parser("check", help="report all that is wrong, with file and line")
    text = "your own prompts, which win (default: RAG_KIT_PROMPTS)"
    for action in actions.choices.values():
        action.add_argument("--folder", type=Path, metavar="DIR", help=text)
        action.add_argument("--language", choices=("en", "zh"), help="this language alone (show: en)")
        add_options(action, "--json")


def run(arguments: argparse.Namespace) -> int:
    """Run one of the three actions; return 1 if ``check`` found problems."""
    from rag_kit.prompts.library import PromptLibrary

    action = {"list": _list, "show": _show, "check": _check}[arguments.action]
    return action(PromptLibrary(arguments.folder), arguments)


def _list(library: PromptLibrary, arguments: argparse.Namespace) -> int:
    """Print a row for each prompt and language; name files that cannot be loaded."""
    records: list[dict[str, Any]] = []
    for name, language in library.entries():
        if arguments.language in (None, language):
            try:
                records.append(asdict(library.read(name, language)))
            except InvalidInputError as error:
                records.append({"name": name, "language": language, "error": str(error)})
    say_json(records) if arguments.json else say_table(map(_table_row, records))
    if broken := sum("error" in record for record in records):
        hint(f"{broken} cannot be loaded; 'rag-kit prompts check' says why")
    return exits.OK


def _table_row(record: dict[str, Any]) -> list[str]:
    if "error" in record:
        return [record["name"], record["language"], f"broken: {record['error'].splitlines()[0]}", "", ""]
    schema = record["schema"] or "text"
    output = schema if isinstance(schema, str) else schema["title"]
    flow = f"{', '.join(record['inputs']) or 'nothing'} -> {output}"
    return [record["name"], record["language"], f"v{record['version']}", flow, record["file"]]


def _show(library: PromptLibrary, arguments: argparse.Namespace) -> int:
    prompt = library.read(arguments.name, arguments.language or "en")
    if arguments.json:
        say_json(asdict(prompt))
    else:
        hint(f"{prompt.file} ({prompt.hash})")
        say(Path(prompt.file).read_text(encoding="utf-8-sig").rstrip("\n"))
    return exits.OK


def _check(library: PromptLibrary, arguments: argparse.Namespace) -> int:
    """Print each problem as ``file:line: message``."""
    from rag_kit.prompts.library import check_library

    problems = check_library(library, arguments.language)
    count = len(library.names())
    if arguments.json:
        say_json({"ok": not problems, "prompts": count, "problems": [vars(problem) for problem in problems]})
    else:
        own = sum(path.parent == library.folder for path in library.files())
        languages = arguments.language or "en and zh"
        summary = f"{count} prompts are right in {languages}; files of your own among them: {own}"
        say("\n".join([*map(str, problems), f"{len(problems)} problem(s)" if problems else summary]))
    return exits.FAILED if problems else exits.OK
