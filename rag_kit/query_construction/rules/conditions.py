"""The conditions that a question names, and how the words between them join them: and, or, not, lists."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise, zip_longest
from typing import Any

from rag_kit.query_construction import clauses, cues
from rag_kit.query_construction.clauses import Clause
from rag_kit.query_construction.comparing import MonthsField, UnfitError, comparison_clause
from rag_kit.query_construction.fields import MetadataField, Schema
from rag_kit.text.values.period import Period
from rag_kit.text.values.periods import TextSpan
from rag_kit.text.values.reading import level

_OPPOSITE = {"$eq": "$ne", "$gt": "$lte", "$gte": "$lt", "$lt": "$gte", "$lte": "$gt"}


@dataclass(frozen=True, eq=False)
class Condition(TextSpan):
    """One condition, with the span of its words in the question, cue words ("published after") included."""

    field: MetadataField
    operator: str  # $eq for "in 2010", $contains for a value of a list, $exists for "undated"
    value: Any  # of the field, a number or a Period
    high: Any = None  # upper end of a range that begins with the value
    negated: bool = False
    parts: tuple[MonthsField, ...] = ()  # fields of quarters and months, which tell parts of a year

    @property
    def measured(self) -> bool:
        """Whether it compares with a date or number."""
        return isinstance(self.value, (int, float, Period)) and not isinstance(self.value, bool)

    @property
    def exclusive(self) -> bool:
        """Whether the field can meet only one such condition at once: "in 2010 and 2012" means either."""
        return self.operator == "$eq" and self.field.type != "bool"

    def excludes(self, other: Condition) -> bool:
        """Tell whether no document can meet this and another exclusive one: 1994 excludes 1995, the 1990s do not."""
        if not isinstance(self.value, Period) or not isinstance(other.value, Period):
            return True
        periods: list[Period] = [one.value.through(one.high) for one in (self, other)]
        first, last = sorted(periods, key=lambda period: period.start)
        return first.end <= last.start

    @property
    def untold(self) -> str:
        """Why the fields cannot tell what it asks for; "" if they can."""
        # "since June" means the last June, whose year is known; "in June" means the June of any year
        is_since = self.operator in ("$gt", "$gte") and not self.negated
        is_month_alone = isinstance(self.value, Period) and not self.value.has_year
        if is_month_alone and not self.parts and not is_since:
            return "it names no year, and no field holds months alone"
        try:
            _ = self.where
        except UnfitError as reason:
            return str(reason)
        return ""

    @property
    def where(self) -> Clause:
        """The condition in the filter language."""
        if self.field.type == "bool" and self.operator == "$eq":
            return {self.field.name: {"$eq": self.value != self.negated}}
        opposite = _OPPOSITE.get(self.operator) if self.negated else None
        operator = opposite or self.operator
        clause = comparison_clause(self.field, operator, self.value, self.high, self.parts)
        return clauses.none_of(clause) if self.negated and not opposite else clause


# what may follow, so that "without a rating above 4" and "with no author Smith" are not meant
_STOP = r"(?=\s*(?:$|[,.;:?!)]|(?:and|or|but|from|by|in|about|since|after|before|that|which|yet|at\s+all)\b))"
_ZH_STOP = r"(?=\s*(?:$|[的、，,。？?！!]|或|且|并|和))"


def find_missing(text: str, schema: Schema, time: MetadataField | None) -> list[Condition]:
    """Find the conditions that a field is missing: "undated" (the field `time`), "with no rating", 没有作者."""
    conditions: list[Condition] = []
    for field in schema:
        if field.type == "bool":
            continue
        match = _missing_pattern(field, field is time).search(text)
        if match and not TextSpan(*match.span()).overlaps(conditions):
            conditions.append(Condition(*match.span(), field, "$exists", False))
    return conditions


@lru_cache(maxsize=256)
def _missing_pattern(field: MetadataField, is_time: bool) -> re.Pattern[str]:
    """Make the pattern of questions for documents without a field: "without an author", "unassigned", "undated"."""
    names, patterns = [field.name], []
    if is_time:
        names += ["year", "date", "publication year", "publication date", "年份", "日期"]
        patterns.append(r"\bundated\b")
    for name in names:
        written = r"[\s_-]+".join(map(re.escape, re.split(r"[\s_-]+", level(name))))
        patterns += [
            rf"\b(?:without|lacking|(?:(?:with|having|have|has)\s+)?(?:no|an?\s+(?:unknown|missing))|unknown|missing)"
            rf"\s+(?:an?\s+|any\s+|the\s+)?(?:known\s+)?{written}s?\b{_STOP}",
            rf"\b(?:(?:whose|where|the)\s+)*{written}s?\s+(?:is\s+)?(?:unknown|missing|absent|not\s+(?:known|given|stated|set))\b",
            rf"(?:没有|缺少|无)(?:发表|出版)?{written}{_ZH_STOP}|{written}(?:为空|缺失|不明|未知)",
        ]
        stem = re.sub(r"(?:ing|ees?|ers?|ors?|e)$", "", name)
        if len(stem) >= 3 and stem.isalpha():
            patterns.append(rf"\bun{stem}e?d\b")  # "unassigned" for `assignee`
    return re.compile("|".join(patterns), re.IGNORECASE)


_LIST_OPENING = re.compile(r"\beither\b|\bone\s+of\b|\(", re.IGNORECASE)
_MARKS = "\"“”'‘’「」『』"
_ONE_WORD = re.compile(r"^\s+[A-Za-z]+\s$")  # "stroke or severe obesity"
_REPEATED_NOUN = re.compile(r"\b(?:papers?|articles?|studies|those|ones|anything)\b", re.IGNORECASE)
_CONNECTORS = re.compile(
    rf"(?:[\s,、/;{_MARKS}]|\b(?:and|or|and/or|the|a)\b|或者?|和|与|及|以及)*", re.IGNORECASE
)


def join_conditions(text: str, conditions: Sequence[Condition]) -> Clause | None:
    """Join conditions by the words between them.

    Conditions on one field in one list ("A, B or C") bind most closely, then neighbours and "and", then "or".
    """
    # the alternatives are joined by "or", the clauses of each by "and"
    alternatives: list[dict[str, Clause]] = [{}]
    previous: list[Condition] = []
    for members in _lists(text, conditions):
        clause, first = _join_list(text, members), members[0]
        is_after_or = bool(previous) and _connector(text[previous[-1].end : first.begin]) == "or"
        if is_after_or and previous[0].measured and first.measured:
            # "phones rated below 3 or priced over 1000": both are about phones, so the "or" joins these two alone
            _, previous_clause = alternatives[-1].popitem()
            either = clauses.any_of([previous_clause, clause]) or clause
            alternatives[-1][repr(either)] = either
        else:
            if is_after_or:
                alternatives.append({})
            # in "in 2010 and 2012" both cannot hold: under the key of their field they become alternatives
            key = first.field.name if _excludes_others(members, conditions) else repr(clause)
            earlier = alternatives[-1].get(key, clause)
            if earlier != clause:
                clause = clauses.any_of([earlier, clause]) or clause
            alternatives[-1][key] = clauses.shorten_clause(clause)
        previous = members
    joined = [clauses.all_of(list(parts.values())) for parts in alternatives]
    return clauses.any_of([clause for clause in joined if clause])


def _excludes_others(members: Sequence[Condition], conditions: Sequence[Condition]) -> bool:
    """Tell whether no document can meet a list and one of the other conditions on its field."""
    first = members[0]
    others = [one for one in conditions if one.field is first.field and one.exclusive and one not in members]
    return first.exclusive and not first.negated and all(map(first.excludes, others))


def _lists(text: str, conditions: Sequence[Condition]) -> list[list[Condition]]:
    """Group neighbours that are in one list."""
    lists: list[list[Condition]] = []
    for condition in conditions:
        if lists and _in_one_list(text, lists[-1][-1], condition):
            lists[-1].append(condition)
        else:
            lists.append([condition])
    return lists


def _in_one_list(text: str, first: Condition, second: Condition) -> bool:
    """Tell whether two neighbouring conditions on one field are in one list: only commas, "and" and "or" between."""
    between = text[first.end : second.begin]
    word = _connector(between)
    if first.field is not second.field or first.negated != second.negated or word in (None, "but"):
        return False
    begins_list = word == "and" and _LIST_OPENING.search(between)  # "A and either B or C"
    return not begins_list


def extends_negation(between: str) -> bool:
    """Tell whether a negation of one condition holds for the next, given the text between: "or" in "not A or B"."""
    word = _connector(between)
    if word in ("nor", "or") or (word == "and" and _REPEATED_NOUN.search(between)):
        return True  # also "ignoring papers about A and papers about B"
    return word is not None and _CONNECTORS.fullmatch(between) is not None


def _connector(between: str) -> str | None:
    """Return how the text between two conditions joins them: "and", "or", "nor", "but", "comma".

    It is "" if there are only quotation marks, and ``None`` if any word has a meaning of its own.
    """
    matches = list(cues.CONNECTOR.finditer(between))
    if not matches:
        return None if between.strip(" \t" + _MARKS) else ""
    match = next((each for each in matches if each.lastgroup != "comma"), None)
    if match is None:
        return "comma"
    group = (match.lastgroup or "and").removeprefix("zh_")  # a "&" is in no group
    after = between[match.end() :]
    if group == "or":
        after = _ONE_WORD.sub("", after)
    other_words = re.sub(rf"[{_MARKS})）;/,、]", " ", between[: match.start()] + " " + after)
    if not cues.ALL_LIGHT.fullmatch(other_words):
        return None
    if match.group().lower() == "nor":
        return "nor"
    return "but" if group == "not" else group


def _join_list(text: str, members: Sequence[Condition]) -> Clause:
    """Join the conditions of one list by the words between them."""
    if members[0].negated:
        parts = [member.where for member in members]
        return clauses.shorten_clause(clauses.all_of(parts) or parts[0])
    words = [_connector(text[condition.end : following.begin]) for condition, following in pairwise(members)]
    # a comma joins as the next "and" or "or" of its list does
    following_word: str | None = "and"
    for index in reversed(range(len(words))):
        if words[index] in ("comma", ""):
            words[index] = following_word
        following_word = words[index]
    alternatives: list[list[Clause]] = [[members[0].where]]
    for word, member in zip(words, members[1:], strict=True):
        if word in ("or", "nor") or member.exclusive:
            alternatives.append([])
        alternatives[-1].append(member.where)
    joined = clauses.any_of([clauses.all_of(parts) or parts[0] for parts in alternatives])
    return clauses.shorten_clause(joined or members[0].where)


# 或许 is a word of its own
_OR = r"(?:\bor\b|(?<!不可)或(?![许以])者?)"
_LIGHT = rf"(?:{cues.LIGHT}|{cues.ZH_LIGHT})*+"
_WORD = r"(?!(?:so|else|more|less|not|even)\b)(?P<word>[^\W\d][\w.'’-]*)"
# after a value: ", fever or insomnia", with the words "fever" (listed) and "insomnia"; before one: "insomnia or"
_OR_WORD = re.compile(
    rf"[\s\"”’」』)）]*(?:[,，、]\s*{_WORD.replace('<word>', '<listed>')}\s*)*[,，、]?\s*{_OR}{_LIGHT}(?:{_WORD}|$)",
    re.IGNORECASE,
)
_WORD_OR = re.compile(rf"{_WORD}\s*,?\s*{_OR}{_LIGHT}$", re.IGNORECASE)


def find_unknown(text: str, conditions: Sequence[Condition]) -> dict[Condition, str]:
    """Find known values that "or" joins with an unknown word ("Stroke or insomnia"); map each to that word."""
    unknown: dict[Condition, str] = {}
    previous_end = 0
    for condition, following in zip_longest(conditions, conditions[1:]):
        left = text[previous_end : condition.begin]
        right = text[condition.end : following.begin if following else len(text)]
        previous_end = condition.end
        if condition.negated or condition.measured:
            continue
        after, before = _OR_WORD.match(right), _WORD_OR.search(left)
        word_after = after and (after["word"] or after["listed"])
        # in "Stroke or severe Obesity" the word narrows the next value of the field
        is_before_next = after and after["word"] and not right[after.end() :].strip()
        narrows = is_before_next and following is not None and following.field is condition.field
        if word_after and not narrows:
            unknown[condition] = word_after
        elif before and not cues.ALL_LIGHT.fullmatch(before["word"]):
            unknown[condition] = before["word"]
    return unknown
