"""``rag-kit ask``: answer a question from an index, streamed, with citations that are checked."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
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
from rag_kit.cli.output import hint, say, say_json
from rag_kit.cli.retrieve import plain, shorten, show, where
from rag_kit.cli.streaming import AnswerStream
from rag_kit.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Graphs that ``--graph`` can name -> builder in rag_kit.graphs.
GRAPHS = {
    "plain": "build_plain_rag",
    "crag": "build_crag",
    "self-rag": "build_self_rag",
    "adaptive": "build_adaptive_rag",
}


def add_parser(commands: Any) -> None:
    """Add ``ask``."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "ask",
        help="answer a question, with citations",
        description="Answer a question from an index. Each [n] is checked against its source and quoted.",
    )
    parser.add_argument("question")
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
        "--deadline", type=float, default=300.0, metavar="SECONDS", help="time allowed (default 300)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Answer and print."""
    from rag_kit.models import chat_model, describe_model
    from rag_kit.text import check_question

    check_question(arguments.question, example="rag-kit ask 'How ...?' --index DIR")
    for name, low in (("max_calls", 0), ("max_tokens", 1), ("deadline", 0.001)):
        value = getattr(arguments, name)
        if value is not None and not low <= value < float("inf"):
            raise InvalidInputError(
                f"--{name.replace('_', '-')} is {value:g}; give a number of {low:g} or more."
            )
    context = {
        "language": arguments.language,
        **({} if arguments.max_calls is None else {"max_calls": arguments.max_calls}),
        "max_tokens": arguments.max_tokens,
        "deadline": arguments.deadline,
    }
    where_filter = parse_filter(arguments.filter)
    context |= call_arguments(arguments, where_filter)
    settings = {"base_url": arguments.base_url} if arguments.base_url else {}
    dense = searches_vectors(arguments.pipeline)
    with open_index(index_folder(arguments), arguments.embedding_model, dense=dense) as index:
        llm = chat_model(arguments.model, **settings)
        from rag_kit import graphs

        build = getattr(graphs, GRAPHS[arguments.graph])
        retriever = make_retriever(index, arguments, where_filter)
        graph = build(retriever, llm, prompts=arguments.prompts, output="full")
        # Asynchronously, for Ctrl-C: a thread that waits for a silent endpoint cannot be interrupted, a task can.
        if arguments.json:
            result = asyncio.run(graph.ainvoke({"question": arguments.question}, context=context))
            say_json({**_as_json(result), "model": describe_model(llm)})
            return exits.OK
        hint(describe_model(llm))
        result = asyncio.run(_stream(graph, arguments.question, context, explained=arguments.explain))
    _sources(result, explained=arguments.explain)
    return exits.OK


async def _stream(graph: Any, question: str, context: dict[str, Any], *, explained: bool) -> dict[str, Any]:
    """Print the answer as it arrives, and with `explained` each step; returns the final state."""
    state: dict[str, Any] = {}
    answer = AnswerStream()
    printed = ""
    async for part in graph.astream(
        {"question": question}, context=context, stream_mode=["messages", "custom", "values"], subgraphs=True
    ):
        path, mode, value = part
        if mode == "messages":
            # what graders and rewriters say is not streamed by the graphs; what is, is the answer
            if text := answer.feed(_text(value[0])):
                _write(text)
                printed += text
        elif mode == "custom" and explained:
            hint(f"step: {shorten(json.dumps(value, ensure_ascii=False), 300)}")
        elif mode == "values" and not path:
            if explained and value.get("documents") and not state.get("documents"):
                show(value["documents"], explained=True)
                say()
            state = value
    printed += (rest := answer.end())
    _write(rest)
    if printed.strip() != state["answer"].strip():
        # nothing was streamed, or what was is not what the graph settled on
        _write(("\n\n" if printed.strip() else "") + state["answer"])
    say()
    return state


def _text(message: Any) -> str:
    return message.text if isinstance(message.text, str) else message.text()


def _write(text: str) -> None:
    from rag_kit.documents import clean_text

    sys.stdout.write(clean_text(text))
    sys.stdout.flush()


def _sources(result: Mapping[str, Any], *, explained: bool) -> None:
    """Print each cited passage once with its quotes, then whatever does not hold."""
    if quoted := _quotes(result["citations"]):
        say("\nSources")
    for citation, quotes in quoted:
        say(f"  [{citation['number']}] {where(citation)}")
        for quote in quotes:
            say(f"      “{shorten(quote, 300)}”")
    for citation in result["citations"]:
        if citation["status"] != "supported":
            say(f"  ! citation [{citation['number']}] does not hold: {citation['reason']}")
    for statement in result["uncited"]:
        say(f"  ! no citation for: {shorten(statement)}")
    # what passages carry is part of the explanation, where one was printed
    for note in result["notes"] if explained else _notes(result):
        hint(f"note: {note}")


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
