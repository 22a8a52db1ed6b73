"""One statement against the passages that it cites: the best quote, and whether it says the same."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence, Set
from difflib import SequenceMatcher
from functools import cached_property
from itertools import pairwise, permutations
from typing import Literal, NamedTuple

from rag_kit.text.citations.tokens import Token, are_alike, are_opposites, is_negation, tokens
from rag_kit.text.language import fold, same_language
from rag_kit.text.sentences import sentences

_MAX_SENTENCES = 2000
_MIN_COVERED = 0.5  # share of a statement's content that the quote, or what it refers back to, must hold
_CONTRIBUTES = 0.25
_MIN_CONTEXT = 4  # words beside a part at an end that must be the same for it to stand in the same place
_MAX_THING = 2  # content words of a part that is one name or one thing
_COUNTED_WITHIN = 3  # content words within which what a number counts stands beside it
_NOT_WORD = re.compile(r"[\W_]+")
_CLAUSE = re.compile(r"[，；：]|[,;:](?=\s)")
_MARK = re.compile(r"\s?\[\d{1,4}(?:[,，–-] ?\d{1,4})*\]")
_VOICE = frozenset(["by", "被", "由", "把", "将"])


class Verdict(NamedTuple):
    """Whether a passage supports a statement, by which span, and why."""

    score: float
    reason: str
    start: int
    end: int

    @property
    def status(self) -> Literal["supported", "unsupported", "undecided"]:
        """What the reason means."""
        if self.reason in ("verbatim", "covered"):
            return "supported"
        return "undecided" if self.reason in ("language", "other") else "unsupported"


class Source:
    """A passage prepared for many statements: its sentences, their tokens, and all its content words."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def spans(self) -> list[tuple[int, int]]:
        """Where its sentences begin and end."""
        return [(sentence.start, sentence.end) for sentence in sentences(self.text)[:_MAX_SENTENCES]]

    @cached_property
    def tokens(self) -> list[list[Token]]:
        """The tokens of each sentence."""
        return [tokens(_MARK.sub("", self.text[start:end])) for start, end in self.spans]

    @cached_property
    def keys(self) -> list[set[str]]:
        """The content words of each sentence."""
        return [_content_keys(sentence) for sentence in self.tokens]

    @cached_property
    def letters(self) -> list[str]:
        """Each sentence as `_letters` gives it."""
        return [_letters(self.text[start:end]) for start, end in self.spans]

    def best_sentences(self, statement: str, stated: list[Token]) -> tuple[int, range]:
        """The number of the sentence that has most of a statement's words, and the range to quote.

        The range holds that sentence, and a neighbour of it that has further words of the statement.
        """
        letters, keys = _letters(statement), _content_keys(stated)
        for place, sentence in enumerate(self.letters):
            if letters in sentence:
                return place, range(place, place + 1)
        shared = [keys & sentence for sentence in self.keys]
        places = range(len(shared))
        best = max(places, key=lambda place: (len(shared[place]), -abs(len(self.keys[place]) - len(keys))))
        near = [place for place in (best - 1, best + 1) if place in places and shared[place] - shared[best]]
        return best, range(min([best, *near]), max([best, *near]) + 1)

    def best_clause(self, place: int, stated: list[Token]) -> list[Token]:
        """The part of a sentence between commas that has most of a statement's words."""
        start, end = self.spans[place]
        keys = _content_keys(stated)
        clauses = [tokens(part) for part in _CLAUSE.split(_MARK.sub("", self.text[start:end]))]
        return max(clauses, key=lambda clause: (len(keys & _content_keys(clause)), -len(clause)))


def judge(statement: str, sources: Sequence[Source]) -> list[Verdict]:
    """Judge a statement without its marks against each passage that it cites; several may support it together."""
    verdicts = [_judge_against(statement, source) for source in sources]
    if len(sources) < 2 or any(verdict.status == "supported" for verdict in verdicts):
        return verdicts
    quotes = [source.text[start:end] for source, (*_, start, end) in zip(sources, verdicts, strict=True)]
    together, _ = _compare_words(tokens(_MARK.sub("", statement)), tokens(_MARK.sub("", "\n".join(quotes))))
    if together != "covered" or not all(quotes):
        return verdicts
    return [
        verdict._replace(reason=together) if verdict.score >= _CONTRIBUTES else verdict
        for verdict in verdicts
    ]


def _judge_against(statement: str, source: Source) -> Verdict:
    """The verdict on a statement by the best quote of one passage."""
    letters = _letters(statement)
    if not source.spans or not letters:
        return Verdict(0.0, "thin", *(source.spans or [(0, 0)])[0])
    stated = tokens(_MARK.sub("", statement))
    best, places = source.best_sentences(statement, stated)
    start, end = source.spans[places[0]][0], source.spans[places[-1]][1]
    if letters in _letters(source.text[start:end]):
        return Verdict(1.0, "verbatim", start, end)
    if not same_language(statement, source.text):
        return Verdict(0.0, "language", start, end)
    quoted = [token for place in places for token in source.tokens[place]]
    passage = set().union(*source.keys)
    reason, score = _compare_words(stated, quoted, source.keys[0], passage)
    if reason == "covered":
        cited = (source.tokens[best], source.best_clause(best, stated))
        changes = (_find_change(part, stated, passage) for part in cited)
        reason = next(filter(None, changes), "") or _find_other_count(stated, quoted, passage) or reason
    return Verdict(score, reason, start, end)


def _compare_words(
    stated: list[Token], quoted: list[Token], opening: Set[str] = frozenset(), passage: Set[str] = frozenset()
) -> tuple[str, float]:
    """The reason for the verdict, and the share of the statement's content words that the quote has.

    The quote may refer back to what the passage's opening sentence names, in words such as "the company"; words of
    other sentences of the passage are what it says of something else.
    """
    content = list(dict.fromkeys(token for token in stated if token.content))
    keys = {token.key for token in quoted}
    words = [token.key for token in quoted if token.content and not token.number]
    missing = [
        token
        for token in content
        if token.key not in keys and (token.number or not any(are_alike(token.key, word) for word in words))
    ]
    score = 1 - len(missing) / len(content) if content else 0.0
    unknown = [token for token in missing if token.number or token.key not in opening]
    if any(token.number for token in unknown):
        return "number", score
    if any(token.name for token in unknown):
        return "name", score
    if not content or len(unknown) > _MIN_COVERED * len(content):
        return "thin", score
    if sum(token.key in passage for token in unknown) > 1:
        return "changed", score
    new = {token.key for token in stated} - keys
    lost = keys - {token.key for token in stated}
    if any(are_opposites(a, b) for a in new for b in lost):
        return "opposite", score
    return ("negation" if _only_one_negates(stated, quoted) else "covered"), score


def _only_one_negates(stated: list[Token], quoted: list[Token]) -> bool:
    """Whether only one of two texts has a negation, of a word that both have and that it has once."""
    for text, other in ((stated, quoted), (quoted, stated)):
        if any(is_negation(token.key) for token in other):
            continue
        keys, count = {token.key for token in other}, Counter(token.key for token in text)
        for place, token in enumerate(text):
            denied = next((after.key for after in text[place + 1 : place + 3] if after.content), "")
            if is_negation(token.key) and denied in keys and count[denied] == 1:
                return True
    return False


def _find_other_count(stated: list[Token], quoted: list[Token], passage: Set[str]) -> str:
    """The reason "number" where a number counts another thing of the passage than in the quote, or ""."""
    content = [token for token in quoted if token.content]
    for number, counted in pairwise(stated):
        if not number.number or counted.number or counted.name or counted.key not in passage:
            continue
        near = [
            other.key
            for place, token in enumerate(content)
            if token.key == number.key
            for other in content[max(0, place - _COUNTED_WITHIN) : place + _COUNTED_WITHIN + 1]
        ]
        if near and not any(are_alike(counted.key, other) for other in near):
            return "number"
    return ""


def _find_change(cited: list[Token], stated: list[Token], passage: Set[str]) -> str:
    """Why a statement that has the words of a sentence says something else: a reason, or "".

    The two are aligned. Where the words around are the same, what stands in one place must be the same too: another
    number, another name, an opposite, or words that the passage has elsewhere, are another statement. A wording
    of its own, which the passage does not have, is free; where it is the only difference, nothing tells which it is.
    """
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
        old_words, new_words = _drop_alike(cited[a:b], stated[c:d])
        if not old_words or not new_words:
            continue
        inside = (before and after) or (a == c == 0 and after >= _MIN_CONTEXT)
        small = bool(inside) and max(len(old_words), len(new_words)) <= _MAX_THING
        if reason := _find_replacement(old_words, new_words, surplus, passage, small=small, single=single):
            return reason
    same_voice = _VOICE.intersection(old_keys) == _VOICE.intersection(new_keys)
    return "order" if same_voice and _have_changed_places(cited, stated) else ""


def _have_changed_places(cited: list[Token], stated: list[Token]) -> bool:
    """Whether two words changed places: each stands beside what the other stands beside in the sentence.

    Equal words on the right of both do not count for both: then what follows them changed places.
    """
    old, new = _neighbours(cited), _neighbours(stated)
    numbers = {token.key for token in stated if token.number}
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


def _drop_alike(old: list[Token], new: list[Token]) -> tuple[list[Token], list[Token]]:
    """The content words of each of two parts of which the other part has no form."""
    old_words, new_words = ([token for token in part if token.content] for part in (old, new))
    return (
        [token for token in old_words if not any(are_alike(token.key, other.key) for other in new_words)],
        [token for token in new_words if not any(are_alike(token.key, other.key) for other in old_words)],
    )


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
    if any(token.number for token in brought) and any(token.number for token in old):
        return "number"
    if any(token.name for token in brought) and any(token.name for token in old):
        return "name"
    if all(surplus[token.key] <= 0 for token in things or old):
        return ""  # the statement says it elsewhere
    if any(are_opposites(a.key, b.key) for a in new for b in old):
        return "opposite"
    if things and (any(token.key in passage for token in brought) or (small and not brought)):
        return "changed"
    return "other" if small and single and all(token.thing for token in new) else ""


def _content_keys(words: list[Token]) -> set[str]:
    return {token.key for token in words if token.content}


def _letters(text: str) -> str:
    """A text without marks, spaces and punctuation, folded: what is compared word for word."""
    return _NOT_WORD.sub("", fold(_MARK.sub("", text)))
