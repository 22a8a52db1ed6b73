"""Changes of a statement against the sentence that has most of its words: names, numbers, opposites, the order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence, Set
from difflib import SequenceMatcher
from itertools import pairwise, permutations

from rag_kit.text.citations.tokens import Token, are_opposites, has_alike, is_negation

# share of a statement's words that a sentence has in their order, from which it is that one changed
MIN_CLOSE = 0.6
_MIN_CONTEXT = 3  # words beside a part at an end that must be the same for it to stand in the same place
_MAX_THING = 2  # content words of a part that is one name or one thing
_VOICE = frozenset(["by", "被", "由", "把", "将"])


def find_change(cited: Sequence[Token], stated: Sequence[Token], passage: Set[str]) -> str:
    """Why a statement that has the words of a sentence says something else: a reason, or "".

    The two are aligned. Where the words around are the same, what stands in one place must be the same too: another
    number, another name, an opposite, or words that the passage has elsewhere, are another statement. A wording
    of its own, which the passage does not have, is free; where it is the only difference, nothing tells which it is.
    """
    voices = (cited, stated)
    cited, stated = ([t for t in row if t.content or is_negation(t.key)] for row in voices)
    old_keys, new_keys = [token.key for token in cited], [token.key for token in stated]
    codes = SequenceMatcher(None, old_keys, new_keys, autojunk=False).get_opcodes()
    surplus = Counter(old_keys)
    surplus.subtract(new_keys)
    # the length of what is equal, with one more at both ends
    equal = [0, *(b - a if kind == "equal" else 0 for kind, a, b, _, _ in codes), 0]
    parts = [code for code in codes if code[0] != "equal"]
    single = sum(any(token.content for token in stated[c:d]) for _, _, _, c, d in parts) == 1
    for place, (kind, a, b, c, d) in enumerate(codes):
        before, after = equal[place], equal[place + 2]
        if kind == "equal" or not (len(parts) == 1 or (before and after) or before + after >= _MIN_CONTEXT):
            continue
        old_words = _without_forms(cited[a:b], stated[c:d])
        new_words = _without_forms(stated[c:d], cited[a:b])
        if not old_words or not new_words:
            continue
        inside = (before and after) or (a == c == 0 and after >= _MIN_CONTEXT)
        small = bool(inside) and max(len(old_words), len(new_words)) <= _MAX_THING
        if reason := _find_replacement(old_words, new_words, surplus, passage, small=small, single=single):
            return reason
    old_voice, new_voice = (_VOICE.intersection(token.key for token in row) for row in voices)
    same_voice = old_voice == new_voice
    share = len(set(old_keys) & set(new_keys)) / max(1, len(set(new_keys)))
    swapped = same_voice and share >= MIN_CLOSE and _have_changed_places(cited, stated)
    return "order" if swapped else ""


def _have_changed_places(cited: list[Token], stated: list[Token]) -> bool:
    """Tell whether two words changed places: each stands beside what the other stands beside in the sentence.

    Equal words on the right of both do not count for both: then what follows them changed places.
    """
    old, new = _neighbours(cited), _neighbours(stated)
    numbers = {token.key for token in stated if token.value}
    names = {token.key for token in stated if token.name}
    strict = {word for word in new if word in numbers or names.intersection(word.split())}
    for a, b in permutations(old.keys() & new.keys(), 2):
        if (a in numbers) != (b in numbers) or (b in old[a] and a not in strict):
            continue  # a time and a place, the members of an enumeration, a word and its attribute
        beside = any(word and word == other for word, other in zip(new[a], old[b], strict=True))
        if beside and new[b][0] and new[b][0] == old[a][0]:
            return True
    return False


def _neighbours(text: list[Token]) -> dict[str, tuple[str, str]]:
    """Content word, or name of several words, that occurs once -> those before and after it."""
    words: list[str] = []
    for before, token in pairwise([Token(""), *text]):
        if before.name and token.name:
            words[-1] += f" {token.key}"
        elif token.content:
            words.append(token.key)
    count = Counter(words)
    around = zip(["", *words], words, [*words[1:], ""], strict=False)
    return {word: (before, after) for before, word, after in around if count[word] == 1}


def _without_forms(part: Sequence[Token], other: Sequence[Token]) -> list[Token]:
    """The content words of a part of which another part has no form."""
    keys = {token.key for token in other if token.content and not token.name}
    return [token for token in part if token.content and (token.name or not has_alike(token.key, keys))]


def _find_replacement(
    old: list[Token], new: list[Token], surplus: Counter[str], passage: Set[str], *, small: bool, single: bool
) -> str:
    """Why a statement's content words in a place say something else than the sentence's there: a reason, or "".

    `surplus` counts how many times more the sentence has a word than the statement; `small` is whether one name or
    thing stands for one other, `single` whether nothing else is new in the statement.
    """
    # what the statement says more often than the sentence was brought from elsewhere, or repeated
    brought = [token for token in new if surplus[token.key] < 0]
    things = [token for token in old if token.thing]
    kinds = {token.value.dimension for token in old if token.value}
    if any(token.value and token.value.dimension in kinds for token in brought):
        return "number"
    if any(token.name for token in brought) and any(token.name for token in old):
        return "name"
    if all(surplus[token.key] <= 0 for token in things or old):
        return ""  # the statement says it elsewhere
    if any(are_opposites(a.key, b.key) for a in new for b in old):
        return "opposite"
    if things and any(token.key in passage for token in brought):
        return "changed"
    if things and small and not brought:
        return "moved value" if all(token.value for token in new) else "moved"
    known = {token.key for token in old}
    named = any(token.name for token in old)
    strange = [
        t
        for t in new
        if (t.thing or named) and not t.value and t.key not in passage and not has_alike(t.key, known)
    ]
    alone = small and single and all(token.thing for token in new)
    return "other" if strange and (things or alone) else ""
