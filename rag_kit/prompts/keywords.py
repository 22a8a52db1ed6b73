"""The schema of keywords for a web search."""

import re
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

MAX_KEYWORDS = 3
MAX_KEYWORD = 120
_BREAKS = re.compile(r"[,，、;；\r\n]+")


def _keywords(value: Any) -> Any:
    """A validator: one line each, none empty, no more than MAX_KEYWORDS; a text is split at its commas."""
    if isinstance(value, str):
        value = _BREAKS.split(value)
    if not isinstance(value, list):
        raise ValueError("must be a list of keywords")
    words = [" ".join(str(word).split())[:MAX_KEYWORD] for word in value if isinstance(word, str | int)]
    kept = list(dict.fromkeys(word for word in words if word))[:MAX_KEYWORDS]
    if not kept:
        raise ValueError("must hold a keyword")
    return kept


class Keywords(BaseModel):
    """What to type into a search engine: at most three keywords; more are cut.

    Example:
        >>> Keywords(keywords=["Henry Feilden", " occupation ", "England", "MP"]).keywords
        ['Henry Feilden', 'occupation', 'England']
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    keywords: Annotated[
        list[str],
        BeforeValidator(_keywords),
        WithJsonSchema({"type": "array", "items": {"type": "string"}}),
    ] = Field(description="One to three keywords or names, the most important first.")
