"""Printing: plain lines on stdout, problems on stderr, hostile text made harmless."""

from __future__ import annotations

import json
import sys
from typing import Any

from rag_kit.documents import clean_text
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
    """Print a JSON document; non-ASCII stays readable."""
    print(json.dumps(value, ensure_ascii=False, indent=2))


def one_line(error: BaseException) -> str:
    """An exception as one line; one that rag_kit did not raise on purpose is named as unexpected."""
    text = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, RagKitError):
        return text
    return f"unexpected {type(error).__name__}: {text} (RAG_KIT_DEBUG=1 shows where)"
