"""Permission in a text: whether it allows or forbids something, in whatever words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rag_kit.text.citations.tokens import Token, is_negation
from rag_kit.text.language import word_set

_PERMITTING = word_set("may can allow permit 可 可以 能 能够 允许 准许 许可 有权 darf erlaubt gestattet")
_FORBIDDING = word_set("prohibit forbid forbidden ban 禁 禁止 严禁 禁用 verboten untersagt")
_MODAL_AND_NOT = word_set("cannot can't mustn't 不得 不能 不可 不准 不许 请勿 切勿 勿")
_BEFORE_NOT = word_set("may can must shall should darf")
_NOBODY = word_set("no nobody none kein")
_NEAR = 2  # tokens before a word among which its negation is, as in "not be allowed"


class Stance(NamedTuple):
    """A text, whether it permits (True) or forbids (False) something, and its tokens that do not say so.

    ``permits`` is None, and ``rest`` the whole text, if it does neither, or both, or negates something else.
    """

    text: Sequence[Token]
    permits: bool | None
    rest: Sequence[Token]


def read_stance(text: Sequence[Token]) -> Stance:
    """Read whether a text permits or forbids something.

    Example:
        >>> from rag_kit.text.citations.tokens import tokens
        >>> [read_stance(tokens(text)).permits for text in ("You may not smoke.", "吸烟不被禁止", "He smokes.")]
        [False, True, None]
    """
    keys = [token.key for token in text]
    permissions: set[bool] = set()
    used: set[int] = set()  # positions of the words that permit, forbid or negate these
    for position, key in enumerate(keys):
        negations = _negations_of(keys, position)
        if key in _PERMITTING or (key in _BEFORE_NOT and negations):
            permissions.add(not negations)
        elif key in _FORBIDDING:
            permissions.add(bool(negations))
        elif key in _MODAL_AND_NOT:  # is a negation itself
            permissions.add(False)
            negations = []
        else:
            continue
        used |= {position, *negations}
    rest = [token for position, token in enumerate(text) if position not in used]
    if len(permissions) != 1 or any(is_negation(token.key) for token in rest):
        return Stance(text, None, text)
    return Stance(text, permissions.pop(), rest)


def _negations_of(keys: Sequence[str], position: int) -> list[int]:
    """Return the positions of what negates a word: "not" behind a modal, one shortly before it, or a first "nobody"."""
    if keys[position] in _BEFORE_NOT and keys[position + 1 : position + 2] in (["not"], ["nicht"]):
        return [position + 1]
    near = [n for n in range(max(0, position - _NEAR), position) if is_negation(keys[n])]
    return near or ([0] if position and keys[0] in _NOBODY else [])
