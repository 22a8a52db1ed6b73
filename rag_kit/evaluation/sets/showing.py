"""A set in Jupyter: what it holds, and its first questions. Texts of a set stay text."""

from __future__ import annotations

import html
from collections import Counter
from typing import TYPE_CHECKING

from rag_kit.documents import clean_text

if TYPE_CHECKING:
    from rag_kit.evaluation.sets.evaluation_set import EvaluationSet

_ROWS = 10
_WIDTH = 160


def to_html(examples: EvaluationSet) -> str:
    """An HTML table; markup in questions is escaped, control characters are shown."""
    fields = ("reference", "answers", "relevant", "spans", "history")
    counts = [
        f"{sum(1 for example in examples if getattr(example, name))} with {name}"
        for name in fields
        if any(getattr(example, name) for example in examples)
    ]
    unanswerable = sum(example.answerable is False for example in examples)
    counts += [f"{unanswerable} not answerable"] if unanswerable else []
    tags = Counter((name, value) for example in examples for name, value in example.tags.items())
    shown = ", ".join(f"{name}={value}: {count}" for (name, value), count in tags.most_common(8))
    rows = "".join(
        f"<tr><td>{_cell(example.id)}</td><td>{_cell(example.question)}</td>"
        f"<td>{_cell(example.reference or ' / '.join(example.answers) or '–')}</td></tr>"
        for example in examples.examples[:_ROWS]
    )
    more = f"<p>and {len(examples) - _ROWS} more</p>" if len(examples) > _ROWS else ""
    return (
        f"<div><p><b>{_cell(examples.name)}</b>: {len(examples)} examples"
        f"{''.join(f', {each}' for each in counts)}</p>"
        f"<p>{_cell(shown)}</p><table><thead><tr><th>id</th><th>question</th><th>reference</th></tr></thead>"
        f"<tbody>{rows}</tbody></table>{more}</div>"
    )


def _cell(text: str) -> str:
    short = text if len(text) <= _WIDTH else f"{text[:_WIDTH]}…"
    return html.escape(clean_text(short))
