"""What is searched of a chunk: its text, and before it the title and the headings that it stands under."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

_MOST = 600  # characters before the text, for a title is whatever its document says


def searched_text(text: str, metadata: Mapping[str, Any]) -> str:
    """The text that is embedded and analysed for keywords in place of a chunk's own.

    Metadata ``title`` and each heading of ``heading`` (``"A > B"``) come first, on a line of their own, without those
    that the text has in it: twice would only make them heavier.

    Args:
        text: The chunk's text, which is what a search returns.
        metadata: Its metadata.

    Example:
        >>> searched_text("Every ten hours.", {"title": "Orion handbook", "heading": "Orion handbook > Oil"})
        'Orion handbook > Oil\\nEvery ten hours.'
        >>> searched_text("## Oil\\n\\nEvery ten hours.", {"heading": "Oil"})
        '## Oil\\n\\nEvery ten hours.'
    """
    title, heading = metadata.get("title"), metadata.get("heading")
    names = [title] if isinstance(title, str) else []
    names += heading.split(" > ") if isinstance(heading, str) else []
    lower = text.casefold()
    before = " > ".join(
        name for name in dict.fromkeys(" ".join(name.split()) for name in names) if not _holds(lower, name)
    )
    return f"{before[:_MOST]}\n{text}" if before else text


def _holds(lower: str, name: str) -> bool:
    """Whether a name stands in a text in lower case, and not only as a part of a longer word."""
    pattern = rf"(?<![a-z0-9]){re.escape(name.casefold())}(?![a-z0-9])"
    return re.search(pattern, lower) is not None


def searched_row(text: str, metadata: str, *, titles: bool) -> str:
    """As `searched_text`, for a row of a store; its text alone without ``titles``, or where its JSON is damaged."""
    if not titles:
        return text
    try:
        fields = json.loads(metadata)
    except (ValueError, RecursionError):
        return text
    return searched_text(text, fields) if isinstance(fields, dict) else text
