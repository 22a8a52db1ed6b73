"""How a statement changes the sentence that it was written from: numbers, names, opposites, the order of words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence, Set
from difflib import SequenceMatcher
from itertools import pairwise, permutations

from rag_kit.text.citations.tokens import Token, are_opposites, has_alike, is_negation

MIN_CLOSE = 0.6  # least share of words in common, in order, for a statement to be a sentence that was changed
_MIN_CONTEXT = 3  # equal words that a replacement at the beginning or end needs beside it
_MAX_THING = 2  # content words of a part that is one name or one thing
_VOICE = frozenset(["by", "被", "由", "把", "将"])


def find_change(cited: Sequence[Token], stated: Sequence[Token], passage: Set[str]) -> str:
    """Find why a statement says something else than the sentence that has its words: a reason, or "" for none.

    The two are aligned word by word. A word that replaces another between equal words is a change if it is another
    number, another name, an opposite, or from elsewhere in the passage. Words that the passage does not have are a
    paraphrase; where they are the only difference, the reason is "other", since nothing tells whether they fit.
    """
    old_voice, new_voice = (_VOICE.intersection(token.key for token in text) for text in (cited, stated))
    cited, stated = ([t for t in text if t.content or is_negation(t.key)] for text in (cited, stated))
    old_keys, new_keys = [token.key for token in cited], [token.key for token in stated]
    # ("equal" or else, start and end in the sentence, start and end in the statement)
    codes = SequenceMatcher(None, old_keys, new_keys, autojunk=False).get_opcodes()
    surplus = Counter(old_keys)
    surplus.subtract(new_keys)
    # how many words each part has in common, padded at both ends
    equal = [0, *(end - start if kind == "equal" else 0 for kind, start, end, _, _ in codes), 0]
    changes = [code for code in codes if code[0] != "equal"]
    single = sum(any(token.content for token in stated[code[3] : code[4]]) for code in changes) == 1
    for number, (kind, old_start, old_end, new_start, new_end) in enumerate(codes):
        before, after = equal[number], equal[number + 2]
        has_context = len(changes) == 1 or (before and after) or before + after >= _MIN_CONTEXT
        if kind == "equal" or not has_context:
            continue
        old_part, new_part = cited[old_start:old_end], stated[new_start:new_end]
        old_words, new_words = _without_forms(old_part, new_part), _without_forms(new_part, old_part)
        if not old_words or not new_words:
            continue
        at_beginning = old_start == new_start == 0 and after >= _MIN_CONTEXT
        small = max(len(old_words), len(new_words)) <= _MAX_THING and bool((before and after) or at_beginning)
        if reason := _find_replacement(old_words, new_words, surplus, passage, small=small, single=single):
            return reason
    share = len(set(old_keys) & set(new_keys)) / max(1, len(set(new_keys)))
    is_reordered = share >= MIN_CLOSE and old_voice == new_voice and _have_swapped_words(cited, stated)
    return "order" if is_reordered else ""


def _have_swapped_words(cited: list[Token], stated: list[Token]) -> bool:
    """Tell whether two words were swapped: each has the neighbour that the other has in the sentence.

    Equal words after both do not count for both: then what follows them was swapped.
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
    """Map each content word or name that occurs once to the words before and after it."""
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
    """Keep the content words of which the other part has no form ("invent" for "inventor")."""
    keys = {token.key for token in other if token.content and not token.name}
    return [token for token in part if token.content and (token.name or not has_alike(token.key, keys))]


def _find_replacement(
    old: list[Token], new: list[Token], surplus: Counter[str], passage: Set[str], *, small: bool, single: bool
) -> str:
    """Find why the words of a statement that replace words of the sentence say something else: a reason, or "".

    Args:
        surplus: How many times more often the sentence has a word than the statement.
        small: One name or thing replaces one other.
        single: Nothing else is new in the statement.
    """
    # words that the statement has more often than the sentence
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
    foreign = [
        t
        for t in new
        if (t.thing or named) and not t.value and t.key not in passage and not has_alike(t.key, known)
    ]
    only_change = small and single and all(token.thing for token in new)
    return "other" if foreign and (things or only_change) else ""
