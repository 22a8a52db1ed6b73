"""One statement against the passages that it cites: the best quote, and whether it says the same."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from typing import Literal, NamedTuple

from rag_kit.text.citations.change import MIN_CLOSE, find_change
from rag_kit.text.citations.placing import Placed, place_values, says, swaps_roles
from rag_kit.text.citations.source import PassageSource, clauses, content_keys, holds, leaves_open, letters_of
from rag_kit.text.citations.tokens import Token, are_equal, are_opposites, has_alike, is_negation, tokens
from rag_kit.text.language import HAN, fold, same_language, word_set

_MAX_UNKNOWN = 0.35  # share of a statement's content that the quote, and what it refers back to, may lack
# share of a statement's words that a sentence has in their order, from which a difference is a change of what it says
_MIN_CLOSE_VALUES = 0.5
_MIN_CLOSE_WORDING = 0.65  # the same, from which a wording of its own may be something else
_MOST_CHANGES = 2  # places with other words up to which a statement is a sentence changed
_FEW = 4  # content words of a statement that says too little to be foreign to a passage
_CONTRIBUTES = 0.25
_DENIED_WITHIN = 3  # words after a negation among which the one is that it denies
_WEAK = ("ordinal", "weekday")  # values that a passage without one of their kind may say in other words
_POINTING = word_set(
    "it they he she this these its their his her that the 它 它们 他 她 该 这 这一 这些 此 其 本"
)
_TWO_HAN = re.compile(f"[{HAN}]{{2}}")


class Verdict(NamedTuple):
    """Tell whether a passage supports a statement, by which span, and why."""

    score: float
    reason: str
    start: int
    end: int

    @property
    def status(self) -> Literal["supported", "unsupported", "undecided"]:
        """Explain the reason."""
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
    """The verdict on a statement by the best quote of one passage."""
    letters = letters_of(statement)
    if not source.spans or not letters.strip():
        return Verdict(0.0, "thin", *(source.spans or [(0, 0)])[0])
    stated = _in_words_of(tokens(statement), source)
    best, places = source.best_sentences(statement, stated)
    start, end = source.spans[places[0]][0], source.spans[places[-1]][1]
    asks = leaves_open(source.plain(*source.spans[best])) and not leaves_open(statement)
    held = holds(letters_of(source.text[start:end]), letters) and not asks
    if held and not _begins_inside(source.text[start:end], statement):
        return Verdict(1.0, "verbatim", start, end)
    if not same_language(statement, source.text):
        return Verdict(0.0, "language", start, end)
    row = source.spans[best][0] in source.rows
    quoted = [token for place in places for token in source.tokens[place]]
    parts = [_in_words_of(part, source) for part in clauses(statement)]
    clause = [] if row or len(parts) > 1 else source.best_clause(best, stated)
    reason, score = _compare_words(stated, quoted, source, clause)
    placed = place_values(stated, parts, source.places) if reason in ("covered", "paraphrase") else "open"
    roles = (
        swaps_roles(statement, source.plain(start, end), source)
        if reason in ("covered", "paraphrase")
        else ""
    )
    if roles or placed == "wrong":
        reason = roles or "number"
    elif held:
        reason, score = "verbatim", 1.0
    if not row and reason != "verbatim":
        reason = _compare_with_sentence(reason, stated, quoted, source, best, clause, placed)
        if asks and reason in _NOTHING_SAID:
            reason = "paraphrase"
    return Verdict(score, reason, start, end)


def _compare_with_sentence(
    reason: str,
    stated: Sequence[Token],
    quoted: Sequence[Token],
    source: PassageSource,
    best: int,
    clause: Sequence[Token],
    placed: Placed,
) -> str:
    """Return the reason after a comparison with the sentence at `best`, word by word in their order.

    A covered statement in which a word was changed gets the reason for that. A statement that has too few words of the
    sentence in their order is not that sentence changed: its reason is "paraphrase".
    """
    sentence = source.tokens[best]
    referred, passage_words = content_keys(source.context_tokens), source.all_keys
    if (
        sentence and sentence[0].key in _POINTING
    ):  # "it", "the company": the first sentence names what that is
        passage_words -= source.keys[0] - content_keys(sentence)
        referred |= source.keys[0]
    if clause and clause[0].key in _POINTING:  # "its arch": the clauses before name what that is
        earlier = content_keys(sentence) - content_keys(clause)
        passage_words, referred = passage_words - earlier, referred | earlier
    if reason == "covered":
        harmless = {"all": ("moved", "moved value"), "some": ("moved value",)}.get(placed, ())
        changes = [find_change(part, stated, passage_words) for part in (sentence, clause or sentence)]
        reason = next((change for change in changes if change and change not in harmless), reason)
    compared = [token for token in stated if token.key not in referred - content_keys(sentence)]
    quoted_words = content_keys(quoted)
    if reason == "number" and all(
        token.value or has_alike(token.key, quoted_words) for token in compared if token.content
    ):
        return "number"  # no other word is new
    share, changed_places = _closeness(compared, sentence, with_values=reason != "number")
    if reason == "other" and share < _MIN_CLOSE_WORDING:
        return "covered"
    if reason in _LEAST and (changed_places > _MOST_CHANGES or share < _LEAST[reason]):
        return "paraphrase"
    return "moved" if reason == "moved value" else reason


def _begins_inside(text: str, statement: str) -> bool:
    """Tell whether a Chinese statement stands in a text behind another character, maybe inside a word: 陪产假为15天."""
    said = fold(statement).rstrip("。.")
    before = fold(text).partition(said)[0]
    return before != fold(text) and bool(_TWO_HAN.fullmatch(before[-1:] + said[:1]))


_LEAST = dict.fromkeys(("name", "changed", "moved", "opposite", "negation", "other"), MIN_CLOSE) | {
    "number": _MIN_CLOSE_VALUES
}
_NOTHING_SAID = ("covered", "changed", "moved", "opposite", "negation", "order")


def _closeness(stated: Sequence[Token], cited: Sequence[Token], *, with_values: bool) -> tuple[float, int]:
    """Share of a statement's content words that a sentence has in their order, and in how many places others stand."""
    old, new = ([t.key for t in row if t.content and (with_values or not t.value)] for row in (cited, stated))
    codes = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    same = sum(d - c for kind, _, _, c, d in codes if kind == "equal")
    return (same / len(new) if new else 1.0), sum(kind in ("replace", "insert") for kind, *_ in codes)


def _in_words_of(stated: list[Token], source: PassageSource) -> list[Token]:
    """A statement's tokens, with each value under the key that the passage has for it."""
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
    """The reason for the verdict, and the share of the statement's content words that the quote has.

    The quote may refer back to what the passage's opening sentence, its title and its headings name, in words such as
    "the company"; words of other sentences of the passage are what it says of something else.
    """
    opening = content_keys(source.context_tokens) if source else set()
    passage = source.all_keys - opening if source else frozenset()
    inside = bool(source and source.rows)
    content = list(dict.fromkeys(token for token in stated if token.content))
    keys = content_keys(quoted) | opening
    words = [token.key for token in quoted if token.content and not token.value and not token.name]
    words += [token.key for token in source.context_tokens if not token.value] if source else []
    missing = [
        token
        for token in content
        if token.key not in keys
        and (
            token.value or token.name or (inside and token.key in passage) or not has_alike(token.key, words)
        )
    ]
    score = 1 - len(missing) / len(content) if content else 0.0
    if not score:
        thin = len(content) > _FEW or any(token.name or token.value for token in content)
        return ("thin" if thin else "paraphrase"), score
    first = source.keys[0] if source and not inside else set()
    unknown = [token for token in missing if token.value or token.key not in first]
    kinds = (
        {place.value.dimension for place in source.places}
        if source and any(t.value for t in unknown)
        else set()
    )
    if any(
        token.value and (token.value.dimension not in _WEAK or token.value.dimension in kinds)
        for token in unknown
    ):
        return "number", score
    if any(token.name for token in unknown):
        return "name", score
    if sum(token.key in passage for token in unknown) > (not inside):
        return "changed", score
    said = {token.key for token in quoted}
    new = {
        key for key in {token.key for token in stated} - said if not any(are_equal(key, one) for one in said)
    }
    lost = said - {token.key for token in stated}
    if any(are_opposites(a, b) for a in new for b in lost):
        return "opposite", score
    whole = 2 * len(content_keys(stated) & content_keys(clause)) < len(content_keys(stated))
    if negated := _negates_alone(stated, quoted if whole else clause):
        return negated, score
    return ("paraphrase" if len(unknown) > _MAX_UNKNOWN * len(content) else "covered"), score


def _negates_alone(stated: Sequence[Token], quoted: Sequence[Token]) -> str:
    """The reason "negation" where one text denies a word that the other has and does not deny, or ""."""
    for text, other in ((stated, quoted), (quoted, stated)):
        there = [denied for pair in _denied(other) for denied in pair]
        keys, count = content_keys(other), Counter(token.key for token in text)
        denials = list(_denied(text))
        for first, *more in denials:
            once = count[first] == sum(first == denied for denied, *_ in denials)
            if once and has_alike(first, keys) and not any(has_alike(word, there) for word in (first, *more)):
                return "negation"
    if sum(is_negation(t.key) for t in stated) > sum(is_negation(t.key) for t in quoted):
        return "paraphrase"
    return ""


def _denied(text: Sequence[Token]) -> Iterable[list[str]]:
    """Yield what a text denies: after each negation the first two content words, or the last one before it."""
    for place, token in enumerate(text):
        if is_negation(token.key):
            after = [one.key for one in text[place + 1 : place + 1 + _DENIED_WITHIN] if one.content][:2]
            before = [one.key for one in text[:place] if one.content][-1:]
            if after or before:
                yield after or before
