"""Write a set of questions from documents or an index, for rag-kit evaluate.

A model writes questions with answers, gold passages and gold spans. What leaks its answer, cannot be answered from its
passage, or repeats another question is dropped and counted. Killed or stopped, the same command goes on from there.
"""

from __future__ import annotations

import argparse
from contextlib import nullcontext
from pathlib import Path

from rag_kit.cli import exits
from rag_kit.cli.options import CAPS, MODEL, add_options, index_name, make_chat_model, pick
from rag_kit.cli.output import hint, problem, say, say_json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``generate``."""
    add = parser.add_argument
    add("path", nargs="?", type=Path, metavar="PATH", help="folder of documents, or a file; else the index")
    add("--out", type=Path, required=True, metavar="FILE", help="the set, JSON Lines: a name in .jsonl")
    add("-n", type=int, default=50, metavar="N", help="questions wanted (default 50)")
    add("--language", choices=["auto", "en", "zh"], default="auto", help="ask about passages of one only")
    add_options(parser, "--index", "--prompts", "--max-concurrency", *MODEL, "--json")


def run(arguments: argparse.Namespace) -> int:
    """Write the set of questions, print a report, and return the exit code."""
    from rag_kit.evaluation.generating import NO_MORE_PASSAGES, generate
    from rag_kit.indexing import DocumentIndex

    llm, described = make_chat_model(arguments)
    hint(described)
    settings = pick(arguments, "n", "language", "out", "prompts", "max_concurrency", *CAPS)
    with nullcontext() if arguments.path else DocumentIndex.open(index_name(arguments)) as index:
        questions = generate(arguments.path or index, llm, **settings)
    if arguments.json:
        types = {kind: len(part) for kind, part in questions.slices("type").items()}
        record = {name: getattr(questions, name) for name in ("dropped", "asked", "stopped_by", "usage")}
        say_json({"file": str(arguments.out), "questions": len(questions), "types": types, **record})
    else:
        say(questions.report())
    if questions.stopped_by not in (None, NO_MORE_PASSAGES):  # it is a cap
        problem(questions.stopped_by)
        return exits.BUDGET
    return exits.OK
