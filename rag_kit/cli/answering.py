"""Running a graph on a question at the terminal: the answer as it is streamed, then its sources."""

from __future__ import annotations

import asyncio
import re
from itertools import groupby
from typing import TYPE_CHECKING, Any

from rag_kit.cli.output import STATUS, hint, say
from rag_kit.cli.passages import passage_notes, plain, say_passages, shorten, where

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping

_THOUGHT = re.compile(r"<think>.*?(?:</think>|\Z)", re.DOTALL)
_HALF_TAG = re.compile(r"<(?:t(?:h(?:i(?:nk?)?)?)?)?\Z")


def visible(streamed: str) -> str:
    """What may be shown of an answer that is still streamed: no thought, and nothing that may become its tag.

    Example:
        >>> visible("<think>hm</think>Yes <th"), visible("<think>hm</thi")
        ('Yes ', '')
    """
    return _HALF_TAG.sub("", _THOUGHT.sub("", streamed)).lstrip()


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
        """Run the graph, and print the answer as it is streamed and its sources; with ``explained`` each step, too.

        Args:
            given: The question, or a command that resumes a run.
            config: Of the run, such as its thread.

        Returns:
            The final state; with ``__interrupt__`` where the graph waits for a reply.
        """
        STATUS.show("searching ...")
        state: dict[str, Any] = {}
        streamed, printed, explained = "", "", not self.explained
        async for path, mode, value in self.graph.astream(
            {"question": given} if isinstance(given, str) else given,
            config,
            context=self.context,
            stream_mode=["messages", "custom", "values"],
            subgraphs=True,
        ):
            if mode == "messages":
                # what graders and rewriters say is not streamed by the graphs; what is, is the answer
                streamed += value[0].text
                if text := visible(streamed)[len(printed) :]:
                    say(text, end="")
                    printed += text
            elif mode == "custom" and not printed:
                self._step(value)
            elif mode == "values":
                # a graph inside the graph has its passages before the answer, the graph around it only afterwards
                if not printed and not explained and value.get("documents") and value.get("question"):
                    explained = True
                    say_passages(value["documents"], value["question"])
                    say()
                state = state if path else value
        if "__interrupt__" not in state:
            answer, shown = state["answer"].strip(), printed.strip()
            # what was streamed may not be what the graph settled on
            say(answer[len(shown) :] if answer.startswith(shown) else f"\n\n{answer}")
            if not explained and state["documents"]:
                say_passages(state["documents"], state["question"])
            self._print_sources(state)
        return state

    def _step(self, event: Mapping[str, Any]) -> None:
        """Print a step that the graph reports, its name and what it found."""
        details = ", ".join(f"{key}: {_words(value)}" for key, value in event.items() if key != "event")
        text = shorten(f"{event.get('event', 'step')} {details}".replace("_", " "), 300)
        if self.explained:
            hint(f"· {text}")
        STATUS.show(f"{text}. Waiting for {self.described.split(' ')[0]} ...")

    def _print_sources(self, result: Mapping[str, Any]) -> None:
        """Print each cited passage once with its quotes, then unsupported citations, uncited statements and notes."""
        quoted = sorted(
            (each["number"], where(each), each["quote"]) for each in result["citations"] if each["quote"]
        )
        if quoted:
            say("\nSources", style="bold")
        for (number, place), quotes in groupby(dict.fromkeys(quoted), key=lambda each: each[:2]):
            say(f"[{number}] {place}", style="cyan", indent="  ")
            for _, _, quote in quotes:
                say(f"“{shorten(quote, 300)}”", indent="      ")
        for citation in result["citations"]:
            if citation["status"] != "supported":
                found = "is undecided" if citation["status"] == "undecided" else "does not hold"
                text = f"! citation [{citation['number']}] {found}: {citation['reason']}"
                say(text, style="yellow", indent="  ")
        for statement in result["uncited"]:
            say(f"! no citation for: {shorten(statement)}", style="yellow", indent="  ")
        new = [
            note for note in all_notes(result) if note not in self._noted
        ]  # in a session a note comes once
        self._noted.update(new)
        for note in new:
            hint(f"note: {note}")


def _words(value: Any) -> str:
    """A detail of a step in words."""
    return ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def all_notes(result: Mapping[str, Any]) -> list[str]:
    """Everything that was degraded: notes of the run, then those that passages carry; each once."""
    return list(dict.fromkeys([*result["notes"], *passage_notes(result["documents"])]))


def as_json(result: Mapping[str, Any]) -> dict[str, Any]:
    """The final state of a run as plain JSON."""
    keys = ("question", "search_query", "language", "answer", "status", "citations", "uncited", "usage")
    return {
        **{key: result[key] for key in keys},
        "notes": all_notes(result),
        "documents": [plain(document) for document in result["documents"]],
    }
