"""Mentions of dates, numbers and values in a text, and which of them it asks for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal

from rag_kit.query_construction import cues
from rag_kit.query_construction.fields import Schema
from rag_kit.query_construction.rules.amounts import Amount
from rag_kit.query_construction.rules.conditions import Condition, extends_negation
from rag_kit.query_construction.rules.values import NamedValue
from rag_kit.text import content_words
from rag_kit.text.values.periods import RANGE_TO, TextSpan
from rag_kit.text.values.reading import level

_NEXT = re.compile(r"\s*(?:the\s+)?(?:years?\s+)?")
Purpose = Literal["documents", "topic", "answer"]


def purpose_of(text: str, understood: Sequence[TextSpan], schema: Schema, measured: bool) -> Purpose:
    """Return the purpose of a text, which decides what of the dates, numbers and values in it are conditions.

    "documents": it asks for documents of a kind ("papers on stroke", "red phones"), so that every value is a condition.
    "topic": it asks for an answer and names little else, or a time ("what is known about stroke since 2010?"), so that
    a value of a list field is a condition only if the text is plainly about it. "answer": any other text.
    """
    if cues.DOCUMENTS.search(text) or cues.REQUEST.search(text):
        return "documents"
    names = "|".join(re.escape(name) for name in schema.names)
    matches = re.finditer(names, text, re.IGNORECASE) if names else ()
    field_names = [TextSpan(*match.span()) for match in matches]
    content = cues.without_frame(cues.remainder(text, [*understood, *field_names]))
    words = [word for word in content_words(content) if word.isascii() or len(word) > 1]
    if len(words) > 1 and not measured:
        return "answer"
    return "topic" if words and cues.QUESTION.search(text) else "documents"


Named = Amount | NamedValue
Mention = tuple[Named, Condition]


def read_mentions(text: str, named: Sequence[Named]) -> list[Mention]:
    """Read how each date, number and value is compared, and whether it is negated, from the words around it."""
    mentions: list[Mention] = []
    remaining = list(named)
    while remaining:
        item = remaining.pop(0)
        previous_item, previous = mentions[-1] if mentions else (None, None)
        # words before `floor` are too far away, or belong to the previous condition
        floor = max(0, item.begin - cues.REACH, previous.end if previous else 0)
        if isinstance(item, NamedValue):
            condition = _read_value(text, floor, item)
        else:
            is_range = bool(remaining) and _is_range(text, floor, item, remaining[0])
            high = remaining.pop(0) if is_range else None
            condition = _read_amount(text, floor, item, high, remaining[0] if remaining else None)
        begin, end, negated = cues.with_negation(text, floor, condition.begin, condition.end)
        is_plain = condition.operator in ("$eq", "$contains")
        if previous and previous.negated and is_plain and type(previous_item) is type(item):
            negated = negated or extends_negation(text[previous.end : begin])  # "not in 2010 or 2012"
        outside = cues.OUTSIDE.match(text, end)  # 除中风外: 外 belongs to 除
        if outside and negated and "除" in text[: begin + 1]:
            end = outside.end()
        mentions.append((item, replace(condition, begin=begin, end=end, negated=negated)))
    return mentions


def _read_value(text: str, floor: int, item: NamedValue) -> Condition:
    """Make the condition on a value; in "no author Smith" it begins at the field's name, so that "no" is before it."""
    left = text[floor : item.begin]
    name = name_before(left, item.field.name)
    begin = floor + name.start() if name and cues.NEGATED.search(left[: name.start()]) else item.begin
    is_list = item.field.many and not isinstance(item.value, bool)
    return Condition(begin, item.end, item.field, "$contains" if is_list else "$eq", item.value)


def _is_range(text: str, floor: int, first: Amount, second: Named) -> bool:
    """Tell whether two amounts are the ends of a range: "5 to 7", "between 5 and 7"."""
    between = text[first.end : second.begin]
    if not isinstance(second, Amount) or first.field is not second.field:
        return False
    if not cues.RANGE_AND.fullmatch(between):
        return RANGE_TO.fullmatch(between) is not None
    opening = cues.BETWEEN.search(text[floor : first.begin])
    if opening is not None and opening.group() != "在":  # 在 is before plain lists too, so 之间 must follow
        return True
    return text[second.end :].lstrip().startswith(("之间", "年间"))


def _read_amount(text: str, floor: int, amount: Amount, high: Named | None, after: Named | None) -> Condition:
    """Make the condition on an amount ("at least 5", "5 or more"), or on the range that ends at `high`.

    Words before the amount count from `floor` on; `after` is the amount or value that follows.
    """
    left = text[floor : amount.begin]
    operator, begin, end = "$eq", amount.begin, high.end if high else amount.end
    opening = cues.FROM.search(left)
    if high:
        opening = cues.BETWEEN.search(left) or opening
    else:
        for pattern, cue_operator in cues.LEFT:
            if match := pattern.search(left):
                operator, begin = cue_operator, floor + match.start()
                break
        right_cues = [*cues.RIGHT, (cues.ONWARD, "$gte")] if opening else cues.RIGHT
        for pattern, cue_operator in right_cues:
            match = pattern.match(text, end)
            # in "before 1995 or after 2015" the words belong to the next amount
            if match and not (isinstance(after, Amount) and _NEXT.fullmatch(text, match.end(), after.begin)):
                operator, end = cue_operator, match.end()
                break
    if opening and (high or operator == "$gte"):  # "between 5 and 7", "from 2010 on"
        begin = min(begin, floor + opening.start())
    begin = max(floor, min(begin, amount.name_begin))
    value, upper = amount.value, high and high.value
    return Condition(begin, end, amount.field, operator, value, upper, parts=amount.parts)


def choose_mentions(text: str, mentions: Sequence[Mention], purpose: Purpose) -> Iterator[Condition]:
    """Yield the conditions of the mentions that a text with such a purpose asks for."""
    for item, condition in mentions:
        if isinstance(item, Amount):
            if purpose != "documents" and cues.STATE_OF.match(text, condition.begin):
                # 截至2022年，存货有多少 asks for the state at that time
                condition = replace(condition, operator="$eq")
            yield condition
            continue
        # a document has one company, whose name chooses documents; it has many topics, whose names do not
        if purpose == "answer" or (purpose == "topic" and not item.field.many):
            if condition.negated and cues.POSSESSION.match(text, item.end):
                # "not in Acme's usual business" is about Acme
                condition = replace(condition, begin=item.begin, end=item.end, negated=False)
            is_meant = item.name and not item.field.many
        else:
            left = text[max(0, item.begin - cues.REACH) : item.begin]
            is_topic = purpose == "documents" or item.exact or condition.negated or cues.TOPIC.search(left)
            is_meant = item.sure and bool(is_topic)
        if is_meant or is_explicit(text, item):
            yield condition


def is_explicit(text: str, value: NamedValue) -> bool:
    """Tell whether a value is in quotes, or after the name of its field."""
    left = text[max(0, value.begin - cues.REACH) : value.begin]
    is_quoted = left.endswith(tuple(cues.OPENING)) and text[value.end : value.end + 1] in cues.CLOSING
    return is_quoted or name_before(left, value.field.name) is not None


def name_before(left: str, name: str) -> re.Match[str] | None:
    """Find a field's name at the end of a text, in the form of `level`, with at most words such as "is" after it."""
    # possessive (*+): a run of such words is never taken apart again, so that no text makes the search slow
    link = r"(?:\W|[为是]|\b(?:is|are|as|of|contains?|includes?|in)\b)*+"
    # no \b before the name: between two Chinese characters there is none
    return re.search(rf"(?<![A-Za-z0-9_]){re.escape(level(name))}{link}$", left, re.IGNORECASE)
