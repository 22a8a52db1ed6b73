"""``rag-kit ask``: answer a question from an index, streamed, with citations that are checked."""

from __future__ import annotations

import argparse
import asyncio
import sys
from typing import TYPE_CHECKING, Any

from rag_kit.cli import exits
from rag_kit.cli.answering import AnswerPrinter, as_json, check, stoppable
from rag_kit.cli.opening import call_arguments, open_retriever
from rag_kit.cli.options import GRAPHS, add_answer_options, add_search_options, chat_settings
from rag_kit.cli.output import STATUS, hint_once, say, say_json
from rag_kit.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Iterator

_DESCRIPTION = """Answer a question from an index. Each [n] is checked against its source and quoted. Without a question
a session begins on a terminal: follow-ups are understood, /help lists its commands. From a pipe each line is a question
by itself; with --json each answer is a line then."""


def add_parser(commands: Any) -> None:
    """Add ``ask``."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "ask", help="answer a question, with citations", description=_DESCRIPTION
    )
    parser.add_argument("question", nargs="?")
    add_search_options(parser)
    add_answer_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Answer one question, those of a session, or each line of a pipe."""
    STATUS.show("loading ...")
    in_session = arguments.question is None and _may_begin_session(arguments)
    if arguments.question is not None:
        check(arguments.question)
    context = run_context(arguments)
    with open_retriever(arguments) as (index, retriever):
        from rag_kit import graphs
        from rag_kit.concurrency.pool import PoolExecutor
        from rag_kit.models import chat_model
        from rag_kit.models.chat import describe_model

        llm = chat_model(arguments.model, **chat_settings(arguments))
        settings: dict[str, Any] = {"prompts": arguments.prompts, "output": "full"}
        if in_session:
            from langgraph.checkpoint.memory import InMemorySaver

            settings["checkpointer"] = InMemorySaver()
        graph = getattr(graphs, GRAPHS[arguments.graph])(retriever, llm, **settings)
        described = describe_model(llm)
        printer = AnswerPrinter(graph, context, described, explained=arguments.explain)
        # One loop for all questions: a client's open connections belong to the loop that opened them. And a loop at
        # all for Ctrl-C: a thread that waits for a silent endpoint cannot be interrupted, a task can.
        with asyncio.Runner() as runner:
            runner.get_loop().set_default_executor(PoolExecutor())
            if in_session:
                from rag_kit.cli.session import Session

                about = f"{index.folder.name}: {index.stats()['chunks']} passages"
                return Session(printer, runner, about).run()
            _answer_all(arguments, printer, runner)
    if not arguments.json:
        hint_once(described)
    return exits.OK


def _answer_all(arguments: argparse.Namespace, printer: AnswerPrinter, runner: asyncio.Runner) -> None:
    """Answer the question that was given, or each line of a pipe."""
    piped = arguments.question is None
    for question in _questions(arguments.question):
        STATUS.show("searching ...")
        if arguments.json:
            asked = printer.graph.ainvoke({"question": question}, context=printer.context)
            result = runner.run(stoppable(asked))
            STATUS.clear()
            say_json({**as_json(result), "model": printer.described}, indent=None if piped else 2)
            continue
        if piped:
            say(f"> {question}", style="bold")
        printer.print_sources(runner.run(stoppable(printer.answer(question))))
        if piped:
            say()


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


def _questions(given: str | None) -> Iterator[str]:
    """The question that was given, or each line of a pipe.

    Raises:
        InvalidInputError: There is none, or one is too long.
    """
    if given is not None:
        yield given
        return
    lines = (" ".join(line.split()) for line in sys.stdin)
    question = ""
    for question in filter(None, lines):
        check(question)
        yield question
    if not question:
        raise InvalidInputError("no question was given: standard input is empty; write one a line.")


def run_context(arguments: argparse.Namespace) -> dict[str, Any]:
    """The context of each run of the graph, from the arguments.

    Raises:
        InvalidInputError: A cap is out of range.
    """
    context = {"language": arguments.language, **call_arguments(arguments)}
    for name, low in (("max_calls", 0), ("max_tokens", 1), ("deadline", 0.001)):
        value = getattr(arguments, name)
        if value is None:
            continue
        if not low <= value < float("inf"):
            raise InvalidInputError(
                f"--{name.replace('_', '-')} is {value:g}; give a number of {low:g} or more."
            )
        context[name] = value
    return context
