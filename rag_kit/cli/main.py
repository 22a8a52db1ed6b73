"""``rag-kit``: the command line. Each command is a file beside this one, imported when it is asked for."""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any, NoReturn

from rag_kit import __version__
from rag_kit.cli import exits
from rag_kit.cli.options import RERANKERS
from rag_kit.cli.output import STATUS, error_line, problem
from rag_kit.documents.display import clean_text
from rag_kit.errors import BranchError, InvalidInputError

#: Each is a module beside this one, or of ``maintain``. A module has ``add_arguments(parser)``, ``run(arguments)``,
#: which gives an exit code where it is not 0, and a docstring that is the text of its ``--help``.
COMMANDS = (
    "ingest", "retrieve", "ask", "mcp", "verify", "repair", "reembed", "chunks", "generate", "benchmark", "evaluate",
    "label", "compare", "prompts", "models", "doctor",
)  # fmt: skip
_MAINTAIN = ("verify", "repair", "reembed", "chunks")
#: The ``--help`` of a command ends with the examples that begin with its name.
EXAMPLES = Path(__file__).with_name("examples.txt").read_text(encoding="utf-8").splitlines()

#: Option that prints a script for a shell, which then completes commands and options.
COMPLETION = "--print-completion"

_EPILOG = """exit codes: 0 done; 1 failed; 2 wrong arguments or settings; 3 no index; 4 index of another embedding
model; 5 endpoint does not answer; 6 endpoint refused the key; 7 some files could not be read; 8 index is being
written to; 9 a cap was reached; 10 index damaged; 130 interrupted. RAG_KIT_DEBUG=1 shows tracebacks. rag-kit
--print-completion bash|zsh|fish prints a script for a shell."""


class _Parser(argparse.ArgumentParser):
    """A parser that complains in one line, as the library does."""

    def error(self, message: str) -> NoReturn:
        raise InvalidInputError(f"{message}; see {self.prog} --help")


def parser(command: str = "") -> argparse.ArgumentParser:
    """Make the parser of one command, or of all if ``command`` is none of them; no LangChain module is imported."""
    description = "Ask your own documents, with citations."
    top = _Parser("rag-kit", description=description, epilog=_EPILOG, allow_abbrev=False)
    top.add_argument("--version", action="version", version=f"rag-kit {__version__}")
    top.add_argument("--no-color", action="store_true", help="plain text on a terminal (or NO_COLOR=1)")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name in [command] if command in COMMANDS else COMMANDS:
        module = _module(name)
        text = getattr(module, "HELP", {}).get(name) or (module.__doc__ or "").strip()
        examples = [f"rag-kit {line}" for line in EXAMPLES if line.split()[0] == name]
        subparser = commands.add_parser(
            name,
            help=text.partition("\n")[0],
            description=text,
            epilog="\n  ".join(["examples:", *examples]),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.add_arguments(subparser)
    if command == COMPLETION:
        import shtab

        shtab.add_argument_to(top, COMPLETION)
    return top


def _module(command: str) -> Any:
    return import_module(f"rag_kit.cli.{'maintain' if command in _MAINTAIN else command}")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns an exit code of `rag_kit.cli.exits`. A user's mistake gives a line, not a traceback."""
    words = list(sys.argv[1:] if argv is None else argv)
    for number, (word, following) in enumerate(pairwise([*words, ""])):
        if word == "--rerank" and following not in RERANKERS:  # else argparse takes a question for its name
            words[number] = f"--rerank={RERANKERS[0]}"
    if "--no-color" in words:  # may stand anywhere
        os.environ["NO_COLOR"] = "1"
        words.remove("--no-color")
    try:
        if not words:
            parser().print_help()
            return exits.OK
        arguments = parser(words[0]).parse_args(words)
        code = _module(arguments.command).run(arguments)
        STATUS.clear()
        sys.stdout.flush()
        return exits.OK if code is None else code
    except KeyboardInterrupt:
        print(file=sys.stderr)
        problem("interrupted")
        return exits.INTERRUPTED
    except BrokenPipeError:  # whoever reads stdout (head, less) has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return exits.OK
    except Exception as error:  # noqa: BLE001 - reported below
        if os.environ.get("RAG_KIT_DEBUG"):
            from rag_kit.models.redact import redact

            print(clean_text(redact("".join(traceback.format_exception(error)))), file=sys.stderr)
        cause = _root_cause(error)
        is_mistake = isinstance(cause, InvalidInputError)  # a prompt file may have several, each on a line
        for line in str(cause).splitlines() if is_mistake else [error_line(cause)]:
            problem(line)
        return exits.exit_code(cause)


def _root_cause(error: Exception) -> Exception:
    """Return the error inside the BranchErrors of fan-outs; one of a model's client is turned into the kit's own."""
    while isinstance(error, BranchError) and isinstance(error.__cause__, Exception):
        error = error.__cause__
    if type(error).__module__.partition(".")[0] in ("openai", "httpx", "httpx2", "httpcore"):
        from rag_kit.models.failures import map_model_error

        return map_model_error(error)
    return error
