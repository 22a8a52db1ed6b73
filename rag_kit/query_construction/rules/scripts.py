"""One Chinese script: rules and values are compared in simplified characters."""

from __future__ import annotations

import re

from rag_kit.text import fold

_HAN = re.compile(r"[\u3400-\u9fff]")


def simplified(text: str) -> str:
    """The text with each traditional character as its simplified one, at the same place.

    Example:
        >>> simplified("研發部 2019年以後 ABC")
        '研发部 2019年以后 ABC'
    """
    return _HAN.sub(_one, text)


def _one(match: re.Match[str]) -> str:
    made = fold(match.group())
    return made if len(made) == 1 else match.group()
