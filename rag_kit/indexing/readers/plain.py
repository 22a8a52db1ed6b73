"""Markdown, plain text and notebooks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from rag_kit.indexing.readers.encodings import decode
from rag_kit.indexing.readers.parts import Context, Part, Unreadable
from rag_kit.indexing.readers.records import load_json

_DATA_URI = re.compile(r"data:[a-zA-Z0-9.+/-]+;base64,[A-Za-z0-9+/=\s]{40,}")
_FRONT_TITLE = re.compile(r"\A---\n(?:.*\n){0,60}?title:[ \t]*(.+)\n(?:.*\n){0,200}?---\n")
_HEADING = re.compile(r"^ {0,3}#{1,6}[ \t]+(.+?)[ \t]*#*$|^(?=\S)(.+)\n={3,}[ \t]*$", re.M)
_FENCE = re.compile(r"^(```|~~~).*?^\1", re.M | re.S)
_OUTPUT_CHARACTERS = 2_000


def markdown_title(text: str) -> str:
    """Title of a markdown text: that of its front matter, else its first heading.

    Example:
        >>> markdown_title("Intro\\n\\n# The lake #\\n")
        'The lake'
    """
    front = _FRONT_TITLE.match(text)
    if front:
        return front.group(1).strip().strip("\"'")[:300]
    heading = _HEADING.search(_FENCE.sub("", text[:20_000]))
    return (heading.group(1) or heading.group(2)).strip()[:300] if heading else ""


def read_md(data: bytes, context: Context) -> Iterator[Part]:
    """One part: the text as it stands, without images written into it as base64."""
    text = _DATA_URI.sub("", decode(data))
    yield Part(text, {"title": markdown_title(text)})


def read_txt(data: bytes, context: Context) -> Iterator[Part]:
    """One part: the text as it stands."""
    yield Part(decode(data))


def read_ipynb(data: bytes, context: Context) -> Iterator[Part]:
    """One part: markdown cells, code cells in fences, the text of outputs (cut at 2,000 characters a cell)."""
    notebook = load_json(decode(data), "it")
    if not isinstance(notebook, dict) or not isinstance(notebook.get("cells"), list):
        raise Unreadable("it has no list of cells", "Upgrade it with: jupyter nbconvert --to notebook")
    cells = notebook["cells"]
    language = str(_field(notebook, "metadata", "language_info", "name"))
    language = language if language.isalnum() else "python"
    blocks: list[str] = []
    for cell in cells:
        source = _join_source(_field(cell, "source")).strip("\n")
        if _field(cell, "cell_type") == "code":
            if source.strip():
                blocks.append(f"```{language}\n{source}\n```")
            output = _output_text(_field(cell, "outputs"))
            if output:
                blocks.append(f"```text\n{output}\n```")
        elif source.strip():
            blocks.append(_DATA_URI.sub("", source))
    text = "\n\n".join(blocks)
    yield Part(text, {"title": markdown_title(text)})


def _field(value: Any, *names: str) -> Any:
    """What stands in a JSON object under a path of names; ``""`` where it is not so."""
    for name in names:
        value = value.get(name, "") if isinstance(value, dict) else ""
    return value


def _join_source(source: Any) -> str:
    if isinstance(source, list):
        return "".join(piece for piece in source if isinstance(piece, str))
    return source if isinstance(source, str) else ""


def _output_text(outputs: Any) -> str:
    """The text that a code cell printed or returned, without pictures, cut, and safe inside a fence."""
    texts: list[str] = []
    for output in outputs if isinstance(outputs, list) else []:
        stream = _field(output, "output_type") == "stream"
        texts.append(_join_source(_field(output, "text") if stream else _field(output, "data", "text/plain")))
    text = _DATA_URI.sub("", "\n".join(text.strip("\n") for text in texts if text.strip()))
    return text[:_OUTPUT_CHARACTERS].replace("```", "'''")
