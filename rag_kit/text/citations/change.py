"""Changes of a statement against the sentence that has most of its words: names, numbers, opposites, the order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence, Set
from difflib import SequenceMatcher
from itertools import pairwise, permutations
from typing import NamedTuple

from rag_kit.text.citations.tokens import Token, are_opposites, has_alike, has_form_or_synonym, is_negation

# share of a statement's words that a sentence has in their order, from which it is that one changed
MIN_CLOSE = 0.6
_NEARLY_ALL = 0.8  # the same, from which the end of both texts is a place, too
_MIN_CONTEXT = 3  # words beside a part at an end that must be the same for it to stand in the same place
_MAX_THING = 2  # content words of a part that is one name or one thing
_HEDGES = frozenset(["约", "大约", "大概", "近", "将近"])  # a value knows that it is near only
VOICE = frozenset(["by", "被", "由", "把", "将"])


def find_change(sentence: Sequence[Token], stated: Sequence[Token], passage: Set[str]) -> str:
    """Return the reason why a statement that has the words of a sentence still says something else, or "".

    The content words and negations of both are aligned. Between equal words, another number, name or thing, an
    opposite, or words from elsewhere in the passage give a reason. Words that the passage does not have may be another
    wording; if they are the only difference, the reason is "other".

    `passage` has the content words of the whole passage, without those of what the sentence refers back to.
    """
    voice, stated_voice = (VOICE.intersection(token.key for token in text) for text in (sentence, stated))
    sentence, stated = _telling_words(sentence), _telling_words(stated)
    sentence, stated = _cut_alike(sentence, stated), _cut_alike(stated, sentence)
    keys, stated_keys = [token.key for token in sentence], [token.key for token in stated]
    surplus = Counter(keys)  # how many times more the sentence has a word than the statement
    surplus.subtract(stated_keys)
    changes = list(_changes(sentence, stated))
    with_new_words = sum(any(token.content for token in change.new) for change in changes)
    share = len(set(keys) & set(stated_keys)) / max(1, len(set(stated_keys)))
    compared = [change for change in changes if len(changes) == 1 or change.is_enclosed(share)]
    for change in compared:
        old, new = _without_forms(change.old, change.new), _without_forms(change.new, change.old)
        # "Bolts are tightened to 5 Nm" says "Tighten bolts to 5 Nm"
        if new == sentence[:1] and new[0].key.isascii() and not new[0].name:
            continue
        in_place = change.is_between or (change.is_first and change.after >= _MIN_CONTEXT)
        is_only_new = in_place and with_new_words == 1
        if reason := _reason_of_replacement(old, new, surplus, passage, in_place, is_only_new):
            return reason
    is_shortened = not any(change.new for change in changes)  # all words are in their order
    may_be_turned = voice == stated_voice and not is_shortened and share >= MIN_CLOSE
    return "order" if may_be_turned and _have_changed_places(sentence, stated) else ""


def _telling_words(text: Sequence[Token]) -> list[Token]:
    """Return the content words and negations of a text, without words such as "about"."""
    content = (token for token in text if token.content or is_negation(token.key))
    return [token for token in content if token.key not in _HEDGES]


class _Change(NamedTuple):
    """Words of a sentence and those that a statement has in their place; either may be none."""

    old: Sequence[Token]
    new: Sequence[Token]
    before: int  # how many equal words are right before them, and how many behind them
    after: int
    is_first: bool  # both texts begin with them
    is_last: bool

    @property
    def is_between(self) -> bool:
        """Whether equal words are on both sides."""
        return self.before > 0 and self.after > 0

    def is_enclosed(self, share: float) -> bool:
        """Tell whether equal words, a `share` of all, show that old and new words are in the same place."""
        is_at_end = self.before > 0 and self.is_last and share >= _NEARLY_ALL
        return self.is_between or is_at_end or self.before + self.after >= _MIN_CONTEXT


def _changes(sentence: Sequence[Token], stated: Sequence[Token]) -> Iterator[_Change]:
    """Align a sentence and a statement, and yield the changes between their equal words."""
    keys, stated_keys = [token.key for token in sentence], [token.key for token in stated]
    blocks = SequenceMatcher(None, keys, stated_keys, autojunk=False).get_opcodes()
    equal_counts = [0, *(end - start if tag == "equal" else 0 for tag, start, end, _, _ in blocks), 0]
    for before, block, after in zip(equal_counts, blocks, equal_counts[2:], strict=False):
        tag, old_start, old_end, new_start, new_end = block
        if tag != "equal":
            old, new = sentence[old_start:old_end], stated[new_start:new_end]
            is_first = old_start == new_start == 0
            is_last = (old_end, new_end) == (len(sentence), len(stated))
            are_names = len(old) == len(new) == 1 and old[0].name and new[0].name
            yield _Change(old, new, before, after + (is_first and are_names), is_first, is_last)


def _cut_alike(text: Sequence[Token], other: Sequence[Token]) -> list[Token]:
    """Cut Chinese words where another text has a part of them as a word: 国际航班 beside 航班 becomes 国际 and 航班."""

    def is_han_word(token: Token) -> bool:
        return token.content and not token.value and token.key > "\u2fff"

    # the dictionary has some compounds whole and others not
    keys = dict.fromkeys(token.key for token in other if is_han_word(token))
    cut: list[Token] = []
    for token in text:
        word = token.key
        parts: list[str] = []
        if len(word) > 2 and is_han_word(token) and word not in keys:
            parts = [key for key in keys if word.startswith(key) or word.endswith(key)]
        if not parts:
            cut.append(token)
            continue
        part = max(parts, key=len)  # of equals the first that the other text has
        pieces = (part, word[len(part) :]) if word.startswith(part) else (word[: -len(part)], part)
        cut += [token._replace(key=piece) for piece in pieces]
    return cut


def _have_changed_places(sentence: list[Token], stated: list[Token]) -> bool:
    """Tell whether two words a and b of a sentence changed places in a statement.

    In the statement a has the left or right neighbour that b has in the sentence, and b the left one of a, as in
    "In May a beat b" and "In May b beat a".
    """
    old, new = _neighbours(sentence), _neighbours(stated)
    values = {token.key for token in stated if token.value}
    names = {token.key for token in stated if token.name}
    values_and_names = {word for word in new if word in values or not names.isdisjoint(word.split())}
    for a, b in permutations(old.keys() & new.keys(), 2):
        if b in old[a] and (a not in values_and_names or (b in new[a] and b not in values_and_names)):
            continue  # members of an enumeration, a word and its attribute: "filter K7", "the K7 filter"
        if old[a] == new[a] or old[b] == new[b]:
            continue  # one has not moved: a word that occurs twice is beside both
        a_is_beside_neighbour_of_b = any(
            word and word == other for word, other in zip(new[a], old[b], strict=True)
        )
        left_of_b, old_left_of_a = new[b][0], old[a][0]
        is_told_by_left = left_of_b in new and left_of_b == old_left_of_a  # not by a word that occurs twice
        if a_is_beside_neighbour_of_b and is_told_by_left and left_of_b in old:
            return True
    return False


def _neighbours(text: list[Token]) -> dict[str, tuple[str, str]]:
    """Map each content word, or name of several words, that occurs once to those left and right of it; "" at an end."""
    words: list[str] = []
    for before, token in pairwise([Token(""), *text]):
        if before.name and token.name:
            words[-1] += f" {token.key}"
        elif token.content:
            words.append(token.key)
    count = Counter(words)
    triples = zip(["", *words], words, [*words[1:], ""], strict=False)
    return {word: (left, right) for left, word, right in triples if count[word] == 1}


def _without_forms(part: Sequence[Token], other: Sequence[Token]) -> list[Token]:
    """Return the content words of `part` without those that have a form in `other`, as "grow" in "grew"; names stay."""
    keys = {token.key for token in other if token.content and not token.name}
    words = (token for token in part if token.content)
    return [token for token in words if token.name or not has_form_or_synonym(token.key, keys)]


def _reason_of_replacement(
    old: list[Token],
    new: list[Token],
    surplus: Counter[str],
    passage: Set[str],
    in_place: bool,
    is_only_new: bool,
) -> str:
    """Return the reason why the words `new` of a statement mean something else than `old` of the sentence, or "".

    `surplus` counts how many times more the sentence has a word than the statement, `passage` has the content words of
    the whole passage; `in_place`: the new words are where the old ones were; `is_only_new`: and nothing else is new.
    """
    if not old or not new:
        return ""
    # words that the statement has more often than the sentence: brought from elsewhere, or repeated
    brought = [token for token in new if surplus[token.key] < 0]
    things = [token for token in old if token.thing]
    has_name = any(token.name for token in old)
    if has_name and any(token.name for token in brought):
        return "name"
    if all(surplus[token.key] <= 0 for token in things or old):
        return ""  # the statement has the old words in another place
    if any(are_opposites(a.key, b.key) for a in new for b in old):
        return "opposite"
    if things and any(token.key in passage for token in brought):
        return "changed"  # into words from elsewhere in the passage
    is_one_for_one = in_place and max(len(old), len(new)) <= _MAX_THING
    if things and is_one_for_one and not brought:
        return "moved value" if all(token.value for token in new) else "moved"
    old_keys = {token.key for token in old}
    # a light verb or preposition is no other thing; Chinese verbs may be one where a name stood
    words = [token for token in new if not token.value]
    may_be_other_thing = [one.key for one in words if one.thing or (has_name and not one.key.isascii())]
    has_own_wording = any(key not in passage and not has_alike(key, old_keys) for key in may_be_other_thing)
    is_other_thing = bool(things) or (is_only_new and any(token.thing for token in new))
    return "other" if has_own_wording and is_other_thing else ""
