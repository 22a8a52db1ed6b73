"""``rag-kit``: the command line. Each command is a file beside this one, imported when it is asked for."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module

from rag_kit import __version__
from rag_kit.cli import exits
from rag_kit.cli.output import STATUS, one_line, problem, problem_at
from rag_kit.errors import BranchError, InvalidInputError

#: Command -> the module beside this one that has it, and what it does in a line. A module has
#: ``add_arguments(parser)`` and ``run(arguments)``, which gives an exit code where it is not 0.
COMMANDS = {
    "ingest": ("ingest", "build an index of files and folders, or bring it up to date"),
    "retrieve": ("retrieve", "show what is found, and why"),
    "ask": ("ask", "answer a question, with citations"),
    "mcp": ("mcp", "serve an index to assistants (MCP)"),
    "verify": ("maintain", "check that the files of an index agree with its stored text"),
    "repair": ("maintain", "rebuild the damaged parts of an index from its stored text"),
    "reembed": ("maintain", "make the vectors of an index anew with another embedding model"),
    "chunks": ("maintain", "correct the passages of an index by hand"),
    "generate": ("generate", "write a set of questions from documents or an index"),
    "benchmark": ("benchmark", "measure pipelines on a retrieval data set"),
    "evaluate": ("evaluate", "score a pipeline on a set of questions"),
    "compare": ("compare", "compare evaluated pipelines on the same questions"),
    "prompts": ("prompts", "list, show and check prompt files"),
    "models": ("models", "list the embedded models, or fetch their weights"),
    "doctor": ("doctor", "what is installed, configured and reachable"),
}

#: Examples of each command, which its ``--help`` ends with.
EXAMPLES: dict[str, tuple[str, ...]] = {
    "ingest": (
        "rag-kit ingest handbook notes.pdf --index my-index",
        "rag-kit ingest handbook --index postgresql://user@host/db?index=handbook --prune",
    ),
    "retrieve": ("rag-kit retrieve 'How long is the warranty?' --index my-index --explain",),
    "ask": (
        "rag-kit ask 'How long is the warranty?' --index my-index",
        "rag-kit ask --index my-index",
        "rag-kit ask --index my-index --graph crag --json < questions.txt > answers.jsonl",
    ),
    "mcp": ("rag-kit mcp --index my-index",),
    "verify": ("rag-kit verify --index my-index",),
    "repair": ("rag-kit repair --index my-index",),
    "reembed": ("rag-kit reembed --index my-index --embedding-model openai:text-embedding-3-small",),
    "chunks": (
        "rag-kit chunks export passages.jsonl --index my-index",
        "rag-kit chunks import passages.jsonl --index my-index",
    ),
    "generate": ("rag-kit generate handbook --out questions.jsonl -n 50 --model openai:gpt-4o-mini",),
    "benchmark": ("rag-kit benchmark my-set --pipeline bm25 --pipeline hybrid --out result.json",),
    "evaluate": (
        "rag-kit evaluate questions.jsonl --index my-index --graph plain --out runs/plain",
        "rag-kit evaluate questions.jsonl --index my-index --metric faithfulness --judge openai:gpt-4o-mini",
    ),
    "compare": ("rag-kit compare runs/plain runs/crag --report report.html",),
    "prompts": ("rag-kit prompts show answer --language en > my-prompts/answer.en.prompt",),
    "models": ("rag-kit models install minilm",),
    "doctor": ("rag-kit doctor", "rag-kit doctor --model openai:qwen-plus --json"),
}

#: Option that prints a script for a shell, which then completes commands and options.
COMPLETION = "--print-completion"

_EPILOG = """exit codes: 0 done; 1 failed; 2 wrong arguments or settings; 3 no index; 4 index of another embedding
model; 5 endpoint does not answer; 6 endpoint refused the key; 7 some files could not be read; 8 index is being
written to; 9 a cap was reached; 10 index damaged; 130 interrupted. RAG_KIT_DEBUG=1 shows tracebacks. rag-kit
--print-completion bash|zsh|fish prints a script for a shell."""


def parser(command: str = "") -> argparse.ArgumentParser:
    """The parser of one command, or of the whole command line; building it imports no LangChain module."""
    top = argparse.ArgumentParser(
        prog="rag-kit",
        description="Ask your own documents, with citations.",
        epilog=_EPILOG,
        allow_abbrev=False,
    )
    top.add_argument("--version", action="version", version=f"rag-kit {__version__}")
    top.add_argument("--no-color", action="store_true", help="plain text on a terminal (or NO_COLOR=1)")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name in [command] if command in COMMANDS else COMMANDS:
        where, what = COMMANDS[name]
        module = import_module(f"rag_kit.cli.{where}")
        added = commands.add_parser(
            name,
            help=what,
            description=getattr(module, "DESCRIPTION", f"{what.capitalize()}."),
            epilog="\n  ".join(["examples:", *EXAMPLES[name]]),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.add_arguments(added)
    if command == COMPLETION:
        import shtab

        shtab.add_argument_to(top, COMPLETION)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        argv: The arguments; default: those of the process.

    Returns:
        An exit code of `rag_kit.cli.exits`. A user's mistake gives one line on stderr, never a traceback.
    """
    given = list(sys.argv[1:] if argv is None else argv)
    if "--no-color" in given:  # may stand anywhere
        os.environ["NO_COLOR"] = "1"
        given.remove("--no-color")
    try:
        if not given:
            parser().print_help()
            return exits.OK
        arguments = parser(given[0]).parse_args(given)
        code = import_module(f"rag_kit.cli.{COMMANDS[arguments.command][0]}").run(arguments)
        STATUS.clear()
        sys.stdout.flush()
        return exits.OK if code is None else code
    except KeyboardInterrupt:
        print(file=sys.stderr)
        problem("interrupted")
        return exits.INTERRUPTED
    except Exception as error:  # noqa: BLE001 - reported below
        if isinstance(error, BrokenPipeError) and _nobody_reads():
            return exits.OK
        cause = _root_cause(error)
        if os.environ.get("RAG_KIT_DEBUG"):
            problem_at(error)
            return exits.exit_code(cause)
        # a prompt file may have several mistakes, each with its own line number
        for line in str(cause).splitlines() if isinstance(cause, InvalidInputError) else [one_line(cause)]:
            problem(line)
        return exits.exit_code(cause)


def _nobody_reads() -> bool:
    """Whether the reader of stdout (head, less) went away; then nothing can be written any more."""
    import select

    if hasattr(select, "poll"):
        poll = select.poll()
        poll.register(sys.stdout, 0)
        if not any(event & select.POLLERR for _, event in poll.poll(0)):
            return False
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return True


def _root_cause(error: Exception) -> Exception:
    """The error inside those of fan-out branches; one of a provider's client as the kit's own class."""
    while isinstance(error, BranchError) and isinstance(error.__cause__, Exception):
        error = error.__cause__
    if type(error).__module__.partition(".")[0] in ("openai", "httpx", "httpx2", "httpcore"):
        from rag_kit.models.failures import map_model_error

        return map_model_error(error)
    return error


if __name__ == "__main__":
    raise SystemExit(main())
