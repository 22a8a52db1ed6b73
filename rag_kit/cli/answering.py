"""Running a graph on a question at the terminal: the answer as it is streamed, then its sources."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from rag_kit.cli.output import STATUS, hint, say, say_piece
from rag_kit.cli.passages import plain, say_passages, shorten, step_text, where
from rag_kit.cli.streaming import AnswerStream

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping


def check(question: str) -> None:
    """Refuse a question that is empty or too long.

    Raises:
        InvalidInputError: It is.
    """
    from rag_kit.text import check_question

    check_question(question, example="rag-kit ask 'How ...?' --index DIR")


async def stoppable(run: Coroutine[Any, Any, dict[str, Any]]) -> dict[str, Any]:
    """Await a run; if this is cancelled, as by Ctrl-C, cancel the run again and again until it ends.

    Python 3.11's `asyncio.wait_for`, in which LangChain's client awaits each token, loses a cancellation that
    comes together with one.
    """
    task = asyncio.ensure_future(run)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        while not task.done():
            task.cancel()
            await asyncio.wait({task}, timeout=0.2)
        raise


class AnswerPrinter:
    """Runs a graph on questions and prints the answers with their sources.

    Args:
        graph: A graph of this kit.
        context: Settings of each run.
        described: The chat model in words.
        explained: Whether steps and passages are printed too.
    """

    def __init__(self, graph: Any, context: Mapping[str, Any], described: str, *, explained: bool) -> None:
        self.graph = graph
        self.context = context
        self.described = described
        self.explained = explained
        self._noted: set[str] = set()

    async def answer(self, given: Any, config: dict[str, Any] | None = None) -> dict[str, Any]:
        """Run the graph and print the answer as it is streamed; with ``explained`` each step, too.

        Args:
            given: The question, or a command that resumes a run.
            config: Of the run, such as its thread.

        Returns:
            The final state; with ``__interrupt__`` where the graph waits for a reply.
        """
        STATUS.show("searching ...")
        state: dict[str, Any] = {}
        stream, printed, explained = AnswerStream(), "", not self.explained
        async for path, mode, value in self.graph.astream(
            {"question": given} if isinstance(given, str) else given,
            config,
            context=self.context,
            stream_mode=["messages", "custom", "values"],
            subgraphs=True,
        ):
            if mode == "messages":
                # what graders and rewriters say is not streamed by the graphs; what is, is the answer
                if text := stream.feed(value[0].text):
                    STATUS.clear()
                    say_piece(text)
                    printed += text
            elif mode == "custom" and not printed:
                self._step(value)
            elif mode == "values":
                # a graph inside the graph has its passages before the answer, the graph around it only afterwards
                if not printed and not explained and value.get("documents") and value.get("question"):
                    explained = True
                    STATUS.clear()
                    say_passages(value["documents"], value["question"])
                    say()
                state = state if path else value
        STATUS.clear()
        if "__interrupt__" in state:
            return state
        printed += (rest := stream.end())
        say_piece(rest)
        if printed.strip() != state["answer"].strip():
            # nothing was streamed, or what was is not what the graph settled on
            say_piece(("\n\n" if printed.strip() else "") + state["answer"])
        say()
        if not explained and state["documents"]:
            say()
            say_passages(state["documents"], state["question"])
        return state

    def _step(self, event: Mapping[str, Any]) -> None:
        text = step_text(event)
        if self.explained:
            hint(f"· {text}")
        STATUS.show(f"{text} Waiting for {self.described.split(' ')[0]} ...")

    def print_sources(self, result: Mapping[str, Any]) -> None:
        """Print each cited passage once with its quotes, then unsupported citations, uncited statements and notes."""
        if quoted := _quotes(result["citations"]):
            say("\nSources", style="bold")
        for citation, quotes in quoted:
            say(f"[{citation['number']}] {where(citation)}", style="cyan", indent="  ")
            for quote in quotes:
                say(f"“{shorten(quote, 300)}”", indent="      ")
        for citation in result["citations"]:
            if citation["status"] != "supported":
                found = "is undecided" if citation["status"] == "undecided" else "does not hold"
                text = f"! citation [{citation['number']}] {found}: {citation['reason']}"
                say(text, style="yellow", indent="  ")
        for statement in result["uncited"]:
            say(f"! no citation for: {shorten(statement)}", style="yellow", indent="  ")
        # What passages carry is part of the explanation, where one was printed. In a session a note comes once.
        for note in result["notes"] if self.explained else all_notes(result):
            if note not in self._noted:
                hint(f"note: {note}")
            self._noted.add(note)


def _quotes(citations: list[dict[str, Any]]) -> list[tuple[dict[str, Any], list[str]]]:
    """For each cited passage, in order of its number: one of its citations, and its quotes without repeats."""
    grouped: dict[int, tuple[dict[str, Any], list[str]]] = {}
    for citation in citations:
        if citation["quote"] is None:
            continue
        _, quotes = grouped.setdefault(citation["number"], (citation, []))
        if citation["quote"] not in quotes:
            quotes.append(citation["quote"])
    return [grouped[number] for number in sorted(grouped)]


def all_notes(result: Mapping[str, Any]) -> list[str]:
    """Everything that was degraded: notes of the run, then those that passages carry; each once."""
    from rag_kit.documents import get_provenance

    notes = [*result["notes"]]
    for document in result["documents"]:
        notes += get_provenance(document).get("notes", [])
    return list(dict.fromkeys(notes))


def as_json(result: Mapping[str, Any]) -> dict[str, Any]:
    """The final state of a run as plain JSON."""
    keys = ("question", "search_query", "language", "answer", "status", "citations", "uncited", "usage")
    return {
        **{key: result[key] for key in keys},
        "notes": all_notes(result),
        "documents": [plain(document) for document in result["documents"]],
    }
