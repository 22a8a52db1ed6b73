"""``rag-kit ask``: answer a question from an index, streamed, with citations that are checked."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import sys
from typing import TYPE_CHECKING, Any

from rag_kit.cli.answering import AnswerPrinter, as_json, stoppable
from rag_kit.cli.exits import Terminated
from rag_kit.cli.opening import open_graph, run_context
from rag_kit.cli.options import ANSWER, PIPELINE, add_options
from rag_kit.cli.output import STATUS, hint, one_line, problem, say, say_json
from rag_kit.cli.passages import say_passages
from rag_kit.errors import InvalidInputError, RagKitError

if TYPE_CHECKING:
    from collections.abc import Iterator

DESCRIPTION = """Answer a question from an index. Each [n] is checked against its source and quoted. Without a question
a session begins on a terminal: follow-ups are understood, /help lists its commands. From a pipe each line is a question
by itself; with --json each answer is a line then."""
_HELP = """Ask a question, or go on from the last one. Ctrl-C stops an answer.
/sources  the passages that the last answer was made from
/help     this
/quit     end; so does Ctrl-D"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``ask``."""
    parser.add_argument("question", nargs="?")
    add_options(parser, *PIPELINE, *ANSWER, "--explain", "--json")
    parser.set_defaults(deadline=300.0)


def run(arguments: argparse.Namespace) -> None:
    """Answer one question, those of a session, or each line of a pipe."""
    STATUS.show("loading ...")
    in_session = arguments.question is None and _may_begin_session(arguments)
    if arguments.question is not None:
        _check(arguments.question)
    settings: dict[str, Any] = {"prompts": arguments.prompts, "output": "full"}
    if in_session:
        from langgraph.checkpoint.memory import InMemorySaver

        settings["checkpointer"] = InMemorySaver()
    with open_graph(arguments, **settings) as opened:
        from rag_kit.concurrency.pool import PoolExecutor

        context = run_context(arguments)
        printer = AnswerPrinter(opened.graph, context, opened.described, explained=arguments.explain)
        # One loop for all questions: a client's open connections belong to the loop that opened them. And a loop at
        # all for Ctrl-C: a thread that waits for a silent endpoint cannot be interrupted, a task can.
        with asyncio.Runner() as runner:
            runner.get_loop().set_default_executor(PoolExecutor())
            if in_session:
                chunks = opened.documents.stats()["chunks"]
                hint(f"{opened.documents.folder.name}: {chunks} passages. {opened.described}")
                _session(printer, runner)
            else:
                _answer_all(arguments, printer, runner)


def _check(question: str) -> None:
    """Refuse a question that is empty or too long."""
    from rag_kit.text import check_question

    check_question(question, example="rag-kit ask 'How ...?' --index DIR")


def _answer_all(arguments: argparse.Namespace, printer: AnswerPrinter, runner: asyncio.Runner) -> None:
    """Answer the question that was given, or each line of a pipe."""
    piped = arguments.question is None
    for question in _lines() if piped else [arguments.question]:
        STATUS.show("searching ...")
        if arguments.json:
            asked = printer.graph.ainvoke({"question": question}, context=printer.context)
            result = as_json(runner.run(stoppable(asked)))
            say_json({**result, "model": printer.described}, indent=None if piped else 2)
            continue
        if piped:
            say(f"> {question}", style="bold")
        runner.run(stoppable(printer.answer(question)))
        if piped:
            say()
    if not arguments.json:
        hint(printer.described)


def _may_begin_session(arguments: argparse.Namespace) -> bool:
    """Whether stdin and stdout are a terminal, on which a session can be begun.

    Raises:
        InvalidInputError: They are not, and no question was given or piped.
    """
    if sys.stdin is not None and not sys.stdin.isatty():
        return False
    if sys.stdin is None or arguments.json or not sys.stdout.isatty():
        raise InvalidInputError(
            "no question was given. Give one: rag-kit ask 'How ...?' --index DIR; or questions on standard input, one "
            "a line; or neither on a terminal, without --json, for a session."
        )
    return True


def _lines() -> Iterator[str]:
    """Each line of a pipe.

    Raises:
        InvalidInputError: There is none, or one is too long.
    """
    question = ""
    for question in filter(None, (" ".join(line.split()) for line in sys.stdin)):
        _check(question)
        yield question
    if not question:
        raise InvalidInputError("no question was given: standard input is empty; write one a line.")


def _session(printer: AnswerPrinter, runner: asyncio.Runner) -> None:
    """Read questions and answer them until the input ends; each understands what was asked before."""
    with contextlib.suppress(ImportError):  # there is none on Windows
        import readline  # noqa: F401 - gives input() a history and keys to edit with
    hint("Ask a question; /help lists what else there is, Ctrl-D ends.")
    last: dict[str, Any] = {}
    while True:
        try:
            line = input("\n> ").strip()
            if line == "/quit":
                return
            if line == "/sources":
                say_passages(last["documents"]) if "documents" in last else say("Nothing was answered yet.")
            elif line.startswith("/"):
                say(_HELP if line == "/help" else f"{line} is unknown.\n{_HELP}")
            elif line:
                last = _turn(line, last, printer, runner)
        except EOFError:
            say()
            return
        except Terminated:
            raise
        except KeyboardInterrupt:
            say()
            hint("stopped")
        except RagKitError as error:
            problem(one_line(error))


def _turn(line: str, last: dict[str, Any], printer: AnswerPrinter, runner: asyncio.Runner) -> dict[str, Any]:
    """Answer a question of a session, or give the graph the reply that it asked for."""
    _check(line)
    given: Any = line
    if "__interrupt__" in last:
        from langgraph.types import Command

        given = Command(resume=line)
    result = runner.run(stoppable(printer.answer(given, {"configurable": {"thread_id": "session"}})))
    if "__interrupt__" in result:
        say(result["__interrupt__"][0].value["question"])
    return result
