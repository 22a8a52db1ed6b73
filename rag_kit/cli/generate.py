"""``rag-kit generate``: let a model write an evaluation set from documents or an index."""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_kit.cli import exits
from rag_kit.cli.opening import add_index_argument, index_folder
from rag_kit.cli.output import hint, problem, say, say_json
from rag_kit.errors import NothingGeneratedError

if TYPE_CHECKING:
    from rag_kit.evaluation.generating import GeneratedSet

_DESCRIPTION = """Let a model write questions with answers, gold passages and gold spans, as a set for rag-kit evaluate.
What leaks its answer, cannot be answered from its passage, or repeats another question is dropped and counted. Killed
or stopped, the same command goes on from what is there."""
_KINDS = ("single_hop", "multi_hop")


def add_parser(commands: Any) -> None:
    """Add ``generate``."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "generate", help="write a set of questions from documents or an index", description=_DESCRIPTION
    )
    parser.add_argument(
        "path",
        nargs="?",
        type=Path,
        metavar="PATH",
        help="folder of documents, or a file; else the index is read",
    )
    add_index_argument(parser)
    parser.add_argument(
        "--out", type=Path, required=True, metavar="FILE", help="the set, JSON Lines: a name in .jsonl"
    )
    parser.add_argument("-n", type=int, default=50, metavar="N", help="questions wanted (default 50)")
    parser.add_argument(
        "--kind", action="append", choices=_KINDS, metavar="KIND",
        help="single_hop: one passage answers; multi_hop: two do; may be given twice (default: both)",
    )  # fmt: skip
    parser.add_argument(
        "--language",
        choices=["auto", "en", "zh"],
        default="auto",
        help="ask about passages of one language only",
    )
    parser.add_argument(
        "--per-passage", type=int, default=1, metavar="N", help="questions asked for at once (default 1)"
    )
    parser.add_argument(
        "--seed", type=int, default=0, metavar="N", help="of the draw of passages (default 0)"
    )
    parser.add_argument("--model", metavar="NAME", help="chat model that writes (or RAG_KIT_CHAT_MODEL)")
    parser.add_argument(
        "--base-url", metavar="URL", help="address of an OpenAI-compatible endpoint (or RAG_KIT_BASE_URL)"
    )
    parser.add_argument("--prompts", type=Path, metavar="DIR", help="folder with your own prompt files")
    parser.add_argument(
        "--max-concurrency",
        type=int,
        default=8,
        metavar="N",
        help="passages asked about at a time (default 8)",
    )
    parser.add_argument("--max-calls", type=int, metavar="N", help="model calls allowed")
    parser.add_argument("--max-tokens", type=int, metavar="N", help="tokens allowed, in and out")
    parser.add_argument("--deadline", type=float, metavar="SECONDS", help="time allowed")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace) -> int:
    """Write the set, and print what was kept and what was dropped for what reason.

    Raises:
        InvalidInputError: If there is nothing to ask about, or an argument is wrong.
    """
    from rag_kit.evaluation import generate
    from rag_kit.indexing import DocumentIndex
    from rag_kit.models import chat_model
    from rag_kit.models.chat import describe_model

    llm = chat_model(arguments.model, **({"base_url": arguments.base_url} if arguments.base_url else {}))
    hint(describe_model(llm))
    with ExitStack() as stack:
        if arguments.path is None:
            documents: Any = stack.enter_context(DocumentIndex.open(index_folder(arguments)))
        else:
            documents = arguments.path
        try:
            found = generate(
                documents,
                llm,
                n=arguments.n,
                kinds=arguments.kind or _KINDS,
                language=arguments.language,
                out=arguments.out,
                seed=arguments.seed,
                per_passage=arguments.per_passage,
                prompts=arguments.prompts,
                max_concurrency=arguments.max_concurrency,
                max_calls=arguments.max_calls,
                max_tokens=arguments.max_tokens,
                deadline=arguments.deadline,
            )
        except KeyboardInterrupt:
            hint(f"what is done is kept beside {arguments.out}; the same command goes on from there")
            raise
        except NothingGeneratedError as error:
            if arguments.json:
                say_json({"questions": 0, "dropped": error.dropped, "error": str(error)})
            raise
    _show(found, arguments)
    if found.stopped_by and "=" in found.stopped_by:  # a cap, and not the end of the documents
        problem(found.stopped_by)
        return exits.BUDGET
    return exits.OK


def _show(found: GeneratedSet, arguments: argparse.Namespace) -> None:
    if arguments.json:
        say_json(
            {
                "file": str(arguments.out),
                "questions": len(found),
                "types": {kind: len(part) for kind, part in found.slices("type").items()},
                "dropped": found.dropped,
                "asked": found.asked,
                "stopped_by": found.stopped_by,
                "usage": found.usage,
            }
        )
    else:
        say(found.report())
    hint(f"written to {arguments.out}")
