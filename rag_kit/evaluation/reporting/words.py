"""The texts of the report and of the plots, in English and Chinese."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any


def asset(name: str) -> str:
    """The text of one of the files that the page is made of."""
    return (files(__package__) / "assets" / name).read_text(encoding="utf-8").replace("\r\n", "\n")


@cache
def texts() -> dict[str, dict[str, str]]:
    """Language -> key -> text."""
    both: dict[str, list[str]] = json.loads(asset("texts.json"))
    return {
        language: {key: pair[place] for key, pair in both.items()}
        for place, language in enumerate(("en", "zh"))
    }


def say(key: str, language: str, **values: Any) -> str:
    """The text of a key with its places filled; of ``one|many`` the one that fits ``n``.

    Example:
        >>> say("questions_all", "en", n=1), say("questions_all", "zh", n=2)
        ('1 question', '2 个问题')
    """
    one, _, many = texts()[language][key].partition("|")
    text = many if many and values.get("n") != 1 else one
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", str(value))
    return text
