"""Permission in a text: whether it allows or forbids something, in whatever words."""

from __future__ import annotations

from collections.abc import Sequence

from rag_kit.text.citations.tokens import Token, is_negation
from rag_kit.text.language import word_set

_PERMITTING = word_set("may can allow permit 可 可以 能 能够 允许 准许 许可 有权 darf erlaubt gestattet")
_FORBIDDING = word_set("prohibit forbid forbidden ban 禁 禁止 严禁 禁用 verboten untersagt")
_MODAL_AND_NOT = word_set("cannot can't mustn't 不得 不能 不可 不准 不许 请勿 切勿 勿")
_BEFORE_NOT = word_set("may can must shall should darf")
_NEAR = 2  # tokens before a word among which its negation is, as in "not be allowed"


def split_permission(text: Sequence[Token]) -> tuple[bool | None, list[Token]]:
    """Return whether a text permits (True) or forbids (False) something, and its tokens that do not say so.

    None: it does neither, or both, or negates something else.

    Example:
        >>> from rag_kit.text.citations.tokens import tokens
        >>> [split_permission(tokens(text))[0] for text in ("You may not smoke.", "吸烟不被禁止", "He smokes.")]
        [False, True, None]
    """
    rest = list(text)
    found: set[bool] = set()
    for position, token in enumerate(text):
        following = text[position + 1 : position + 2]
        negations = [one for one in text[max(0, position - _NEAR) : position] if is_negation(one.key)]
        if token.key in _BEFORE_NOT and following and following[0].key in ("not", "nicht"):
            negations = [following[0]]
        if position and not negations and text[0].key in ("no", "nobody", "none", "kein"):
            negations = [text[0]]
        if token.key in _PERMITTING or (token.key in _BEFORE_NOT and negations):
            permits = not negations
        elif token.key in _FORBIDDING:
            permits = bool(negations)
        elif token.key in _MODAL_AND_NOT:
            permits, negations = False, []
        else:
            continue
        found.add(permits)
        said = (token, *negations)
        rest = [one for one in rest if not any(one is word for word in said)]
    if len(found) != 1 or any(is_negation(token.key) for token in rest):
        return None, list(text)
    return found.pop(), rest
