"""``rag-kit ask``: answer a question from an index, streamed, with citations that are checked."""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_kit.cli import exits
from rag_kit.cli.answering import AnswerPrinter, all_notes, check, stoppable
from rag_kit.cli.opening import (
    add_search_arguments,
    call_arguments,
    index_folder,
    make_retriever,
    open_index,
    parse_filter,
    searches_vectors,
)
from rag_kit.cli.output import STATUS, hint_once, say, say_json
from rag_kit.cli.passages import plain
from rag_kit.errors import BudgetExceededError, InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

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
    from rag_kit.models import chat_model
    from rag_kit.models.chat import describe_model

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


def _as_json(result: Mapping[str, Any]) -> dict[str, Any]:
    keys = ("question", "search_query", "language", "answer", "status", "citations", "uncited", "usage")
    return {
        **{key: result[key] for key in keys},
        "notes": all_notes(result),
        "documents": [plain(document) for document in result["documents"]],
    }
