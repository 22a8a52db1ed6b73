"""Show what is found, and why; no chat model is asked."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rag_kit.cli.options import PIPELINE, add_options, call_arguments, open_retriever
from rag_kit.cli.output import STATUS, hint, say, say_json
from rag_kit.documents.display import cut, one_line

if TYPE_CHECKING:
    from langchain_core.documents import Document

    from rag_kit.concurrency.notes import Notes


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``retrieve``."""
    parser.add_argument("question")
    add_options(parser, *PIPELINE, "--explain", "--json")


def run(arguments: argparse.Namespace) -> None:
    """Search and print."""
    STATUS.show("searching ...")
    from rag_kit.concurrency.notes import use_notes
    from rag_kit.retrieval.inner import call_retriever
    from rag_kit.text import check_question

    question = check_question(arguments.question, example="rag-kit retrieve 'How ...?' --index DIR")
    with open_retriever(arguments) as (_, retriever):
        with use_notes() as run:
            documents = call_retriever(retriever, question, **call_arguments(arguments))
    noted = all_notes(run, documents)
    if arguments.json:
        found = [plain_document(document) for document in documents]
        say_json({"question": question, "documents": found, **noted})
        return
    say_passages(documents, explain=arguments.explain, whole=not noted["unsearched"])
    for note in noted["notes"]:
        hint(f"note: {note}")


def all_notes(run: Notes, documents: list[Document]) -> dict[str, list[str]]:
    """Collect the notes of a search and of the passages found, and what was not searched."""
    from rag_kit.documents.provenance import passage_notes

    notes = list(dict.fromkeys([*run.texts, *passage_notes(documents)]))
    return {"notes": notes, "unsearched": run.unsearched}


def say_passages(documents: list[Document], *, explain: bool = False, whole: bool = True) -> None:
    """Print the source and the beginning of each passage, or where and for which query it was found.

    ``whole`` tells whether all was searched that was to be.
    """
    from rag_kit import documents as parts

    if not documents:
        why = "no passage shares a word with the question and matches the filter, if one was given."
        why = why if whole else "not everything could be searched; the notes say what."
        say(f"Nothing was found: {why}")
    elif explain:
        say(str(parts.explain(documents)))
    else:
        for number, document in enumerate(documents, 1):
            say(f"[{number}] {place_of(document.metadata)}", style="bold")
            say(shorten(document.page_content), indent="    ")


def place_of(metadata: Mapping[str, Any]) -> str:
    """Write the source of a passage as one line: file, page or slide or sheet, heading, picture."""
    source = metadata.get("file") or metadata.get("source") or metadata.get("title") or "(no source)"
    names = [name for name in ("page", "slide", "sheet") if metadata.get(name) is not None]
    pages = [f"{name} {metadata[name]}" for name in names]
    return one_line(
        " · ".join(map(str, filter(None, [source, *pages, metadata.get("heading"), metadata.get("picture")])))
    )


def shorten(text: str, width: int = 160) -> str:
    """Cut a text to one line of at most ``width`` columns."""
    return cut(one_line(text), width, "…")


def plain_document(document: Document) -> dict[str, Any]:
    """Turn a document into JSON."""
    from rag_kit.documents import PROVENANCE_KEY, get_provenance
    from rag_kit.documents.identity import to_plain

    metadata = {**document.metadata, PROVENANCE_KEY: get_provenance(document)}
    value: dict[str, Any] = to_plain({"id": document.id, "text": document.page_content, "metadata": metadata})
    return value
