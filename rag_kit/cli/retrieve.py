"""``rag-kit retrieve``: show what is found, and why, without asking a model for an answer."""

from __future__ import annotations

import argparse
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
from rag_kit.cli.output import flat, say, say_json

if TYPE_CHECKING:
    from langchain_core.documents import Document


def add_parser(commands: Any) -> None:
    """Add ``retrieve``."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "retrieve", help="show what is found, and why", description="Search an index; no chat model is asked."
    )
    parser.add_argument("question")
    add_search_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Search and print."""
    from rag_kit.retrieval.compose import call_retriever
    from rag_kit.text import check_question

    check_question(arguments.question, example="rag-kit retrieve 'How ...?' --index DIR")
    where = parse_filter(arguments.filter)
    dense = searches_vectors(arguments.pipeline)
    with open_index(index_folder(arguments), arguments.embedding_model, dense=dense) as index:
        retriever = make_retriever(index, arguments, where)
        documents = call_retriever(retriever, arguments.question, **call_arguments(arguments, where))
    if arguments.json:
        say_json({"question": arguments.question, "documents": [plain(d) for d in documents]})
        return exits.OK
    show(documents, explained=arguments.explain)
    return exits.OK


def show(documents: list[Document], *, explained: bool) -> None:
    """Print passages, with their provenance when asked for."""
    if not documents:
        say(
            "Nothing was found: no passage shares a word with the question and matches the filter, if one was given."
        )
    elif explained:
        from rag_kit.documents import explain

        print(explain(documents))
    else:
        for number, document in enumerate(documents, 1):
            say(f"[{number}] {where(document.metadata)}")
            say("    " + shorten(document.page_content))


def where(metadata: dict[str, Any]) -> str:
    """Where a passage stands: file, page or slide or sheet, heading."""
    parts = [str(metadata.get("file") or metadata.get("source") or metadata.get("title") or "(no source)")]
    parts += [
        f"{name} {metadata[name]}" for name in ("page", "slide", "sheet") if metadata.get(name) is not None
    ]
    if metadata.get("heading"):
        parts.append(str(metadata["heading"]))
    return flat(" · ".join(parts))


def shorten(text: str, width: int = 160) -> str:
    """One line of at most ``width`` characters."""
    line = " ".join(text.split())
    return line if len(line) <= width else line[: width - 1] + "…"


def plain(document: Document) -> dict[str, Any]:
    """A document as JSON."""
    from rag_kit.documents import to_plain

    value: dict[str, Any] = to_plain(
        {"id": document.id, "text": document.page_content, "metadata": document.metadata}
    )
    return value
