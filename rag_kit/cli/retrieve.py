"""Show what is found, and why; no chat model is asked."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
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
    """Search the index for the question, and print the passages found, or JSON."""
    STATUS.show("searching ...")
    from rag_kit.concurrency.notes import use_notes
    from rag_kit.retrieval.inner import call_retriever
    from rag_kit.text import check_question
    from rag_kit.text.language import detect_language

    question = check_question(arguments.question, example="rag-kit retrieve 'How ...?' --index DIR")
    with open_retriever(arguments) as (_, retriever):
        with use_notes() as notes:
            documents = call_retriever(retriever, question, **call_arguments(arguments))
    record = all_notes(notes, documents)
    if arguments.json:
        plain = [plain_document(document) for document in documents]
        say_json({"question": question, "documents": plain, **record})
        return
    language = detect_language(question)
    say_passages(documents, language, explain=arguments.explain, complete=not record["unsearched"])
    say_notes(record["notes"], language)


def all_notes(notes: Notes, documents: list[Document]) -> dict[str, list[str]]:
    """Return the ``"notes"`` on a search and on its passages, and what was left ``"unsearched"``."""
    from rag_kit.documents.provenance import passage_notes

    texts = list(dict.fromkeys([*notes.texts, *passage_notes(documents)]))
    return {"notes": texts, "unsearched": notes.unsearched}


def say_notes(notes: Iterable[str], language: str) -> None:
    """Print notes on standard error in a language, ``en`` or ``zh``."""
    from rag_kit.evaluation.wording import in_language

    for note in notes:
        hint(("说明：" if language == "zh" else "note: ") + in_language(note, language))


def say_passages(
    documents: list[Document], language: str, *, explain: bool = False, complete: bool = True
) -> None:
    """Print source and beginning of each passage, or why it was found (``explain``); say so if there is none."""
    from rag_kit.documents import explain as explain_documents
    from rag_kit.evaluation.wording import in_language

    if not documents:
        why = "no passage shares a word with the question and matches the filter, if one was given."
        why = why if complete else "not everything could be searched; the notes say what."
        say(in_language(f"Nothing was found: {why}", language))
    elif explain:
        say(str(explain_documents(documents)))
    else:
        for number, document in enumerate(documents, 1):
            say(f"[{number}] {place_of(document.metadata, language)}", style="bold")
            say(shorten(document.page_content), indent="    ")


def place_of(metadata: Mapping[str, Any], language: str = "en") -> str:
    """Write the source of a passage as one line: file, page or slide or sheet, heading, picture."""
    from rag_kit.evaluation import wording

    pages = ("page", "slide", "sheet")
    parts = [metadata.get("file") or metadata.get("source") or metadata.get("title") or "(no source)"]
    numbers = {name: metadata[name] for name in pages if metadata.get(name) is not None}
    parts += [wording.say(name, language, n=number) for name, number in numbers.items()]
    parts += [metadata[name] for name in ("heading", "picture") if metadata.get(name)]
    return one_line(" · ".join(map(str, parts)))


def shorten(text: str, width: int = 160) -> str:
    """Cut a text to one line of at most ``width`` columns."""
    return cut(one_line(text), width, "…")


def plain_document(document: Document) -> dict[str, Any]:
    """Turn a document with its provenance into JSON data."""
    from rag_kit.documents import PROVENANCE_KEY, get_provenance
    from rag_kit.documents.identity import to_plain

    metadata = {**document.metadata, PROVENANCE_KEY: get_provenance(document)}
    value: dict[str, Any] = to_plain({"id": document.id, "text": document.page_content, "metadata": metadata})
    return value
