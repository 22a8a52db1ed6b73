"""``rag-kit ask``: answer a question from an index, streamed, with citations that are checked."""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_kit.cli import exits
from rag_kit.cli.opening import (
    add_search_arguments,
    call_arguments,
    index_folder,
    make_retriever,
    open_index,
    parse_filter,
    searches_vectors,
)
from rag_kit.cli.output import STATUS, AnswerWriter, hint, hint_once, say, say_json
from rag_kit.cli.passages import plain, shorten, where
from rag_kit.cli.streaming import AnswerStream
from rag_kit.errors import BudgetExceededError, InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator, Mapping

#: Graphs that ``--graph`` can name -> builder in rag_kit.graphs.
GRAPHS = {
    "plain": "build_plain_rag",
    "crag": "build_crag",
    "self-rag": "build_self_rag",
    "adaptive": "build_adaptive_rag",
    "decomposed": "build_decomposed_rag",
}


def add_parser(commands: Any) -> None:
    """Add ``ask``."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "ask",
        help="answer a question, with citations",
        description="Answer a question from an index. Each [n] is checked against its source and quoted. Without a "
        "question a session begins on a terminal: follow-ups are understood, /help lists its commands. From a pipe "
        "each line is a question by itself; with --json each answer is a line then.",
    )
    parser.add_argument("question", nargs="?")
    add_search_arguments(parser)
    parser.add_argument(
        "--graph", choices=sorted(GRAPHS), default="plain", help="which graph answers (default plain)"
    )
    parser.add_argument(
        "--model", metavar="NAME", help="chat model, e.g. openai:gpt-4o-mini (or RAG_KIT_CHAT_MODEL)"
    )
    parser.add_argument(
        "--base-url", metavar="URL", help="address of an OpenAI-compatible endpoint (or RAG_KIT_BASE_URL)"
    )
    parser.add_argument(
        "--language", choices=["auto", "en", "zh"], default="auto", help="language of the prompts"
    )
    parser.add_argument("--prompts", type=Path, metavar="DIR", help="folder with your own prompt files")
    parser.add_argument(
        "--max-calls", type=int, metavar="N", help="model calls allowed (default: the graph's own, plain 8)"
    )
    parser.add_argument("--max-tokens", type=int, metavar="N", help="tokens allowed, in and out")
    parser.add_argument(
        "--deadline",
        type=float,
        default=300.0,
        metavar="SECONDS",
        help="time allowed for an answer (default 300); with QUESTION, loading counts",
    )


def run(arguments: argparse.Namespace) -> int:
    """Answer one question, those of a session, or each line of a pipe."""
    begun = time.monotonic()
    try:
        return _run(arguments, begun)
    except BudgetExceededError as error:
        if error.what != "deadline":
            raise
        raise BudgetExceededError("deadline", arguments.deadline) from None


def _run(arguments: argparse.Namespace, begun: float) -> int:
    STATUS.show("loading ...")
    from rag_kit.concurrency.pool import PoolExecutor
    from rag_kit.models import chat_model, describe_model

    in_session = arguments.question is None and _may_begin_session(arguments)
    if arguments.question is not None:
        check(arguments.question)
    context = _context(arguments)
    where_filter = parse_filter(arguments.filter)
    context |= call_arguments(arguments, where_filter)
    settings = {"base_url": arguments.base_url} if arguments.base_url else {}
    dense = searches_vectors(arguments.pipeline)
    with open_index(index_folder(arguments), arguments.embedding_model, dense=dense) as index:
        llm = chat_model(arguments.model, **settings)
        from rag_kit import graphs

        build = getattr(graphs, GRAPHS[arguments.graph])
        retriever = make_retriever(index, arguments, where_filter)
        described = describe_model(llm)
        # One loop for all questions: a client's open connections belong to the loop that opened them. And a loop at
        # all for Ctrl-C: a thread that waits for a silent endpoint cannot be interrupted, a task can.
        with asyncio.Runner() as runner:
            runner.get_loop().set_default_executor(PoolExecutor())
            if in_session:
                from langgraph.checkpoint.memory import InMemorySaver

                from rag_kit.cli.session import Session

                graph = build(
                    retriever, llm, prompts=arguments.prompts, output="full", checkpointer=InMemorySaver()
                )
                printer = AnswerPrinter(graph, context, described, explained=arguments.explain)
                return Session(
                    printer, runner, f"{index.folder.name}: {index.stats()['chunks']} passages"
                ).run()
            graph = build(retriever, llm, prompts=arguments.prompts, output="full")
            if arguments.question is not None:  # its time runs from the command on, loading included
                context["deadline"] = max(0.001, arguments.deadline - (time.monotonic() - begun))
            printer = AnswerPrinter(graph, context, described, explained=arguments.explain)
            for question in _questions(arguments.question):
                STATUS.show("searching ...")
                if arguments.json:
                    result = runner.run(stoppable(graph.ainvoke({"question": question}, context=context)))
                    STATUS.clear()
                    say_json(
                        {**_as_json(result), "model": described},
                        indent=2 if arguments.question is not None else None,
                    )
                    continue
                if arguments.question is None:
                    say(f"> {question}", style="bold")
                printer.print_sources(runner.run(stoppable(printer.answer(question))))
                if arguments.question is None:
                    say()
    if not arguments.json:
        hint_once(described)
    return exits.OK


def check(question: str) -> None:
    """Refuse a question that is empty or too long.

    Raises:
        InvalidInputError: It is.
    """
    from rag_kit.text import check_question

    check_question(question, example="rag-kit ask 'How ...?' --index DIR")


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


def _context(arguments: argparse.Namespace) -> dict[str, Any]:
    """The context of each run of the graph, from the arguments.

    Raises:
        InvalidInputError: A cap is out of range.
    """
    for name, low in (("max_calls", 0), ("max_tokens", 1), ("deadline", 0.001)):
        value = getattr(arguments, name)
        if value is not None and not low <= value < float("inf"):
            raise InvalidInputError(
                f"--{name.replace('_', '-')} is {value:g}; give a number of {low:g} or more."
            )
    return {
        "language": arguments.language,
        **({} if arguments.max_calls is None else {"max_calls": arguments.max_calls}),
        "max_tokens": arguments.max_tokens,
        "deadline": arguments.deadline,
    }


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
        stream, out, printed = AnswerStream(), AnswerWriter(), ""
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
                    out.write(text)
                    printed += text
            elif mode == "custom" and not printed:
                self._step(value)
            elif mode == "values" and not path:
                if self.explained and value.get("documents") and not state.get("documents"):
                    self._passages(value)
                state = value
        STATUS.clear()
        if "__interrupt__" in state:
            return state
        printed += (rest := stream.end())
        out.write(rest)
        if printed.strip() != state["answer"].strip():
            # nothing was streamed, or what was is not what the graph settled on
            out.write(("\n\n" if printed.strip() else "") + state["answer"])
        out.end()
        return state

    def _step(self, event: Mapping[str, Any]) -> None:
        from rag_kit.cli.explaining import step_text

        if self.explained:
            hint(f"· {step_text(event)}")
        STATUS.show(f"{step_text(event)} Waiting for {self.described.split(' ')[0]} ...")

    def _passages(self, state: Mapping[str, Any]) -> None:
        from rag_kit.cli.explaining import say_passages

        STATUS.clear()
        say_passages(state["documents"], state["question"])
        say()

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
        for note in result["notes"] if self.explained else _notes(result):
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


def _notes(result: Mapping[str, Any]) -> list[str]:
    """Everything that was degraded: notes of the run, then those that passages carry; each once."""
    from rag_kit.documents import get_provenance

    notes = [*result["notes"]]
    for document in result["documents"]:
        notes += get_provenance(document).get("notes", [])
    return list(dict.fromkeys(notes))


def _as_json(result: Mapping[str, Any]) -> dict[str, Any]:
    keys = ("question", "search_query", "language", "answer", "status", "citations", "uncited", "usage")
    return {
        **{key: result[key] for key in keys},
        "notes": _notes(result),
        "documents": [plain(document) for document in result["documents"]],
    }
