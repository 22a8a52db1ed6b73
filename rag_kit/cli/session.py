"""A session of ``rag-kit ask``: questions and follow-ups on a terminal, until Ctrl-D."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from rag_kit.cli import exits
from rag_kit.cli.answering import AnswerPrinter, check, stoppable
from rag_kit.cli.output import STATUS, hint, one_line, problem, say
from rag_kit.cli.passages import show
from rag_kit.errors import RagKitError

_HELP = """Ask a question, or go on from the last one. Ctrl-C stops an answer.
/sources  the passages that the last answer was made from
/help     this
/quit     end; so does Ctrl-D"""


class Session:
    """Reads questions and prints answers; each understands what was asked before.

    Args:
        printer: Of the graph, which has a checkpointer.
        runner: The one event loop of the session.
        about: The index in words.
    """

    def __init__(self, printer: AnswerPrinter, runner: asyncio.Runner, about: str) -> None:
        self._printer = printer
        self._runner = runner
        self._about = about
        self._last: dict[str, Any] = {}
        self._waits = False

    def run(self) -> int:
        """Read and answer until the input ends."""
        with contextlib.suppress(ImportError):  # there is none on Windows
            import readline  # noqa: F401 - gives input() a history and keys to edit with
        STATUS.clear()
        hint(f"{self._about}. {self._printer.described}")
        hint("Ask a question; /help lists what else there is, Ctrl-D ends.")
        while True:
            try:
                line = input("\n> ").strip()
            except EOFError:
                say()
                return exits.OK
            except exits.Terminated:
                raise
            except KeyboardInterrupt:
                continue
            if line == "/quit":
                return exits.OK
            if line.startswith("/"):
                self._command(line)
            elif line:
                self._answer(line)

    def _command(self, name: str) -> None:
        if name == "/sources" and not self._last:
            say("Nothing was answered yet.")
        elif name == "/sources":
            show(self._last["documents"])
        else:
            if name != "/help":
                say(f"{name} is unknown.")
            say(_HELP)

    def _answer(self, line: str) -> None:
        """Answer a question; what goes wrong with one does not end the session."""
        config = {"configurable": {"thread_id": "session"}}
        given: Any = line
        if self._waits:
            from langgraph.types import Command

            given, self._waits = Command(resume=line), False
        try:
            check(line)
            result = self._runner.run(stoppable(self._printer.answer(given, config)))
        except exits.Terminated:
            raise
        except KeyboardInterrupt:
            say()
            hint("stopped")
            return
        except RagKitError as error:
            problem(one_line(error))
            return
        if "__interrupt__" in result:
            self._waits = True
            say(result["__interrupt__"][0].value["question"])
            return
        self._last = result
        self._printer.print_sources(result)
