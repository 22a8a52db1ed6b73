"""Searched text of an index: a chunk below its titles, and passages alone unless a filter asks for more."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from rag_kit.documents import Filter, validate_filter
from rag_kit.documents.explanation import SITUATION

#: Metadata key of a row that was made of passages, such as a summary, and says of what kind it is.
REPRESENTATION = "representation"
#: Value of that key in a summary of a tree (`build_raptor`), whose other data stand under a key of the same name.
RAPTOR = "raptor"
# A summary lacks the fields in which its passages differ, so "$ne" or "$exists" would pass: the tree's retriever alone
# looks at every passage below it.
_NO_TREE = {"$not": {REPRESENTATION: RAPTOR, RAPTOR: {"$exists": True}}}
# Long titles, alike in every chunk of a document, hide what sets the chunks apart (docs/benchmarks.md): titles may have
# 60 characters in all, or as many as a tenth of the text.
_MAX_TITLES, _TITLES_SHARE = 60, 10
# A letter or digit that goes on with a word; in Chinese, Japanese, Korean and Thai no blank parts a name from the rest.
_IN_WORD = r"[^\W_\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]"


def searched_text(text: str, metadata: Mapping[str, Any]) -> str:
    """Return the text that is analysed for keywords instead of a chunk's own.

    Metadata ``title`` and each heading of ``heading`` (``"A > B"``) come first, on a line of their own. Titles that the
    text contains are left out, for twice they would only weigh more, and so are those too long beside the text. A
    situating sentence comes after them, on a line of its own.

    Example:
        >>> searched_text("Every ten hours.", {"title": "Orion handbook", "heading": "Orion handbook > Oil"})
        'Orion handbook > Oil\\nEvery ten hours.'
        >>> searched_text("## Oil\\n\\nEvery ten hours.", {"heading": "Oil"})
        '## Oil\\n\\nEvery ten hours.'
    """
    return _put_below_titles(text, metadata, max(_MAX_TITLES, len(text) // _TITLES_SHARE))


def embedded_text(text: str, metadata: Mapping[str, Any]) -> str:
    """Return the text that is embedded instead of a chunk's own: as `searched_text`, but a short text has no titles.

    Where titles are more than half as long as the text, short lines would come before paragraphs (docs/benchmarks.md).

    Example:
        >>> embedded_text("Every ten hours, and before the first start.", {"title": "Orion handbook"})
        'Orion handbook\\nEvery ten hours, and before the first start.'
        >>> embedded_text("Every ten hours.", {"title": "Orion handbook"})
        'Every ten hours.'
    """
    max_titles = min(len(text) // 2, max(_MAX_TITLES, len(text) // _TITLES_SHARE))
    return _put_below_titles(text, metadata, max_titles)


def embedded_row(text: str, metadata: str) -> str:
    """Return `embedded_text` for a text and its metadata as JSON; the text alone if the JSON is damaged."""
    try:
        fields = json.loads(metadata)
    except (ValueError, RecursionError):
        return text
    return embedded_text(text, fields) if isinstance(fields, dict) else text


def passage_filter(where: Filter | None, derived: bool) -> Filter | None:
    """Restrict a user's filter to passages, unless it has a condition on the field `representation` itself.

    Summaries of a tree never pass. `derived` says whether the index may have rows that were made of passages.

    Example:
        >>> passage_filter({"year": 2020}, derived=True)
        {'year': 2020, 'representation': {'$exists': False}}
        >>> passage_filter({"representation": "summary"}, derived=True)["$and"][0]
        {'representation': 'summary'}
    """
    validate_filter(where)
    where = where or {}
    if not derived:
        return where or None
    if _filters_representation(where):
        return {"$and": [where, _NO_TREE]}
    return {**where, REPRESENTATION: {"$exists": False}}


def _filters_representation(where: Filter) -> bool:
    """Tell whether a filter has a condition on `representation`, at any depth."""
    inner_filters = [*where.get("$and", ()), *where.get("$or", ()), where.get("$not", {})]
    return REPRESENTATION in where or any(_filters_representation(inner) for inner in inner_filters if inner)


def _put_below_titles(text: str, metadata: Mapping[str, Any], max_titles: int) -> str:
    """Put title and headings, of ``max_titles`` characters at most, and a situating sentence above a text."""
    title, heading = metadata.get("title"), metadata.get("heading")
    titles = [title] if isinstance(title, str) else []
    titles += heading.split(" > ") if isinstance(heading, str) else []
    folded_text, title_line = text.casefold(), ""
    for name in dict.fromkeys(titles):  # each once
        longer_line = f"{title_line} > {name}" if title_line else name
        is_short_enough = len(longer_line) <= max_titles
        if is_short_enough and name.strip() and not _has_words(folded_text, name.casefold()):
            title_line = longer_line
    lines = [title_line, text] if title_line else [text]
    situation = metadata.get(SITUATION)
    if isinstance(situation, str) and situation and REPRESENTATION not in metadata:
        lines.insert(-1, situation)  # above the text
    return "\n".join(lines)


def _has_words(text: str, words: str) -> bool:
    """Tell whether a text has some words as whole words; "oil" is in "oil, hot", but not in "boiling"."""
    return re.search(rf"(?<!{_IN_WORD}){re.escape(words)}(?!{_IN_WORD})", text) is not None
