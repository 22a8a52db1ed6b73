"""``rag-kit generate``: let a model write an evaluation set from documents or an index."""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_kit.cli import exits
from rag_kit.cli.opening import index_folder, named_model
from rag_kit.cli.options import MODEL, add_options, given
from rag_kit.cli.output import hint, problem, say, say_json

if TYPE_CHECKING:
    from rag_kit.evaluation.generating import GeneratedSet

DESCRIPTION = """Let a model write questions with answers, gold passages and gold spans, as a set for rag-kit evaluate.
What leaks its answer, cannot be answered from its passage, or repeats another question is dropped and counted. Killed
or stopped, the same command goes on from what is there."""
#: Options that `generate` takes under the same name.
_SETTINGS = ("n", "language", "out", "prompts", "max_concurrency", "max_calls", "max_tokens", "deadline")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``generate``."""
    add = parser.add_argument
    add("path", nargs="?", type=Path, metavar="PATH", help="folder of documents, or a file; else the index")
    add("--out", type=Path, required=True, metavar="FILE", help="the set, JSON Lines: a name in .jsonl")
    add("-n", type=int, default=50, metavar="N", help="questions wanted (default 50)")
    add("--language", choices=["auto", "en", "zh"], default="auto", help="ask about passages of one only")
    add_options(parser, "--index", "--prompts", "--max-concurrency", *MODEL, "--json")


def run(arguments: argparse.Namespace) -> int:
    """Write the set, and print what was kept and what was dropped for what reason.

    Raises:
        InvalidInputError: If there is nothing to ask about, or an argument is wrong.
    """
    from rag_kit.evaluation import generate
    from rag_kit.indexing import DocumentIndex

    llm, described = named_model(arguments)
    hint(described)
    with ExitStack() as stack:
        documents: Any = arguments.path
        if documents is None:
            documents = stack.enter_context(DocumentIndex.open(index_folder(arguments)))
        try:
            found = generate(documents, llm, **given(arguments, *_SETTINGS))
        except KeyboardInterrupt:
            hint(f"what is done is kept beside {arguments.out}; the same command goes on from there")
            raise
    say_json(_as_json(found, arguments.out)) if arguments.json else say(found.report())
    hint(f"written to {arguments.out}")
    if found.stopped_by and "=" in found.stopped_by:  # a cap, and not the end of the documents
        problem(found.stopped_by)
        return exits.BUDGET
    return exits.OK


def _as_json(found: GeneratedSet, out: Path) -> dict[str, Any]:
    return {
        "file": str(out),
        "questions": len(found),
        "types": {kind: len(part) for kind, part in found.slices("type").items()},
        "dropped": found.dropped,
        "asked": found.asked,
        "stopped_by": found.stopped_by,
        "usage": found.usage,
    }
