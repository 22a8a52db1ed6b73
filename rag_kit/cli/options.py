"""Options that several commands share, and what their texts mean."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

from rag_kit.errors import InvalidInputError

DEFAULT_K = 5

#: Graphs that ``--graph`` can name -> builder in rag_kit.graphs.
GRAPHS = {
    "plain": "build_plain_rag",
    "crag": "build_crag",
    "self-rag": "build_self_rag",
    "adaptive": "build_adaptive_rag",
}

#: Options of what searches an index.
PIPELINE = ("--index", "--pipeline", "-k", "--filter", "--embedding-model", "--allow-degraded")
#: Options of what asks a chat model, and of its caps.
MODEL = ("--model", "--base-url", "--max-calls", "--max-tokens", "--deadline")
#: Options of what answers.
ANSWER = (*MODEL, "--graph", "--prompts", "--language")

_SHARED: dict[str, dict[str, Any]] = {
    "--index": {
        "metavar": "DIR",
        "help": "folder or postgresql://USER@HOST/DB?index=NAME (or RAG_KIT_INDEX)",
    },
    "--wait": {"type": float, "default": 0.0, "metavar": "SECONDS", "help": "wait for another writer"},
    "--pipeline": {
        "default": "hybrid",
        "metavar": "NAME",
        "help": "bm25, dense, hybrid (default), or module:object, a retriever of your own (its code is run)",
    },
    "-k": {"type": int, "metavar": "N", "help": f"how many passages (default {DEFAULT_K})"},
    "--filter": {
        "metavar": "JSON",
        "help": "only passages whose metadata match, e.g. '{\"page\": 3}', or those of a folder: "
        '\'{"file": {"$startswith": "contracts/"}}\'',
    },
    "--embedding-model": {"metavar": "NAME", "help": "what the index was built with (default: as recorded)"},
    "--allow-degraded": {
        "action": "store_true",
        "help": "search by keyword alone when the embedding endpoint fails, and say so (default: fail)",
    },
    "--graph": {"choices": sorted(GRAPHS), "default": "plain", "help": "which graph answers (default plain)"},
    "--language": {"choices": ["auto", "en", "zh"], "default": "auto", "help": "language of the prompts"},
    "--model": {"metavar": "NAME", "help": "chat model, e.g. openai:gpt-4o-mini (or RAG_KIT_CHAT_MODEL)"},
    "--base-url": {"metavar": "URL", "help": "an OpenAI-compatible endpoint (or RAG_KIT_BASE_URL)"},
    "--prompts": {"type": Path, "metavar": "DIR", "help": "folder with your own prompt files"},
    "--max-calls": {"type": int, "metavar": "N", "help": "model calls allowed"},
    "--max-tokens": {"type": int, "metavar": "N", "help": "tokens allowed, in and out"},
    "--deadline": {
        "type": float,
        "metavar": "SECONDS",
        "help": "time allowed; of ask and mcp an answer's (300)",
    },
    "--max-concurrency": {"type": int, "default": 8, "metavar": "N", "help": "questions at a time (8)"},
    "--explain": {"action": "store_true", "help": "show why each passage is there"},
    "--quiet": {"action": "store_true", "help": "no progress line"},
    "--json": {"action": "store_true", "help": "print JSON"},
}


def add_options(parser: Any, *flags: str) -> None:
    """Add shared options to a parser or a group of its arguments, by their flags."""
    for flag in flags:
        parser.add_argument(flag, **_SHARED[flag])
    if "--index" in flags:
        parser.set_defaults(index=os.environ.get("RAG_KIT_INDEX") or None)


def given(arguments: argparse.Namespace, *names: str) -> dict[str, Any]:
    """The options among these that were given, for a function that takes them under the same names."""
    found = {name: getattr(arguments, name) for name in names}
    return {name: value for name, value in found.items() if value is not None}


def parse_filter(text: str | None) -> dict[str, Any] | None:
    """The filter given on the command line.

    Raises:
        InvalidInputError: It is no JSON object.
    """
    try:
        value = None if text is None else json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(f"--filter is not JSON ({error})") from None
    if value is not None and not isinstance(value, dict):
        raise InvalidInputError("--filter is not a JSON object; write for example '{\"page\": 3}'.")
    return value
