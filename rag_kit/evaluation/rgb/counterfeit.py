"""A wrong answer of the same form as the right one, chosen by a fixed draw."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

from rag_kit.text import fold

_DIGITS = re.compile(r"\d+")
_CJK = re.compile(r"[\u3400-\u9fff]")


def form(text: str) -> tuple[str, ...]:
    """What an answer looks like: where numbers stand, the script, capitals, how many words.

    Example:
        >>> form("12 May 2001") == form("3 June 1999"), form("Ada") == form("1815"), form("Ada") == form("a pump")
        (True, False, False)
    """
    shape = _DIGITS.sub("0", text)
    if _CJK.search(text):
        return ("zh", re.sub(r"[^\d]", "", shape), str(min(len(text), 8) // 3))
    words = shape.split()
    capitals = "".join("A" if word[:1].isupper() else "0" if word[:1].isdigit() else "a" for word in words)
    return ("en", capitals[:6])


def wrong_answer(right: Sequence[str], pool: Sequence[str], passages: Sequence[str], draw: str) -> str | None:
    """Another answer of the set in the form of the right one; else the right one with other numbers; else ``None``.

    Nothing that a passage holds already, and nothing that the right answer holds or is held by.

    Args:
        right: The right answer in its ways to be written.
        pool: Answers to choose from.
        passages: Where it will stand.
        draw: Decides the choice.

    Example:
        >>> wrong_answer(["1815"], ["1912", "Ada"], ["Ada was born in 1815."], "0:q1")
        '1912'
        >>> wrong_answer(["3 bar"], [], ["It opens at 3 bar."], "0:q1")
        '4 bar'
    """
    known = fold("\n".join(passages))
    rights = [fold(each) for each in right]
    wanted = form(right[0])
    fit = {
        each
        for each in pool
        if form(each) == wanted
        and fold(each) not in known
        and not any(fold(each) in one or one in fold(each) for one in rights)
    }
    if fit:
        return min(
            fit, key=lambda each: hashlib.sha256(f"{draw}:{each}".encode("utf-8", "surrogatepass")).digest()
        )
    changed = _DIGITS.sub(_other, right[0])
    return changed if changed != right[0] and fold(changed) not in known else None


def _other(match: re.Match[str]) -> str:
    """Another number of as many digits."""
    digits = match[0]
    if len(digits) > 18:
        return digits
    number = int(digits) + 1
    return str(number).zfill(len(digits)) if len(str(number)) <= len(digits) else str(int(digits) - 1)
