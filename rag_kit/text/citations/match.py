"""One statement against the passages that it cites: the best quote, and whether it says the same."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import dropwhile, islice, pairwise, product
from typing import Literal, NamedTuple

from rag_kit.text.citations.assertions import assertions
from rag_kit.text.citations.change import MIN_CLOSE, find_change
from rag_kit.text.citations.placing import Placement, place_values, says
from rag_kit.text.citations.source import PassageSource, clauses, content_keys, holds, leaves_open, letters_of
from rag_kit.text.citations.swaps import swaps_roles, turns_order
from rag_kit.text.citations.tokens import Token, are_alike, are_equal, are_opposites, has_alike, is_negation, tokens
from rag_kit.text.language import HAN, fold, same_language, word_set
from rag_kit.text.values.reading import Value
from rag_kit.text.values.units import names_unit

# share of a statement's words from which a sentence, with its neighbours, says the whole of it
_MOST_OF_ONE_SENTENCE = 0.75
# reasons that a quote of too few sentences may give, and those that the order of several values may
_OF_QUOTE, _OF_ORDER = ("number", "name", "paraphrase"), ("number", "order", "moved", "changed")
_MAX_UNKNOWN = 0.35  # share of a statement's content that the quote, and what it refers back to, may lack
# Share of a statement's words that a sentence must have in their order, so that its reason counts: a difference is then
# a change of what the sentence says, and below it another wording.
_MIN_CLOSE_BY_REASON = dict.fromkeys(("name", "changed", "moved", "opposite", "negation", "other"), MIN_CLOSE)
_MIN_CLOSE_BY_REASON["number"] = 0.5
_MIN_CLOSE_BY_REASON["changed"] = 0.7
_MIN_CLOSE_WORDING = 0.65  # the same, for a wording of the statement's own to be something else
_MOST_CHANGES = 2  # places with other words up to which a statement is a sentence changed
# reasons that a sentence which only asks cannot give: it claims nothing
_NEEDS_CLAIM = ("covered", "changed", "moved", "opposite", "negation", "order")
_FEW = 4  # content words of a statement that says too little to be foreign to a passage
_CONTRIBUTES = (
    0.25  # share of a statement's words that one of several passages must have to support it with others
)
_DENIED_WITHIN = 3  # tokens after a negation among which its denied words are
_MAX_DENIED = 2
_WEAK = ("ordinal", "weekday")  # values that a passage without one of their kind may say in other words
_POINTING = word_set(
    "it they he she this these its their his her that the 它 它们 他 她 该 这 这一 这些 此 其 本"
)
_DENYING = word_set(
    "exempt free prohibit forbid forbidden refus fail exclud prevent 免 免除 免于 豁免 禁止 严禁 谢绝 拒绝 除外 停止 禁用"
)  # words that deny something, as a negation does
_OF_ALL = word_set("all every any anywher everywher everyon always 所有 一切 全部 任何 全体 凡")
_LIMITS = word_set(
    "except unless only other others some certain exclud provid within 除 除外 以外 仅 只 部分 其他 其它 其余 个别"
)
_TWO_HAN = re.compile(f"[{HAN}]{{2}}")


class Verdict(NamedTuple):
    """How well a passage supports a statement, why, and by which span: ``passage[start:end]``."""

    score: float  # share of the statement's content words that the span holds
    reason: str  # a key of reasons.txt
    start: int
    end: int

    @property
    def status(self) -> Literal["supported", "unsupported", "undecided"]:
        """The status of the citation, by the reason."""
        if self.reason in ("verbatim", "covered"):
            return "supported"
        return "undecided" if self.reason in ("language", "other", "paraphrase") else "unsupported"


@dataclass(frozen=True)
class _Pair:
    """A statement and the span of a passage that fits it best, as tokens; values have the passage's keys."""

    stated: list[Token]
    quoted: list[Token]
    source: PassageSource
    sentence: Sequence[Token] = ()  # the best one of the span
    clause: Sequence[Token] = ()  # of that sentence the best one, where the statement has a single clause
    clauses: Sequence[
        tuple[Sequence[Token], Sequence[Token]]
    ] = ()  # of the statement, with the best of the sentence


def judge(statement: str, sources: Sequence[PassageSource]) -> list[Verdict]:
    """Judge a statement without its marks against each passage that it cites; several may support it together."""
    verdicts = [_judge_against(statement, source) for source in sources]
    if len(sources) < 2 or any(verdict.status == "supported" for verdict in verdicts):
        return verdicts
    pairs = zip(sources, verdicts, strict=True)
    quotes = [source.plain(verdict.start, verdict.end) for source, verdict in pairs]
    joined = PassageSource("\n".join(quotes), "\n".join(source.context for source in sources))
    stated = _with_keys_of(joined, tokens(statement))
    quoted = [token for sentence in joined.tokens for token in sentence]
    reason, _ = _compare_words(_Pair(stated, quoted, PassageSource("")))
    if reason != "covered" or not all(quotes):
        return verdicts
    return [one._replace(reason=reason) if one.score >= _CONTRIBUTES else one for one in verdicts]


def _judge_against(statement: str, source: PassageSource) -> Verdict:
    """Judge a statement by one passage: as a whole, and each of the assertions that it joins by itself.

    A passage may make them in several sentences, of which the quote of the whole is one.
    """
    whole = _judge_by_quote(statement, source)
    parts = assertions(statement) if whole.reason not in ("verbatim", "language", "thin") else []
    if len(parts) < 2:
        return whole
    verdicts = [_judge_by_quote(part, source) for part in parts]
    if whole.status == "supported":
        # outside of a table, a part by itself may lack the words that tell of what its value is
        in_table = {verdict.start for verdict in verdicts} & source.rows.keys()
        wrong = [
            verdict.reason
            for verdict in verdicts
            if verdict.status == "unsupported" and (verdict.reason != "number" or verdict.start in in_table)
        ]
        return whole._replace(reason=wrong[0]) if wrong else whole
    if not all(verdict.status == "supported" for verdict in verdicts):
        return whole
    stated_parts = [_with_keys_of(source, tokens(part)) for part in parts]
    if whole.reason in _OF_ORDER and all(
        place_values(part, [part], source.places) == "all" for part in stated_parts
    ):
        return whole._replace(reason="covered")  # each value is surely in its place
    if whole.reason not in _OF_QUOTE or whole.score >= _MOST_OF_ONE_SENTENCE:
        return whole
    stated = [token for part in stated_parts for token in part]
    if place_values(stated, stated_parts, source.places) == "wrong":
        return whole
    if swaps_roles(statement, source.plain(), source):
        return whole
    elsewhere = [
        part
        for part, verdict in zip(stated_parts, verdicts, strict=True)
        if verdict.start < whole.start or verdict.end > whole.end
    ]
    # words of another sentence may have been put in place of some; its values are hardly
    have_values = all(any(token.value for token in part) for part in elsewhere)
    return whole._replace(reason="covered" if elsewhere and have_values else "paraphrase")


def _judge_by_quote(statement: str, source: PassageSource) -> Verdict:
    """Judge a statement by the best quote of one passage."""
    letters = letters_of(statement)
    if not source.spans or not letters.strip():
        start, end = source.spans[0] if source.spans else (0, 0)
        return Verdict(0.0, "thin", start, end)
    stated = _with_keys_of(source, tokens(statement))
    best, quoted_sentences = source.best_sentences(statement, stated)
    start, end = source.spans[quoted_sentences[0]][0], source.spans[quoted_sentences[-1]][1]
    asks = leaves_open(source.plain(*source.spans[best])) and not leaves_open(statement)
    is_verbatim = holds(letters_of(source.text[start:end]), letters) and not asks
    if is_verbatim and not _begins_inside(source.text[start:end], statement):
        return Verdict(1.0, "verbatim", start, end)
    if not same_language(statement, source.text):
        return Verdict(0.0, "language", start, end)
    is_row = source.spans[best][0] in source.rows
    parts = [_with_keys_of(source, part) for part in clauses(statement)]
    quoted = [token for number in quoted_sentences for token in source.tokens[number]]
    if is_row:
        quoted += source.caption(best)
    matched = [] if is_row else [(part, source.best_clause(best, part)) for part in parts]
    clause = matched[0][1] if len(matched) == 1 else []
    pair = _Pair(stated, quoted, source, source.tokens[best], clause, matched)
    reason, score = _compare_words(pair)
    placement: Placement = "open"
    exchanged = ""
    if reason in ("covered", "paraphrase"):
        placement = place_values(stated, parts, source.places)
        quote = source.plain(start, end)
        exchanged = swaps_roles(statement, quote, source)
        exchanged = exchanged or ("number" if placement == "wrong" else "")
        if not exchanged and reason == "covered" and turns_order(statement, quote):
            exchanged = "order"
    if exchanged:
        reason = exchanged
    elif is_verbatim:
        reason, score = "verbatim", 1.0
    if not is_row and reason != "verbatim":
        reason = _compare_with_sentence(pair, reason, placement)
        if asks and reason in _NEEDS_CLAIM:
            reason = "paraphrase"
    return Verdict(score, reason, start, end)


def _compare_with_sentence(pair: _Pair, reason: str, placement: Placement) -> str:
    """Correct the reason for a verdict by a comparison with the best sentence, word by word in their order.

    A covered statement in which a word was changed gets the reason for that. A statement that has too few words of the
    sentence in their order is not that sentence changed: its reason is "paraphrase".
    """
    sentence = pair.sentence
    referred, passage_words = _split_referred(pair)
    if reason == "covered":
        # values that surely are in their places were not moved
        harmless = {"all": ("moved", "moved value"), "some": ("moved value",)}.get(placement, ())
        for part in (sentence, pair.clause or sentence):
            change = find_change(part, pair.stated, passage_words)
            if change and change not in harmless:
                reason = change
                break
    compared = [token for token in pair.stated if token.key not in referred - content_keys(sentence)]
    if reason == "number":
        quoted_words = content_keys(pair.quoted)
        words = [token.key for token in compared if token.content and not token.value]
        if all(has_alike(word, quoted_words) for word in words):
            return "number"  # nothing but the value is new
    share, changed_places = _closeness(
        compared, sentence, with_values=reason != "number", with_forms=reason == "negation"
    )
    if reason == "other" and share < _MIN_CLOSE_WORDING:
        return "covered"
    is_close = changed_places <= _MOST_CHANGES and share >= _MIN_CLOSE_BY_REASON.get(reason, 0)
    if reason in _MIN_CLOSE_BY_REASON and not is_close:
        return "paraphrase"
    return "moved" if reason == "moved value" else reason


def _split_referred(pair: _Pair) -> tuple[set[str], frozenset[str]]:
    """Return the words that the best sentence and clause may refer back to, and the passage's other words.

    After "it" or "the company" these are the words of the first sentence or of the clauses before.
    """
    sentence, clause = pair.sentence, pair.clause
    referred = content_keys(pair.source.context_tokens)
    others = pair.source.all_keys - referred
    if sentence and sentence[0].key in _POINTING:
        first_sentence = pair.source.keys[0]
        referred |= first_sentence
        others -= first_sentence - content_keys(sentence)
    if clause and clause[0].key in _POINTING:
        earlier = content_keys(sentence) - content_keys(clause)
        referred |= earlier
        others -= earlier
    return referred, others


def _begins_inside(text: str, statement: str) -> bool:
    """Tell whether a Chinese statement begins behind another character of a text, maybe inside a word.

    陪产假为15天 does not say 产假为15天.
    """
    said = fold(statement).rstrip("。.")
    before, found, _ = fold(text).partition(said)
    return bool(found) and bool(_TWO_HAN.fullmatch(before[-1:] + said[:1]))


def _closeness(stated: Sequence[Token], cited: Sequence[Token], *, with_values: bool, with_forms: bool) -> tuple[float, int]:
    """Return the share of a statement's content words that a sentence has in their order, and how often others come.

    Without `with_values` values do not count; `with_forms` a form of a word counts as the word.
    """
    old = [token.key for token in cited if token.content and (with_values or not token.value)]
    new = [token.key for token in stated if token.content and (with_values or not token.value)]
    if with_forms:
        new = [key if key in old else next((one for one in old if are_alike(key, one)), key) for key in new]
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    same = sum(block.size for block in matcher.get_matching_blocks())
    changes = sum(tag in ("replace", "insert") for tag, *_ in matcher.get_opcodes())
    return (same / len(new) if new else 1.0), changes


def _with_keys_of(source: PassageSource, stated: Sequence[Token]) -> list[Token]:
    """Return a statement's tokens, each value under the key of the passage's value that supports it."""
    return [token._replace(key=_key_in(source, token)) if token.value else token for token in stated]


def _key_in(source: PassageSource, token: Token) -> str:
    """Return the key that a passage has for a value; the value's own key if it has none."""
    if token.value and token.key not in source.all_keys and token.key not in source.values:
        for key, value in source.values.items():
            if says(value, token.value):
                return key
        return source.completed.get(token.key) or _key_of_bare(source, token.value) or token.key
    return token.key


def _key_of_bare(source: PassageSource, value: Value) -> str:
    """Return the key of a plain number of a table whose header names a value's unit, as 年假天数 names days; else ""."""
    for place in source.places:
        if place.value.amount == value.amount and not place.value.dimension and source.rows:
            if any(names_unit(word, value.dimension) for word in place.clause):
                return place.value.normal
    return ""


def _compare_words(pair: _Pair) -> tuple[str, float]:
    """Return the reason for a verdict, and the share of the statement's content words that the quote has.

    The quote may refer back to words of the passage's opening sentence, its title and its headings, as with "the
    company"; words of other sentences of the passage are what it says of something else.
    """
    content = list(dict.fromkeys(token for token in pair.stated if token.content))
    missing = _missing_words(content, pair)
    score = 1 - len(missing) / len(content) if content else 0.0
    if not score:
        is_specific = len(content) > _FEW or any(token.name or token.value for token in content)
        return ("thin" if is_specific else "paraphrase"), score
    opening = set() if pair.source.rows else set[str]().union(*pair.source.keys[:1])
    unknown = [token for token in missing if token.value or token.key not in opening]
    if reason := _reason_of_unknown(unknown, pair.source) or _opposite_or_negation(pair):
        return reason, score
    return ("paraphrase" if len(unknown) > _MAX_UNKNOWN * len(content) else "covered"), score


def _missing_words(content: Sequence[Token], pair: _Pair) -> list[Token]:
    """Return those of a statement's content words of which neither the quote nor the titles have a form.

    Values and names must be equal, and so must words of another row of a table: they name another thing.
    """
    context = pair.source.context_tokens
    keys = content_keys(pair.quoted) | content_keys(context)
    others = pair.source.row_keys - content_keys(context)
    words = [token.key for token in pair.quoted if token.content and not token.value and not token.name]
    words += [token.key for token in context if not token.value]

    def is_missing(token: Token) -> bool:
        if token.key in keys or (pair.source.rows and _is_joined_of(token.key, keys, words)):
            return False
        is_exact = bool(token.value or token.name) or _is_of(token.key, others - keys)
        return is_exact or not (has_alike(token.key, words) or any(are_equal(token.key, word) for word in words))

    return [token for token in content if is_missing(token)]


def _is_of(word: str, others: Set[str]) -> bool:
    """Tell whether a word is one of some others, or in Chinese has one of them in it, as 学生票 has 学生."""
    return word in others or (word > "\u2fff" and any(len(other) > 1 and other in word for other in others))


def _is_joined_of(word: str, keys: Set[str], words: Sequence[str]) -> bool:
    """Tell whether a Chinese word is one of some keys and a form of another word, as 华东地区 of 华东 and 地区."""
    if word < "\u2fff":
        return False
    return any(word[:end] in keys and has_alike(word[end:], words) for end in range(1, len(word)))


def _reason_of_unknown(unknown: Sequence[Token], source: PassageSource) -> str:
    """Return the reason why words that a quote lacks make a statement unsupported, or ""."""
    amounts = {place.value.amount for place in source.places if not place.value.dimension} if source.rows else ()
    if any(token.value and token.value.unit and token.value.amount in amounts for token in unknown):
        return "paraphrase"  # the table has the number without a unit
    dimensions = {token.value.dimension for token in unknown if token.value}
    said = {place.value.dimension for place in source.places} if dimensions else set()
    if any(dimension not in _WEAK or dimension in said for dimension in dimensions):
        return "number"
    if any(token.name for token in unknown):
        return "name"
    elsewhere = (source.row_keys or source.all_keys) - content_keys(source.context_tokens)
    if source.rows:
        return "changed" if any(_is_of(token.key, elsewhere) for token in unknown) else ""
    return "changed" if sum(token.key in elsewhere for token in unknown) > 1 else ""


def _opposite_or_negation(pair: _Pair) -> str:
    """Return the reason if a statement has an opposite of a quoted word, or only one of both denies a word; else ""."""
    said, stated = {token.key for token in pair.quoted}, {token.key for token in pair.stated}
    new = [key for key in stated - said if not any(are_equal(key, other) for other in said)]
    denied = {word for words in _denied(pair.stated) for word in words}
    denied_there = {word for words in _denied(pair.quoted) for word in words}
    of_bounds = _words_before_bounds(pair.stated) | _words_before_bounds(pair.quoted)
    for word, lost in product(new, said - stated):
        # "not allowed" is "prohibited", and "may be at most 5" is "must not exceed 5"
        is_said_otherwise = (
            (word in denied) != (lost in denied_there) or lost in of_bounds or word in of_bounds
        )
        if are_opposites(word, lost) and not is_said_otherwise:
            return "opposite"
    if _widens(pair):
        return "changed"
    for part, clause in pair.clauses or [(pair.stated, ())]:
        keys = content_keys(part)
        is_of_clause = 2 * len(keys & content_keys(clause)) >= len(keys)
        if reason := _negates_alone(part, clause if is_of_clause else pair.quoted):
            return reason
    return ""


def _widens(pair: _Pair) -> bool:
    """Tell whether a statement says of all what its sentence, or one of the two after it, limits to some."""
    stated, sentence = {token.key for token in pair.stated}, {token.key for token in pair.sentence}
    following = dropwhile(lambda tokens_of: tokens_of is not pair.sentence, pair.source.tokens)
    said = sentence.union(*({token.key for token in tokens_of} for tokens_of in islice(following, 1, 3)))
    return bool((stated - said) & _OF_ALL) and bool((said - stated) & _LIMITS)


def _words_before_bounds(row: Sequence[Token]) -> set[str]:
    """Return the words right before values that are bounds, as "must" in "must not exceed 5 m"."""
    return {before.key for before, token in pairwise(row) if token.value and token.value.bound}


def _negates_alone(stated: Sequence[Token], quoted: Sequence[Token]) -> str:
    """Return "negation" if one text denies a word that the other has and does not deny, else "".

    "paraphrase" if the statement only has more negations, so that words do not tell.
    """
    for text, other in ((stated, quoted), (quoted, stated)):
        keys, denied_there = content_keys(other), [word for words in _denied(other) for word in words]
        denials = list(_denied(text))
        count = Counter(token.key for token in text)
        denied_count = Counter(words[0] for words in denials)
        for words in denials:
            is_always_denied = count[words[0]] == denied_count[words[0]]
            is_denied_there = any(has_alike(word, denied_there) for word in words)
            if is_always_denied and has_alike(words[0], keys) and not is_denied_there:
                # "exempt from" is "do not have to"
                return "paraphrase" if {token.key for token in (*text, *other)} & _DENYING else "negation"
    if sum(is_negation(token.key) for token in stated) > sum(is_negation(token.key) for token in quoted):
        return "paraphrase"
    return ""


def _denied(text: Sequence[Token]) -> Iterable[list[str]]:
    """Yield the words that each negation denies: the first two content words after it, or the last one before it."""
    for position, token in enumerate(text):
        if is_negation(token.key):
            following = text[position + 1 : position + 1 + _DENIED_WITHIN]
            after = [word.key for word in following if word.content][:_MAX_DENIED]
            before = [word.key for word in text[:position] if word.content][-1:]
            if after or before:
                yield after or before
