"""Answer a question from an index, with citations.

Each [n] is checked against its source and quoted. Without a question a session begins on a terminal: follow-ups are
understood, /help lists its commands. From a pipe each line is a question by itself, with --json each answer a line.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import sys
from collections.abc import Coroutine, Mapping
from typing import Any

from rag_kit.cli.exits import Terminated
from rag_kit.cli.options import ANSWER, PIPELINE, OpenGraph, add_options, open_graph, run_context
from rag_kit.cli.output import STATUS, erase, error_line, hint, problem, say, say_json
from rag_kit.cli.retrieve import place_of, plain_document, say_notes, say_passages, shorten
from rag_kit.errors import InvalidInputError, RagKitError

_HELP = """Ask a question, or go on from the last one. Ctrl-C stops an answer.
/sources  the passages that the last answer was made from
/help     this
/quit     end; so does Ctrl-D"""
_JSON_KEYS = ("question", "search_query", "language", "answer", "status", "citations", "uncited", "usage")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``ask``."""
    parser.add_argument("question", nargs="?")
    add_options(parser, *PIPELINE, *ANSWER, "--explain", "--json")
    parser.set_defaults(deadline=300.0)


def run(arguments: argparse.Namespace) -> None:
    """Answer one question, those of a session, or each line of a pipe."""
    STATUS.show("loading ...")
    in_session = arguments.question is None and sys.stdin is not None and sys.stdin.isatty()
    settings: dict[str, Any] = {"prompts": arguments.prompts, "output": "full"}
    if in_session:
        if arguments.json or not sys.stdout.isatty():
            raise InvalidInputError(
                "no question was given. Give one: rag-kit ask 'How ...?' --index DIR; or questions on standard "
                "input, one a line; or neither on a terminal, without --json, for a session."
            )
        from langgraph.checkpoint.memory import InMemorySaver

        settings["checkpointer"] = InMemorySaver()
    with open_graph(arguments, **settings) as opened:
        from rag_kit.concurrency.bridge import PoolExecutor

        printer = AnswerPrinter(opened, run_context(arguments), explain=arguments.explain)
        # One loop for all questions: a client's open connections belong to the loop that opened them. And a loop at
        # all for Ctrl-C: a thread that waits for a silent endpoint cannot be interrupted, a task can.
        with asyncio.Runner() as runner:
            runner.get_loop().set_default_executor(PoolExecutor())
            if in_session:
                _hold_session(printer, runner)
            else:
                _answer_all(arguments, printer, runner)


def _answer_all(arguments: argparse.Namespace, printer: AnswerPrinter, runner: asyncio.Runner) -> None:
    """Answer the question that was given, or each line of a pipe."""
    is_piped = arguments.question is None
    questions = list(filter(None, map(str.strip, sys.stdin or ()))) if is_piped else [arguments.question]
    if not questions:
        raise InvalidInputError("no question was given: standard input is empty; write one a line.")
    for question in questions:
        STATUS.show("searching ...")
        if arguments.json:
            call = printer.graph.ainvoke({"question": question}, context=printer.context)
            result = runner.run(finish_or_cancel(call))
            documents = [plain_document(document) for document in result["documents"]]
            record = {key: result[key] for key in (*_JSON_KEYS, "notes")}
            record |= {"documents": documents, "model": printer.model}
            say_json(record, indent=None if is_piped else 2)
            continue
        if is_piped:
            say(f"> {question}", style="bold")
        runner.run(finish_or_cancel(printer.answer({"question": question})))
        if is_piped:
            say()
    if not arguments.json:
        hint(printer.model)


def _hold_session(printer: AnswerPrinter, runner: asyncio.Runner) -> None:
    """Read questions from the terminal and answer them until the input ends; earlier turns are context."""
    with contextlib.suppress(ImportError):  # readline is missing on Windows
        import readline  # noqa: F401 - gives input() a history and keys to edit with
    index = printer.index
    hint(f"{index.folder.name}: {index.stats()['chunks']} passages. {printer.model}")
    hint("Ask a question; /help lists what else there is, Ctrl-D ends.")
    last: dict[str, Any] = {}
    while True:
        try:
            line = input("\n> ").strip()
            if line == "/quit":
                return
            if line == "/sources" and "documents" in last:
                say_passages(last["documents"], last["language"])
            elif line == "/sources":
                say("Nothing was answered yet.")
            elif line.startswith("/"):
                say(_HELP if line == "/help" else f"{line} is unknown.\n{_HELP}")
            elif line:
                last = _take_turn(line, last, printer, runner)
        except EOFError:
            say()
            return
        except Terminated:  # a KeyboardInterrupt, too, but one that ends the program
            raise
        except KeyboardInterrupt:
            say()
            hint("stopped")
        except RagKitError as error:
            problem(error_line(error))


def _take_turn(line: str, last: dict[str, Any], printer: AnswerPrinter, runner: asyncio.Runner) -> Any:
    """Answer a line of a session: a question, or the reply to a question that the graph asked back."""
    message: Any = {"question": line}
    if "__interrupt__" in last:
        from langgraph.types import Command

        message = Command(resume=line)
    turn = printer.answer(message, {"configurable": {"thread_id": "session"}})
    result = runner.run(finish_or_cancel(turn))
    if "__interrupt__" in result:
        say(result["__interrupt__"][0].value["question"])
    return result


async def finish_or_cancel(call: Coroutine[Any, Any, dict[str, Any]]) -> dict[str, Any]:
    """Return what a call returns; if this is cancelled, as by Ctrl-C, cancel the call again and again until it ends.

    LangChain's client awaits tokens by `asyncio.wait_for`, which in 3.11 loses a cancellation that comes with a token.
    """
    task = asyncio.ensure_future(call)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        while not task.done():
            task.cancel()
            await asyncio.wait({task}, timeout=0.2)
        raise


class AnswerPrinter:
    """Runs a graph on questions, and prints the answers with their sources, or also steps and passages."""

    def __init__(self, opened: OpenGraph, context: Mapping[str, Any], *, explain: bool) -> None:
        self.index, _, self.graph, self.model = opened
        self.context = context
        self.explain = explain
        self._notes: set[str] = set()

    async def answer(self, message: Any, config: dict[str, Any] | None = None) -> dict[str, Any]:
        """Run the graph, print its answer (on a terminal while it is streamed) and sources; return the final state."""
        from rag_kit.graphs.streaming import AT_ONCE

        STATUS.show("searching ...")
        state: dict[str, Any] = {}
        streamed = ""
        async for path, mode, value in self.graph.astream(
            message,
            {**(config or {}), "tags": [AT_ONCE]},  # a streamed text that is not the answer is erased
            context=self.context,
            stream_mode=["messages", "custom", "values"],
            subgraphs=True,
        ):
            if mode == "messages" and sys.stdout.isatty():
                chunk, _ = value  # and its metadata; graphs stream no thoughts, graders or rewriters
                if chunk.text:
                    say(chunk.text, end="")
                streamed += chunk.text
            elif mode == "custom" and not streamed:
                step = shorten(", ".join(f"{name}: {finding}" for name, finding in value.items()), 300)
                if self.explain:
                    hint(f"· {step}")
                STATUS.show(f"{step}. Waiting for {self.model.split(' ')[0]} ...")
            elif mode == "values" and not path:  # not the state of a graph inside the graph
                state = value
        if "__interrupt__" not in state:
            self._print_answer(state, streamed)
        return state

    def _print_answer(self, state: Mapping[str, Any], streamed: str) -> None:
        """Print the rest of the answer and its sources; erase a streamed text that is not its beginning."""
        answer, printed = state["answer"].strip(), streamed.strip()
        if not answer.startswith(printed):
            erase(streamed)
            printed = ""
        say(answer[len(printed) :])
        if self.explain:
            say_passages(state["documents"], state["language"], explain=True)
        self._print_sources(state)

    def _print_sources(self, result: Mapping[str, Any]) -> None:
        """Print each cited passage once with its quotes, then unsupported citations, uncited statements and notes."""
        from rag_kit.evaluation.wording import in_language

        language = result["language"]
        citations = sorted(result["citations"], key=lambda citation: citation["number"])
        quotes_by_source: dict[str, list[str]] = {}
        for citation in citations:
            if citation["quote"]:
                place = place_of(result["documents"][citation["number"] - 1].metadata, language)
                source = f"[{citation['number']}] {place}"
                quotes_by_source.setdefault(source, []).append(citation["quote"])
        if quotes_by_source:
            say("\n来源" if language == "zh" else "\nSources", style="bold")
        for source, quotes in quotes_by_source.items():
            say(source, style="cyan", indent="  ")
            for quote in dict.fromkeys(quotes):
                say(f"“{shorten(quote, 300)}”", indent="      ")
        for citation in citations:
            if citation["status"] != "supported":
                verdict = "is undecided" if citation["status"] == "undecided" else "does not hold"
                text = f"citation [{citation['number']}] {verdict}: {citation['reason']}"
                say(f"! {in_language(text, language)}", style="yellow", indent="  ")
        for statement in result["uncited"]:
            text = f"no citation for: {shorten(statement)}"
            say(f"! {in_language(text, language)}", style="yellow", indent="  ")
        say_notes((note for note in dict.fromkeys(result["notes"]) if note not in self._notes), language)
        self._notes.update(result["notes"])  # in a session a note comes once
