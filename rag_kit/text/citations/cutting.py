"""A sentence cut into clauses, and a statement into the assertions that it joins."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain, dropwhile, pairwise

from rag_kit.text.analysis import content_words
from rag_kit.text.citations.tokens import Token, placed_tokens
from rag_kit.text.language import HAN

_MIN_WORDS = 2  # content words of an assertion
_VERB = (
    r"(?:is|are|was|were|has|have|had|can|cannot|could|may|might|must|will|shall|should|does|do|did|it|they|its|their"
    r"|there|this|these)"
)
_ASSERTION = re.compile(
    rf"(?:，|；|(?<=[{HAN}%）)\w])[,;](?=[{HAN}]))"
    rf"|;\s|,\s(?:and|but|while|whereas)\s|\sand\s(?={_VERB}\b)|\s(?:while|whereas)\s"
)
# a piece that only says when, if or why another one holds
_DEPENDENT = re.compile(
    r"\s*(?:如|若|只[要有]|除|因|由于|虽|尽管|即[使便]|哪怕|无论|不论|根据|按|依|从|自|在|对于?|当|凡"
    r"|(?:if|when|unless|once|after|before|because|since|as|where|although|though|provided|until)\b)"
    r"|.*(?:[时后前外内中下的]|的话|以来|期间)$",
    re.IGNORECASE | re.DOTALL,
)
_CLAUSE = re.compile(
    rf"(?<![0-9０-９])，|，(?![0-9０-９])|[；：]|[,;:](?=\s(?!respectively))|(?<=[{HAN}%])[,;:](?=[{HAN}\d])|\s(?=(?:but|while|whereas|aber)\s)"
)
_LABEL = re.compile(r"(?:^|(?<=[，；,;。.]))[^，；,;:：。]{1,16}(?::\s|：)")
_IN_TURN = re.compile(r"\brespectively\b|分别|依次", re.IGNORECASE)
_AND = re.compile(r"\s(?=(?:and|und|from|plus|versus|vs\.?|compared (?:with|to))\s)|(?=而(?!且))")

Clause = list[Token]


def assertions(statement: str) -> list[str]:
    """Cut a statement at the commas and conjunctions that join whole assertions.

    A piece that only says when, if or why something holds stays with the piece after it; the last, with that before it.

    Example:
        >>> assertions("The tank holds 300 litres, and the pump is blue.")
        ['The tank holds 300 litres', 'the pump is blue.']
        >>> assertions("如果下雨，比赛改期，门票仍然有效。")
        ['如果下雨，比赛改期', '门票仍然有效。']
    """
    spans: list[tuple[int, int]] = []
    start = piece_start = 0  # of the assertion, and of the piece that it may end with
    for cut in [*_ASSERTION.finditer(statement), None]:
        end = cut.start() if cut else len(statement)
        is_dependent = _DEPENDENT.match(statement[piece_start:end])
        piece_start = cut.end() if cut else end
        if not is_dependent and len(content_words(statement[start:end])) >= _MIN_WORDS:
            spans.append((start, end))
            start = piece_start
    # what is left is no assertion, but the end of the last one
    if not spans or spans[-1][1] < len(statement):
        last_start, _ = spans.pop() if spans else (0, 0)
        spans.append((last_start, len(statement)))
    return [statement[start:end] for start, end in spans]


def clauses(text: str) -> list[Clause]:
    """Cut a sentence into clauses; "and" separates two only where both have a value.

    A clause that says when, if or why belongs to the one behind it. No clause ends inside a value, nor after a label
    such as "Price:" that stands before one.
    """
    placed = placed_tokens(text)
    value_spans = [(token.value.start, token.value.end) for _, token in placed if token.value]
    ends = {match.start() for match in _CLAUSE.finditer(text)}
    in_turn = _IN_TURN.search(text)
    if in_turn:  # commas join what the values are of
        ends = {end for end in ends if text[end] != ","}
    for label in _LABEL.finditer(text):
        ends.discard(label.start() + len(label[0].rstrip()) - 1)  # its colon
    ends = {end for end in ends if not any(first <= end < last for first, last in value_spans)}
    for start, end in pairwise([0, *sorted(ends)]):
        if _DEPENDENT.match(text[start:end].strip(" ，,")):  # 验收合格后十五日内，支付60%
            ends.discard(end)
    # each cut with whether "and" begins the part behind it
    cuts = sorted([*((end, False) for end in ends), *((cut.start(), True) for cut in _AND.finditer(text))])
    parts: list[tuple[bool, Clause]] = [(False, [])]
    for start, token in placed:
        while cuts and cuts[0][0] <= start:
            _, begins_with_and = cuts.pop(0)
            parts.append((begins_with_and, []))
        if token.key not in _JOINTS:
            parts[-1][1].append(token)
    return _join_parts(parts, bool(in_turn))


def has_own_subject(clause: Clause) -> bool:
    """Tell whether a clause begins with a name and says something of it, as "and Ben rang the bell" does."""
    content = [token for token in clause if token.content]
    is_first = bool(content) and content[0].name and clause[0].key not in _RELATIVE
    return is_first and any(not token.name and not token.value for token in content)


_RELATIVE = ("which", "who", "whom", "whose", "that", "where", "when")
_JOINTS = ("and", "und", "but", "aber", "而", "但")


def _goes_on(clause: Clause) -> bool:
    """Tell whether a clause says something behind its first value, as "5 EUR for children" does."""
    behind = list(dropwhile(lambda token: not token.value, clause))[1:]
    return any(token.content for token in behind)


def _join_parts(parts: Sequence[tuple[bool, Clause]], in_turn: bool) -> list[Clause]:
    """Join a part that "and" begins to the one before it, as in "milk and eggs".

    Not if both have a value, or if a comma is before the "and" and a name behind it: ", and Ben rang the bell".
    """
    joined: list[Clause] = []
    before: Clause = [Token("")]
    for begins_with_and, part in parts:
        is_after_comma, before = not before, part  # between a comma and the "and" is an empty part
        if begins_with_and and joined and not (is_after_comma and has_own_subject(part)):
            both_have_value = all(any(token.value for token in clause) for clause in (joined[-1], part))
            # "and 4:15 p.m." is one more value of the clause before, "and 5 EUR for children" says more
            says_more = not in_turn and all(map(_goes_on, (joined[-1], part)))
            if not both_have_value or (part[0].value and not says_more):
                joined[-1] += [Token("and"), *part]
                continue
        if part:
            joined.append(part)
    kinds = {token.value and token.value.dimension for token in chain(*joined[:1]) if token.content}
    # "In 1993, the firm moved": the time of what follows
    if len(joined) > 1 and kinds and kinds <= {"date", "clock"}:
        joined[:2] = [[*joined[0], *joined[1]]]
    return joined or [[]]
