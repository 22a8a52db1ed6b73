"""The texts of reports and plots in English and Chinese."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def texts() -> dict[str, dict[str, str]]:
    """Texts by language and key."""
    path = files("rag_kit.evaluation") / "reporting" / "assets" / "texts.json"
    by_key: dict[str, list[str]] = json.loads(path.read_text(encoding="utf-8"))
    return {code: {key: pair[n] for key, pair in by_key.items()} for n, code in enumerate(("en", "zh"))}


def say(key: str, language: str, **values: Any) -> str:
    """Return the text of a key with its values filled in; of ``one|many`` the one that fits ``n``.

    Example:
        >>> say("questions_all", "en", n=1), say("questions_all", "zh", n=2)
        ('1 question', '2 个问题')
    """
    singular, _, plural = texts()[language][key].partition("|")
    text = plural if plural and values.get("n") != 1 else singular
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", str(value))
    return text
