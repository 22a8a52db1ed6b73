"""Tables written as CSV text: the expected one, and what stands in a code fence."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rag_kit.errors import InvalidInputError

if TYPE_CHECKING:
    from rag_kit.evaluation.examples import Example

MOST = 2_000_000
_FENCED = re.compile(r"\s*(`{3,}|~{3,})[^\n`]*\n(.*?)\n?\s*\1\s*", re.DOTALL)


def unfence(text: str) -> str:
    """What stands in a code fence, when the fence is all there is.

    Example:
        >>> unfence("```csv\\na,b\\n```")
        'a,b'
    """
    fenced = _FENCED.fullmatch(text) if text.lstrip()[:3] in ("```", "~~~") else None
    return fenced[2] if fenced else text


def reference_table(example: Example) -> str:
    """``metadata["reference_table"]`` (CSV text, or a list of rows as dicts), else the reference, as CSV text.

    Raises:
        InvalidInputError: If it is neither.
    """
    table = example.metadata.get("reference_table")
    if table is None:
        return unfence(example.reference or "")
    if isinstance(table, str):
        return table
    rows = isinstance(table, Sequence) and table and all(isinstance(row, Mapping) and row for row in table)
    if not rows:
        raise InvalidInputError(
            f"reference_table is {table!r:.80}; give CSV text, or a list of rows such as {{'id': 1}}"
        )
    names = list(dict.fromkeys(key for row in table for key in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(table)
    return text.getvalue()
