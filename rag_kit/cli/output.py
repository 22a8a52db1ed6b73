"""Printing: plain lines on stdout, problems on stderr, hostile text made harmless."""

from __future__ import annotations

import json
import os
import re
import sys
from typing import Any

from rag_kit.documents.clean import UNSAFE, clean_text
from rag_kit.errors import RagKitError


def say(text: str = "") -> None:
    """Print a line; control and bidirectional characters of documents are shown, not obeyed."""
    print(clean_text(text))


def prepare_streams() -> None:
    """Make stdout and stderr take every text: what they cannot show is escaped, a closed one swallows it."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - for the whole process
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def problem(text: str) -> None:
    """Print one line of trouble on stderr; a line break in it, as from a file's name, is shown as one."""
    print(f"rag-kit: {flat(text)}", file=sys.stderr, flush=True)


def hint(text: str) -> None:
    """Print a remark that is not part of the answer, on stderr."""
    print(flat(text), file=sys.stderr, flush=True)


def flat(text: str) -> str:
    r"""A text as one safe line.

    Example:
        >>> print(flat("a\nb"))
        a\nb
    """
    return clean_text(text).replace("\n", "\\n")


def say_json(value: Any) -> None:
    """Print a JSON document; non-ASCII stays readable, but what could steer a terminal is escaped."""
    print(json_text(value, ascii_only=not _unicode(sys.stdout)))


def _unicode(stream: Any) -> bool:
    return str(getattr(stream, "encoding", None) or "utf-8").lower().replace("-", "").startswith("utf")


def json_text(value: Any, *, ascii_only: bool = False) -> str:
    r"""JSON whose strings hold no control, bidirectional or lone surrogate characters, only their escapes.

    Args:
        value: Plain JSON data.
        ascii_only: Escape everything that is not ASCII, for outputs that know nothing else.

    Example:
        >>> print(json_text("温度 \u202e"))
        "温度 \u202e"
    """
    # outside of strings JSON is ASCII, so whatever is unsafe stands in a string and may be escaped there
    return UNSAFE.sub(_json_escape, json.dumps(value, ensure_ascii=ascii_only, indent=2))


def _json_escape(match: re.Match[str]) -> str:
    return json.dumps(match.group())[1:-1]


def one_line(error: BaseException) -> str:
    """An exception as one line; one that is neither the kit's nor the system's is named as unexpected."""
    text = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, RagKitError):
        return text
    if isinstance(error, OSError) and error.strerror:
        return error.strerror + (f": {error.filename}" if error.filename else "")
    return f"unexpected {type(error).__name__}: {text} (RAG_KIT_DEBUG=1 shows where)"
