"""A prompt as Jupyter shows it."""

from __future__ import annotations

import html
from string import Formatter
from typing import Any

from langchain_core.prompts import (
    AIMessagePromptTemplate,
    HumanMessagePromptTemplate,
    SystemMessagePromptTemplate,
)

_ROLE_OF: dict[type, str] = {
    SystemMessagePromptTemplate: "system",
    HumanMessagePromptTemplate: "user",
    AIMessagePromptTemplate: "model",
}


def render_html(prompt: Any) -> str:
    """Draw a prompt for Jupyter: a head line, then each role with its text, variables marked.

    Args:
        prompt: The `PromptTemplate`.

    Returns:
        HTML without scripts; every text of the file escaped.
    """
    known = prompt.metadata or {}
    schema = prompt.output_schema
    output = schema.__name__ if isinstance(schema, type) else (schema or {}).get("title", "text")
    head = (
        f"<b>{html.escape(prompt.title)}</b> version {html.escape(str(known.get('version', '?')))} "
        f"<code>{html.escape(str(known.get('hash', '')))}</code> &rarr; "
        f"<code>{html.escape(str(output))}</code>"
        f"<br>{html.escape(prompt.description)}"
    )
    rows = []
    for message in prompt.messages:
        role = _ROLE_OF.get(type(message), getattr(message, "type", "message"))
        template = getattr(getattr(message, "prompt", None), "template", None)
        text = (
            _marked(template, prompt)
            if template is not None
            else html.escape(str(getattr(message, "content", "")))
        )
        rows.append(
            f"<tr><td style='vertical-align:top'><b>{html.escape(str(role))}</b></td>"
            f"<td style='text-align:left;white-space:pre-wrap'>{text}</td></tr>"
        )
    return f"<div>{head}<table>{''.join(rows)}</table></div>"


def _marked(template: str, prompt: Any) -> str:
    """A template's text as HTML, with its variables in colour."""
    parts = []
    for literal, name, _, _ in Formatter().parse(template):
        parts.append(html.escape(literal))
        if name is not None:
            note = html.escape(prompt.inputs.get(name, ""), quote=True)
            parts.append(f"<mark title='{note}'>{{{{{html.escape(name)}}}}}</mark>")
    return "".join(parts)
