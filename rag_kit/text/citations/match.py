"""One statement against the passages that it cites: the best quote, and whether it says the same."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from typing import Literal, NamedTuple

from rag_kit.text.citations.change import MIN_CLOSE, find_change
from rag_kit.text.citations.placing import Placed, place_values, says
from rag_kit.text.citations.source import PassageSource, clauses, content_keys, holds, leaves_open, letters_of
from rag_kit.text.citations.tokens import Token, are_equal, are_opposites, has_alike, is_negation, tokens
from rag_kit.text.language import HAN, fold, same_language, word_set

_MAX_UNKNOWN = 0.35  # share of a statement's content that the quote, and what it refers back to, may lack
# share of a statement's words that a sentence has in their order, from which a difference is a change of what it says
_MIN_CLOSE_VALUES = 0.5
_MIN_CLOSE_WORDING = 0.65  # the same, from which a wording of its own may be something else
_MOST_CHANGES = 2  # stretches of other words up to which a statement still counts as a changed sentence
_FEW = 4  # content words of a statement that says too little to be foreign to a passage
_CONTRIBUTES = 0.25
_DENIED_WITHIN = 3  # words after a negation among which the one is that it denies
_WEAK = ("ordinal", "weekday")  # values that a passage without one of their kind may say in other words
_POINTING = word_set(
    "it they he she this these its their his her that the 它 它们 他 她 该 这 这一 这些 此 其 本"
)
_TWO_HAN = re.compile(f"[{HAN}]{{2}}")


class Verdict(NamedTuple):
    """The verdict on a statement: how much of it the passage says, why, and which span of the passage says it."""

    score: float
    reason: str
    start: int
    end: int

    @property
    def status(self) -> Literal["supported", "unsupported", "undecided"]:
        """The status that the reason stands for."""
        if self.reason in ("verbatim", "covered"):
            return "supported"
        return "undecided" if self.reason in ("language", "other", "paraphrase") else "unsupported"


def judge(statement: str, sources: Sequence[PassageSource]) -> list[Verdict]:
    """Judge a statement without its marks against each passage that it cites; several may support it together."""
    verdicts = [_judge_against(statement, source) for source in sources]
    if len(sources) < 2 or any(verdict.status == "supported" for verdict in verdicts):
        return verdicts
    quotes = [source.plain(start, end) for source, (*_, start, end) in zip(sources, verdicts, strict=True)]
    both = PassageSource("\n".join(quotes), "\n".join(source.context for source in sources))
    quoted = [token for sentence in both.tokens for token in sentence]
    together, _ = _compare_words(_in_words_of(tokens(statement), both), quoted)
    if together != "covered" or not all(quotes):
        return verdicts
    return [
        verdict._replace(reason=together) if verdict.score >= _CONTRIBUTES else verdict
        for verdict in verdicts
    ]


def _judge_against(statement: str, source: PassageSource) -> Verdict:
    """Judge a statement by the best quote of one passage."""
    letters = letters_of(statement)
    if not source.spans or not letters.strip():
        return Verdict(0.0, "thin", *(source.spans or [(0, 0)])[0])
    stated = _in_words_of(tokens(statement), source)
    best, numbers = source.best_sentences(statement, stated)
    start, end = source.spans[numbers[0]][0], source.spans[numbers[-1]][1]
    asks = leaves_open(source.plain(*source.spans[best])) and not leaves_open(statement)
    held = holds(letters_of(source.text[start:end]), letters) and not asks
    if held and not _begins_inside(source.text[start:end], statement):
        return Verdict(1.0, "verbatim", start, end)
    if not same_language(statement, source.text):
        return Verdict(0.0, "language", start, end)
    row = source.spans[best][0] in source.rows
    quoted = [token for number in numbers for token in source.tokens[number]]
    parts = [_in_words_of(part, source) for part in clauses(statement)]
    clause = [] if row or len(parts) > 1 else source.best_clause(best, stated)
    reason, score = _compare_words(stated, quoted, source, clause)
    placed = place_values(stated, parts, source.mentions) if reason in ("covered", "paraphrase") else "open"
    if placed == "wrong":
        reason = "number"
    elif held:
        reason, score = "verbatim", 1.0
    if not row and reason != "verbatim":
        reason = _weigh(reason, stated, quoted, source, best, clause, placed)
        if asks and reason in _NOTHING_SAID:
            reason = "paraphrase"
    return Verdict(score, reason, start, end)


def _weigh(
    reason: str,
    stated: Sequence[Token],
    quoted: Sequence[Token],
    source: PassageSource,
    best: int,
    clause: Sequence[Token],
    placed: Placed,
) -> str:
    """Revise the reason by how close a statement is to the sentence `best`: far from it, it is a paraphrase."""
    sentence, known, passage = source.tokens[best], content_keys(source.context_tokens), source.all_keys
    if sentence and sentence[0].key in _POINTING:
        passage -= source.keys[0] - content_keys(sentence)
        known |= source.keys[0]
    core = [token for token in stated if token.key not in known - content_keys(sentence)]
    if reason == "covered":
        found = (find_change(part, stated, passage) for part in (sentence, clause or sentence))
        refuted = {"all": ("moved", "moved value"), "some": ("moved value",)}.get(placed, ())
        reason = next((change for change in found if change and change not in refuted), reason)
    there = content_keys(quoted)
    if reason == "number" and all(t.value or has_alike(t.key, there) for t in core if t.content):
        return reason  # nothing but the number is new
    close, changes = _closeness(core, sentence, with_values=reason != "number")
    if reason == "other" and close < _MIN_CLOSE_WORDING:
        return "covered"
    far = reason in _LEAST and (changes > _MOST_CHANGES or close < _LEAST[reason])
    if far:
        return "paraphrase"
    return "moved" if reason == "moved value" else reason


def _begins_inside(text: str, statement: str) -> bool:
    """Tell whether a Chinese statement may begin inside a word of the text: 产假为15天 in 陪产假为15天."""
    said = fold(statement).rstrip("。.")
    before = fold(text).partition(said)[0]
    return before != fold(text) and bool(_TWO_HAN.fullmatch(before[-1:] + said[:1]))


_LEAST = dict.fromkeys(("name", "changed", "moved", "opposite", "negation", "other"), MIN_CLOSE) | {
    "number": _MIN_CLOSE_VALUES
}
_NOTHING_SAID = ("covered", "changed", "moved", "opposite", "negation", "order")


def _closeness(stated: Sequence[Token], cited: Sequence[Token], *, with_values: bool) -> tuple[float, int]:
    """Return the share of a statement's content words that a sentence has in their order, and the number of changes."""
    old, new = ([t.key for t in row if t.content and (with_values or not t.value)] for row in (cited, stated))
    codes = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    same = sum(end - start for kind, _, _, start, end in codes if kind == "equal")
    changes = sum(kind in ("replace", "insert") for kind, *_ in codes)
    return (same / len(new) if new else 1.0), changes


def _in_words_of(stated: list[Token], source: PassageSource) -> list[Token]:
    """Give each value of a statement the key of the passage's value that supports it."""
    row = []
    for token in stated:
        if token.value:
            same = (key for key, value in source.values.items() if says(value, token.value))
            key = token.key if token.key in source.values else next(same, source.counted.get(token.key))
            token = token._replace(key=key or token.key)
        row.append(token)
    return row


def _compare_words(
    stated: list[Token],
    quoted: list[Token],
    source: PassageSource | None = None,
    clause: Sequence[Token] = (),
) -> tuple[str, float]:
    """Return the reason for the verdict, and the share of the statement's content words that the quote has.

    Words of the passage's first sentence, title and headings are not missing: the quote may refer back to them ("the
    company"). Words that only other sentences have belong to something else.
    """
    headings = content_keys(source.context_tokens) if source else set()
    passage = source.all_keys - headings if source else frozenset()
    has_table = bool(source and source.rows)
    content = list(dict.fromkeys(token for token in stated if token.content))
    keys = content_keys(quoted) | headings
    words = [token.key for token in quoted if token.content and not token.value and not token.name]
    words += [token.key for token in source.context_tokens if not token.value] if source else []
    missing = [
        token
        for token in content
        if token.key not in keys and (token.value or token.name or not has_alike(token.key, words))
    ]
    score = 1 - len(missing) / len(content) if content else 0.0
    if not score:
        thin = len(content) > _FEW or any(token.name or token.value for token in content)
        return ("thin" if thin else "paraphrase"), score
    first_sentence = source.keys[0] if source and not has_table else set()
    unknown = [token for token in missing if token.value or token.key not in first_sentence]
    unknown_kinds = {token.value.dimension for token in unknown if token.value}
    if unknown_kinds and source:
        known_kinds = {mention.value.dimension for mention in source.mentions}
        unknown_kinds -= set(_WEAK) - known_kinds
    if unknown_kinds:
        return "number", score
    if any(token.name for token in unknown):
        return "name", score
    if sum(token.key in passage for token in unknown) > (0 if has_table else 1):
        return "changed", score
    old, new = {token.key for token in quoted}, {token.key for token in stated}
    added = [key for key in new - old if not any(are_equal(key, other) for other in old)]
    if any(are_opposites(key, lost) for key in added for lost in old - new):
        return "opposite", score
    is_of_clause = 2 * len(content_keys(stated) & content_keys(clause)) >= len(content_keys(stated))
    if negated := _negates_alone(stated, clause if is_of_clause else quoted):
        return negated, score
    return ("paraphrase" if len(unknown) > _MAX_UNKNOWN * len(content) else "covered"), score


def _negates_alone(stated: Sequence[Token], quoted: Sequence[Token]) -> str:
    """Return "negation" where one text denies a word that the other affirms, "paraphrase" if it negates more."""
    for text, other in ((stated, quoted), (quoted, stated)):
        denied_by_other = [word for words in _denied(other) for word in words]
        keys_of_other, count = content_keys(other), Counter(token.key for token in text)
        denials = list(_denied(text))
        for words in denials:
            always_denied = count[words[0]] == sum(words[0] == first for first, *_ in denials)
            denied_by_both = any(has_alike(word, denied_by_other) for word in words)
            if always_denied and has_alike(words[0], keys_of_other) and not denied_by_both:
                return "negation"
    if sum(is_negation(t.key) for t in stated) > sum(is_negation(t.key) for t in quoted):
        return "paraphrase"
    return ""


def _denied(text: Sequence[Token]) -> Iterable[list[str]]:
    """Yield the words that each negation denies: the two content words after it, or else the one before it."""
    for position, token in enumerate(text):
        if is_negation(token.key):
            after = [one.key for one in text[position + 1 : position + 1 + _DENIED_WITHIN] if one.content][:2]
            before = [one.key for one in text[:position] if one.content][-1:]
            if after or before:
                yield after or before
