"""Printing: plain lines on stdout, problems on stderr, hostile text made harmless."""

from __future__ import annotations

import json
import re
import sys
from typing import Any

from rag_kit.documents.clean import UNSAFE, clean_text
from rag_kit.errors import RagKitError


def say(text: str = "") -> None:
    """Print a line; control and bidirectional characters of documents are shown, not obeyed."""
    print(clean_text(text))


def problem(text: str) -> None:
    """Print one line of trouble on stderr."""
    print(f"rag-kit: {clean_text(text)}", file=sys.stderr, flush=True)


def hint(text: str) -> None:
    """Print a remark that is not part of the answer, on stderr."""
    print(clean_text(text), file=sys.stderr, flush=True)


def say_json(value: Any) -> None:
    """Print a JSON document; non-ASCII stays readable, but what could steer a terminal is escaped."""
    print(json_text(value))


def json_text(value: Any) -> str:
    r"""JSON whose strings hold no control, bidirectional or lone surrogate characters, only their escapes.

    Example:
        >>> print(json_text("温度 \u202e"))
        "温度 \u202e"
    """
    # outside of strings JSON is ASCII, so whatever is unsafe stands in a string and may be escaped there
    return UNSAFE.sub(_json_escape, json.dumps(value, ensure_ascii=False, indent=2))


def _json_escape(match: re.Match[str]) -> str:
    return json.dumps(match.group())[1:-1]


def one_line(error: BaseException) -> str:
    """An exception as one line; one that rag_kit did not raise on purpose is named as unexpected."""
    text = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, RagKitError):
        return text
    return f"unexpected {type(error).__name__}: {text} (RAG_KIT_DEBUG=1 shows where)"
