"""``rag-kit retrieve``: show what is found, and why, without asking a model for an answer."""

from __future__ import annotations

import argparse
from typing import Any

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
from rag_kit.cli.output import STATUS, say_json
from rag_kit.cli.passages import plain, show


def add_parser(commands: Any) -> None:
    """Add ``retrieve``."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "retrieve", help="show what is found, and why", description="Search an index; no chat model is asked."
    )
    parser.add_argument("question")
    add_search_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Search and print."""
    STATUS.show("searching ...")
    from rag_kit.retrieval.compose import call_retriever
    from rag_kit.text import check_question

    check_question(arguments.question, example="rag-kit retrieve 'How ...?' --index DIR")
    where = parse_filter(arguments.filter)
    dense = searches_vectors(arguments.pipeline)
    with open_index(index_folder(arguments), arguments.embedding_model, dense=dense) as index:
        retriever = make_retriever(index, arguments, where)
        documents = call_retriever(retriever, arguments.question, **call_arguments(arguments, where))
    STATUS.clear()
    if arguments.json:
        say_json({"question": arguments.question, "documents": [plain(d) for d in documents]})
        return exits.OK
    if arguments.explain and documents:
        from rag_kit.cli.explaining import say_passages

        say_passages(documents, arguments.question)
    else:
        show(documents)
    return exits.OK
