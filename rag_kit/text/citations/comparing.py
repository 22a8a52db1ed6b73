"""A statement and the quote of a passage compared by their words: values, names, negations, opposites, what is new."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from itertools import chain, dropwhile, groupby, islice, pairwise, product, takewhile

from rag_kit.text.citations.permission import Stance, read_stance
from rag_kit.text.citations.placing import kind_of, supports
from rag_kit.text.citations.source import PassageSource, Span
from rag_kit.text.citations.tokens import (
    JOINING,
    MODALS,
    Token,
    are_equal,
    are_opposites,
    content_keys,
    differ_by_prefix,
    has_alike,
    has_form_or_synonym,
    is_negation,
)
from rag_kit.text.language import word_list, word_set
from rag_kit.text.values.units import unit_at
from rag_kit.text.values.value import TIMES, Value, is_computed, same_value, uncounted

_MAX_UNKNOWN = 0.35  # share of a statement's content that the quote, and what it refers back to, may lack
_MAX_REWORDED = 0.6  # the same, where it has two values or names of the quote
_MAX_RUN = 3  # unknown words in a row, of such a statement: more are a thing of its own
_FEW_WORDS = 4  # content words of a statement that says too little to be foreign to a passage
_DENIED_WITHIN = 4  # tokens after a negation among which its denied words are
_MAX_DENIED = 2
_MAX_COUNTED = 12  # rows or columns up to which a number may be their count
_MAX_OPERANDS = 25  # values of a table, of more only those of named rows count
_NUMBERING = ("", "ordinal")  # dimensions of what numbers the rows of a table
_THAN = frozenset(["than", "比"])
_OFTEN_IN_WORDS = ("ordinal", "weekday")  # dimensions that a passage may say otherwise: "the next day"
_DENYING = word_list("denying")  # as a negation does
_DENYING_ALL = word_set("neither nobody 无人")
_ONE = ("one", "a", "an", "一", "1")
_EXCEPTING = word_set("except 除 除了 除非 除外 例外")
_AFTER_EXCEPTED = ("外", "以外", "之外")
_BESIDES = word_set("还 也 另 另外 also 仍")
_OF_ALL = word_set("all everi any anywher everywher everyon alway 所有 一切 全部 任何 全体 凡")
_OF_SOME = word_set("some certain 部分 个别 有些 少数 某些")
_LIMITS = _OF_SOME | word_set(
    "except only other others exclud provid within 除 除外 以外 仅 只 其他 其它 其余"
)


@dataclass(frozen=True)
class Pair:
    """A statement and the span of a passage that fits it best, as tokens; values have the passage's keys."""

    stated: list[Token]
    quoted: list[Token]
    source: PassageSource
    best: Span  # the best one of the quote
    # each clause of the statement, with the best clause of the sentence for it
    clauses: Sequence[tuple[Sequence[Token], Sequence[Token]]]

    @property
    def clause(self) -> Sequence[Token]:
        """The best clause of the sentence, where the statement has a single one."""
        return self.clauses[0][1] if len(self.clauses) == 1 else ()


def with_keys_of(source: PassageSource, stated: Sequence[Token]) -> list[Token]:
    """Return a statement's tokens, each value under the key of the passage's value that supports it."""
    return [token._replace(key=_passage_key(source, token)) if token.value else token for token in stated]


def _passage_key(source: PassageSource, token: Token) -> str:
    """Return the key of the passage's value that supports a token's; the token's own key if none does."""
    if not token.value or token.key in source.all_keys or token.key in source.values:
        return token.key
    for key, value in source.values.items():
        if supports(value, token.value):
            return key
    return source.completed.get(token.key) or token.key


def compare_words(pair: Pair) -> tuple[str, float]:
    """Return the reason for a verdict, and the share of the statement's content words that the quote has.

    A quote may refer back, as with "the company", so words of the passage's opening sentence, title and headings count
    as its own. Words of its other sentences do not: they may be about something else.
    """
    content = list(dict.fromkeys(token for token in pair.stated if token.content))
    missing = _missing_words(content, pair)
    score = 1 - len(missing) / len(content) if content else 0.0
    if not score:
        is_specific = len(content) > _FEW_WORDS or any(token.name or token.value for token in content)
        return ("thin" if is_specific else "paraphrase"), score
    # a table has no opening sentence, nor has the joint quote of several passages
    has_opening = bool(pair.source.spans) and not pair.source.rows
    may_be_referred = pair.best.earlier | (pair.source.spans[0].keys if has_opening else set())
    unknown = [token for token in missing if token.value or token.key not in may_be_referred]
    if reason := _reason_of_unknown(unknown, pair) or _reason_of_contradiction(pair):
        return reason, score
    if len(unknown) > _MAX_UNKNOWN * len(content) and not _is_reworded(content, unknown):
        return "paraphrase", score
    return "covered", score


def _is_reworded(content: Sequence[Token], unknown: Sequence[Token]) -> bool:
    """Tell whether a statement has two values or names of the quote, and its unknown words are among known ones."""
    anchors = sum(token.name or token.value is not None for token in content)
    runs = [len(list(run)) for is_new, run in groupby(content, lambda token: token in unknown) if is_new]
    return anchors > 1 and len(unknown) <= _MAX_REWORDED * len(content) and max(runs) <= _MAX_RUN


def _missing_words(content: Sequence[Token], pair: Pair) -> list[Token]:
    """Return the content words of a statement that neither quote nor titles have, in the same or another form."""
    keys = content_keys(pair.quoted) | pair.source.context_keys
    keys_of_other_rows = pair.source.row_keys - keys
    words = [token.key for token in pair.quoted if token.content and not token.value and not token.name]
    words += [token.key for token in pair.source.context_tokens if not token.value]
    have_same_single = bool(_counted_once(pair.stated) & _counted_once(pair.quoted))

    def is_missing(token: Token) -> bool:
        is_one = token.value is not None and token.value.normal in ("1", "min 1")
        if is_one and have_same_single:  # 1名 for 一名
            return False
        if token.key in keys or (pair.source.rows and _is_compound_of(token.key, keys, words)):
            return False
        # in another form it would be another thing, as would a word of another row of a table
        if token.value or token.name or _is_or_contains(token.key, keys_of_other_rows):
            return True
        return not has_form_or_synonym(token.key, words)

    return [token for token in content if is_missing(token)]


def _counted_once(text: Sequence[Token]) -> set[str]:
    """Return what a text counts as one: "child" for "one child", "a child" and "1 child", 名 for 一名 and 1名."""
    pairs = pairwise(token.key for token in text)
    in_word = {token.key[1:] for token in text if token.key[0] == "一" and len(token.key) > 1}
    return in_word.union(counted for count, counted in pairs if count in _ONE)


def _is_or_contains(word: str, others: Set[str]) -> bool:
    """Tell whether a word is among others, or a Chinese word contains one of them, as 学生票 contains 学生."""
    return word in others or (word > "\u2fff" and any(len(other) > 1 and other in word for other in others))


def _is_compound_of(word: str, keys: Set[str], words: Sequence[str]) -> bool:
    """Tell whether a Chinese word is a key and a form of another word, joined, as 华东地区 is 华东 and 地区."""
    if word < "\u2fff":
        return False
    return any(word[:end] in keys and has_alike(word[end:], words) for end in range(1, len(word)))


def _reason_of_unknown(unknown: Sequence[Token], pair: Pair) -> str:
    """Return why words that a quote lacks speak against a statement ("number", "name", "changed" ...), or ""."""
    source = pair.source
    # a statement that names its row may compare it with others: their names are no values that it states
    names_row = bool(pair.best.row) and _name_of(pair.best) <= content_keys(pair.stated)
    row_names = set().union(*map(_name_of, source.rows)) if names_row else set()
    values = [token.value for token in unknown if token.value and token.key not in row_names]
    if reason := _reason_of_values(values, pair):
        return reason
    if any(token.value and token.key in row_names for token in unknown):
        return "computed"
    if names := {token.key for token in unknown if token.name}:
        # the text around a table may be about the row
        in_prose = names <= source.all_keys - source.row_keys
        return "paraphrase" if source.rows and in_prose else "name"
    elsewhere = (source.row_keys or source.all_keys) - source.context_keys
    if source.rows:
        is_changed = any(_is_or_contains(token.key, elsewhere) for token in unknown)
    else:  # a single word may be there by chance
        is_changed = sum(token.key in elsewhere for token in unknown) > 1
    return "changed" if is_changed else ""


def _reason_of_values(values: Sequence[Value], pair: Pair) -> str:
    """Return why values that a quote lacks speak against a statement: "number", else "computed", "paraphrase" or ""."""
    in_row = [token.value for token in pair.quoted if token.value] if pair.source.rows else []
    without_unit = {value.amount for value in in_row if not value.dimension}
    kinds = {kind_of(value) for value in in_row}
    for value in values:
        if value.unit and value.amount in without_unit and kind_of(value) not in kinds:
            return "paraphrase"  # the row has the number without its unit, and no other number of its kind
    dimensions = {place.value.dimension for place in pair.source.places} if values else set()
    if all(one.dimension in _OFTEN_IN_WORDS and one.dimension not in dimensions for one in values):
        return ""
    return "computed" if _may_be_computed(values, pair) else "number"


def _may_be_computed(values: Sequence[Value], pair: Pair) -> bool:
    """Tell whether a statement may have computed values from those of its passage, or counted rows or columns.

    Not if it is in the words of the passage, which has a value of the same kind: then it changed that value.
    """
    rows = pair.source.rows
    longest = max([len(rows), *(len(row.row) for row in rows)])
    counts = {len(rows), *range(2, min(longest, _MAX_COUNTED) + 1)}  # "three plans", 两门课
    new_values = [value for value in values if value.dimension or value.amount not in counts]
    passage_values = list(pair.source.values.values())
    kinds = {kind_of(value) for value in passage_values}
    words = [token.key for token in pair.stated if token.content and not token.value]
    passage_words = [token.key for token in (*pair.quoted, *pair.source.context_tokens) if not token.value]
    is_in_same_words = all(has_form_or_synonym(word, passage_words) for word in words)
    if is_in_same_words and any(kind_of(value) in kinds for value in new_values):
        return False
    if any(supports(one, value) or _is_changed(one, value) for one in passage_values for value in new_values):
        return False
    operands = _operands(passage_values, pair)
    return all(is_computed(value, operands) for value in new_values)


def _operands(passage_values: list[Value], pair: Pair) -> list[Value]:
    """Return the values that a statement may compute with: all of a passage; of a large table those of named rows.

    Nearly any number is the sum or difference of two values of a large table.
    """
    if not pair.source.rows or len(passage_values) <= _MAX_OPERANDS:
        return passage_values
    keys = content_keys(pair.stated)
    named_rows = [row.tokens for row in pair.source.rows if _name_of(row) <= keys]
    # "the dearest costs 5 EUR more than the cheapest" names no row, and may be about any
    may_be_of_any = len(named_rows) < 2 and not _THAN.isdisjoint(token.key for token in pair.stated)
    if not named_rows or may_be_of_any:
        return passage_values
    return [token.value for token in chain(pair.quoted, *named_rows) if token.value]


def _name_of(row: Span) -> set[str]:
    """Return the content words of the cell that names a row, its first that is no number: "| 7 | Bolt | 3.20 |"."""
    for cell in row.cells:
        if any(not token.value or token.value.dimension not in _NUMBERING for token in cell.text):
            return content_keys(cell.text)
    return content_keys(row.cells[0].text)


def _is_changed(said: Value, stated: Value) -> bool:
    """Tell whether a value is another one with another period or the opposite bound: 5% a month for 5% a week."""
    if {said.bound, stated.bound} == {"min", "max"}:
        return same_value(stated._replace(bound=""), said._replace(bound=""))
    return bool(said.per and stated.per and stated.unit) and same_value(uncounted(stated), uncounted(said))


def _reason_of_contradiction(pair: Pair) -> str:
    """Return why a statement contradicts its quote: by an opposite, by "all" for "some", or by a negation; or ""."""
    if _has_opposite(pair):
        return "opposite"
    if _ignores_limit(pair) or _includes_exception(pair) or _changes_period(pair):
        return "changed"
    cells = pair.best.said_by_cells()
    duties = [duty for clause in pair.best.clauses for duty in _cut_at_modals(clause)]
    for stated, clause in pair.clauses:
        if _changes_duty(stated, duties) or _has_modified(stated, clause):
            return "opposite"
        keys = content_keys(stated)
        texts: list[Sequence[Token]] = []
        for cell in cells:  # an answer such as "no" counts only where the statement names its header
            if not cell.answers or any(_has_form(word.key, keys) for word in cell.header):
                texts.append(cell.text)
        texts = texts or [clause if _has_half(clause, keys) else pair.quoted]
        stance, stances = read_stance(stated), [read_stance(text) for text in texts]
        for quoted in stances:
            if reason := _reason_of_denial(stance, quoted, bool(cells)):
                return reason
        if _has_more_negations(stance, stances):
            return "paraphrase"  # words do not tell
    return ""


def _has_opposite(pair: Pair) -> bool:
    """Tell whether a statement has the opposite of a word of its quote in place of that: "rose" for "fell"."""
    stated, quoted = {token.key for token in pair.stated}, {token.key for token in pair.quoted}
    new_words = [key for key in stated - quoted if not any(are_equal(key, other) for other in quoted)]
    # what a neighbour of the best sentence may or must is another thing
    in_best = {token.key for token in pair.best.tokens}
    lost_words = {key for key in quoted - stated if key not in MODALS or key in in_best}
    denied, denied_in_quote = (set(chain(*_denied(text))) for text in (pair.stated, pair.quoted))
    # "may be at most 5" is "must not exceed 5"
    of_bound = MODALS if all(map(_has_upper_bound, (pair.stated, pair.quoted))) else frozenset()
    for new, lost in product(new_words, lost_words):
        are_denied_alike = (new in denied) == (lost in denied_in_quote)  # "not allowed" is "prohibited"
        if are_denied_alike and not of_bound >= {new, lost} and are_opposites(new, lost):
            return True
    return False


def _has_modified(stated: Sequence[Token], clause: Sequence[Token]) -> bool:
    """Tell whether a statement differs from its clause by a prefix that changes the thing: 会员 beside 非会员."""
    keys, said = content_keys(stated), content_keys(clause)
    return any(differ_by_prefix(new, lost) for new, lost in product(keys - said, said - keys))


def _changes_duty(stated: Sequence[Token], duties: Sequence[Sequence[Token]]) -> bool:
    """Tell whether a clause has "must" where the duty most like it has "may", or "all" where that has "some"."""
    keys = content_keys(stated) - MODALS
    nearest = max(duties, key=lambda duty: len(keys & content_keys(duty)), default=())
    is_changed = _changes_modal(stated, nearest) or _says_all_for_some(stated, nearest)
    return is_changed and _has_half(nearest, keys)


def _has_half(text: Sequence[Token], keys: Set[str]) -> bool:
    """Tell whether a text has at least half of some content words."""
    return 2 * len(keys & content_keys(text)) >= len(keys)


def _has_more_negations(stated: Stance, others: Sequence[Stance]) -> bool:
    """Tell whether a text has more negations than others, without those by which all of them permit or forbid."""
    are_alike = len({stance.permits for stance in (stated, *others)}) == 1
    compared = (stance.rest if are_alike else stance.text for stance in (stated, *others))
    own, *of_others = (sum(is_negation(token.key) for token in text) for text in compared)
    return own > sum(of_others)


def _has_form(word: str, others: Set[str]) -> bool:
    """Tell whether a word is among others or has a form among them; 退票 is no form of the single character 票."""
    longer = [other for other in others if len(other) > 1]
    return word in others or (len(word) > 1 and has_alike(word, longer))


def _ignores_limit(pair: Pair) -> bool:
    """Tell whether a statement has "all" or "any", and its sentence or one of the two after it "only" or "except"."""
    stated, sentence = {token.key for token in pair.stated}, {token.key for token in pair.best.tokens}
    from_best = dropwhile(lambda span: span is not pair.best, pair.source.spans)
    next_two = ({token.key for token in span.tokens} for span in islice(from_best, 1, 3))
    quoted = sentence.union(*next_two)
    if stated & _OF_ALL and (sentence - stated) & _EXCEPTING:  # "every floor except the third"
        return True
    return bool((stated - quoted) & _OF_ALL) and bool((quoted - stated) & _LIMITS)


def _includes_exception(pair: Pair) -> bool:
    """Tell whether a statement is about what its sentence excepts: 5号房有浴缸 beside 除5号房外，都有浴缸."""
    stated, sentence = ({token.key for token in text} for text in (pair.stated, pair.best.tokens))
    if stated & _EXCEPTING or sentence & _BESIDES or any(map(is_negation, stated)):
        return False
    so_far: set[str] = set()  # the content words up to the end of a clause
    for clause in pair.best.clauses:
        exception = list(dropwhile(lambda token: token.key not in _EXCEPTING, clause))
        excepted = content_keys(takewhile(lambda token: token.key not in _AFTER_EXCEPTED, exception[1:]))
        words_before = so_far | (content_keys(clause) - content_keys(exception))
        so_far |= content_keys(clause)
        if not excepted or not excepted <= stated:
            continue
        if not words_before:  # the exception comes first, and the rule behind it
            if stated & (pair.best.keys - excepted):
                return True
        elif stated & (so_far - excepted):  # clauses behind it may say what holds for what is excepted
            return not stated & (pair.best.keys - so_far)
    return False


def _changes_period(pair: Pair) -> bool:
    """Tell whether a statement has another period than its quote: 每年检查一次 beside 每半年检查一次."""
    if any(token.value and token.value.per for token in pair.stated):  # 6000 a year may be 500 a month
        return False
    stated, said = _periods(pair.stated), _periods(pair.quoted)
    return bool(stated and said) and stated.isdisjoint(said)


def _periods(text: Sequence[Token]) -> set[tuple[bool, float]]:
    """Return the times of a text, and the units behind 每, in months (True) or seconds: 每半年 is (True, 6.0)."""
    times = [(token.value.dimension, token.value.base) for token in text if token.value]
    for before, token in pairwise([Token(""), *text]):
        is_each = before.key == "每" or token.key.startswith("每")
        if is_each and (found := unit_at(token.key.removeprefix("每"), 0)):
            times.append((found.unit.dimension, found.unit.factor))
    return {(dimension == "months", base) for dimension, base in times if dimension in TIMES}


def _changes_modal(stated: Sequence[Token], clause: Sequence[Token]) -> bool:
    """Tell whether the modal verbs of a statement are opposites of all those of a clause, as "must" of "may"."""
    if any(is_negation(token.key) or (token.value and token.value.bound) for token in (*stated, *clause)):
        return False  # "may be at most 5 m" is "must not exceed 5 m"
    modals, quoted_modals = ({token.key for token in text} & MODALS for text in (stated, clause))
    pairs = list(product(modals, quoted_modals))
    return bool(pairs) and all(are_opposites(*modal_pair) for modal_pair in pairs)


def _cut_at_modals(clause: Sequence[Token]) -> list[Sequence[Token]]:
    """Cut a clause where "and" joins a further modal verb: "must be cooled | and may be stored"."""
    pairs = enumerate(pairwise(clause))
    cuts = [n for n, (token, following) in pairs if token.key in JOINING and following.key in MODALS]
    return [clause[start:end] for start, end in pairwise([0, *cuts, len(clause)])]


def _says_all_for_some(part: Sequence[Token], clause: Sequence[Token]) -> bool:
    stated, said = ({token.key for token in text} for text in (part, clause))
    return bool(stated & _OF_ALL) and not said & _OF_ALL and bool(said & _OF_SOME) and not stated & _OF_SOME


def _has_upper_bound(text: Sequence[Token]) -> bool:
    return any(token.value and token.value.bound == "max" for token in text)


def _reason_of_denial(stated: Stance, quoted: Stance, in_cell: bool) -> str:
    """Return why a text forbids or denies what another allows or says, or ""; "must not" and "prohibited" are alike."""
    if stated.permits is quoted.permits:
        return _reason_of_negation(stated.rest, quoted.rest, in_cell)
    both = [*stated.text, *quoted.text]
    keys = {token.key for token in both}
    permissions = stated.permits, quoted.permits
    if None in permissions or keys & _LIMITS:
        if False in permissions and content_keys(stated.text) and not any(map(is_negation, keys)):
            return "paraphrase"  # one forbids what the other only says
    elif not any(token.value and token.value.bound for token in both):  # "at most 5 m" is "not over 5 m"
        return "opposite"
    return _reason_of_negation(stated.text, quoted.text, in_cell)


def _reason_of_negation(stated: Sequence[Token], quoted: Sequence[Token], in_cell: bool) -> str:
    """Return "negation" if one text denies a word that the other has and does not deny, else "".

    "paraphrase" if words do not tell: a word such as "exempt" denies as well.
    """
    if not _denies_alone(stated, quoted, in_cell) and not _denies_alone(quoted, stated, in_cell):
        return ""
    keys, quoted_keys = ({token.key for token in text} for text in (stated, quoted))
    # "exempt from" is "do not have to"
    is_open = (keys | quoted_keys) & _DENYING or (keys ^ quoted_keys) & _EXCEPTING
    return "paraphrase" if is_open else "negation"


def _denies_alone(text: Sequence[Token], other: Sequence[Token], in_cell: bool) -> bool:
    """Tell whether a text denies a word wherever it has it, and another text has that word and does not deny it."""
    keys, denied_in_other = content_keys(other), list(chain(*_denied(other)))
    denied = list(_denied(text))
    count, denied_count = Counter(token.key for token in text), Counter(words[0] for words in denied)
    for words in denied:
        is_always_denied = count[words[0]] == denied_count[words[0]]
        # a cell names the thing alone, without its verb
        has_word = any(_has_form(word, keys) for word in words) if in_cell else has_alike(words[0], keys)
        if is_always_denied and has_word and not any(has_alike(word, denied_in_other) for word in words):
            return True
    return False


def _denied(text: Sequence[Token]) -> Iterable[list[str]]:
    """Yield the words that each negation denies: the first two content words after it, or the last one before it.

    A "not" at the beginning, as in a cell that says no, denies all words, as does "neither ... nor".
    """
    for position, token in enumerate(text):
        if not is_negation(token.key):
            continue
        denies_all = (position == 0 and token.key == "not") or token.key in _DENYING_ALL
        window = text if denies_all else text[position + 1 : position + 1 + _DENIED_WITHIN]
        after = [word.key for word in window if word.content]
        before = [word.key for word in text[:position] if word.content]
        if after or before:
            yield (after if denies_all else after[:_MAX_DENIED]) or before[-1:]
