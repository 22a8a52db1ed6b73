"""``rag-kit retrieve``: show what is found, and why, without asking a model for an answer."""

from __future__ import annotations

import argparse

from rag_kit.cli.opening import call_arguments, open_retriever
from rag_kit.cli.options import PIPELINE, add_options
from rag_kit.cli.output import STATUS, hint, say_json
from rag_kit.cli.passages import passage_notes, plain, say_passages

DESCRIPTION = "Search an index; no chat model is asked."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``retrieve``."""
    parser.add_argument("question")
    add_options(parser, *PIPELINE, "--explain", "--json")


def run(arguments: argparse.Namespace) -> None:
    """Search and print."""
    STATUS.show("searching ...")
    from rag_kit.retrieval.compose import call_retriever
    from rag_kit.text import check_question

    question = check_question(arguments.question, example="rag-kit retrieve 'How ...?' --index DIR")
    with open_retriever(arguments) as (_, retriever):
        documents = call_retriever(retriever, question, **call_arguments(arguments))
    if arguments.json:
        say_json({"question": question, "documents": [plain(each) for each in documents]})
        return
    say_passages(documents, question if arguments.explain else None)
    for note in passage_notes(documents):
        hint(f"note: {note}")
