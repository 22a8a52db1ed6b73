"""Whether a statement in the words of a passage exchanges two things: sides of a change, parties, labels, an order."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import pairwise, permutations, product
from typing import NamedTuple

from rag_kit.text.citations.change import VOICE
from rag_kit.text.citations.cutting import Clause, has_own_subject
from rag_kit.text.citations.placing import IN_TURN, kind_of, says
from rag_kit.text.citations.source import PassageSource, labelled, letters_of
from rag_kit.text.citations.tokens import (
    JOINING,
    MODALS,
    PRONOUNS,
    Token,
    are_opposites,
    content_keys,
    tokens,
)
from rag_kit.text.language import word_set
from rag_kit.text.values.reading import find_values
from rag_kit.text.values.value import Value

_IS = re.compile(r"(?P<label>[^，,。；;：:]{2,16}?)(?:是|为|系|：|:)\s?(?P<text>[^，,。；;]{2,40})")
# two sides and what is between them; where "what" is no group, left is first or the cause, right second or the effect
_RELATIONS = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"(?P<left>[^.;,]*?)\b(?P<what>\w+er|(?:more|less|fewer)(?: \w+)?) than (?P<right>[^.;,()]+)",
        r"(?P<left>[^，。；]+?)比(?P<right>[^，。；]{1,12}?)[更还要]?(?P<what>[高低大小多少长短重轻快慢早晚贵好差强弱]|便宜)",
        r"(?P<left>[^。；]+?)(?<!不)(?P<what>[高低大小多少长短早晚优劣]于|不如|不及|超过)(?P<right>[^，。；\d]{2,16})",
        r"^\W*(?:before|prior to)\s(?P<right>[^,.;]+),(?P<left>[^.;]+)",
        r"^\W*(?:after|once|because|since|as)\s(?P<left>[^,.;]+),(?P<right>[^.;]+)",
        r"(?P<left>[^.;]+?)\b(?:before|prior to|and then)\s(?P<right>[^.;]+)",
        r"(?P<left>[^.;]+?)\b(?:cause[sd]?|le(?:ads?|d) to|result(?:s|ed|ing) in)\s(?!by\b)(?P<right>[^.;]+)",
        r"(?P<right>[^.;]+?)\b(?:due to|caused by|as a result of|because(?: of)?|after|once)\s(?P<left>[^.;]+)",
        r"(?:因为|由于|因)(?P<left>[^，,。；]+)[，,](?P<right>[^。；]+)",
        r"(?P<right>[^。；]+?)[，,]?(?:是因为|原因是|[系是][由因])(?P<left>[^。；]+)",
        r"(?P<left>[^，。；]+?)(?:导致|引发|造成|引起)了?(?P<right>[^，。；]+)",
        r"先(?P<left>[^。；]+?)[，,]?(?:再|然后|而后|接着|之?后)(?P<right>[^。；]+)",
        r"(?P<right>[^，。；]+?)之?前[，,](?P<left>[^。；]+)",
        r"(?P<left>[^，。；]+?)[之以]?后[，,]?(?P<right>[^。；]+)",
    )
]
_ROLES = word_set("to from by 将 把 给 向 从 由 被 到 往 至 对 请 让 要求 委托 邀请 授权 通知")
_ARTICLES = word_set("the a an")
_FROM = re.compile(r"(?:\bfrom|从|由|自)\s?$", re.IGNORECASE)
_TO = re.compile(r"\s?(?:to|[^，。；\d]{0,6}[至到为成])\s?")
_STEP = re.compile(
    r"\b(?:chang|amend|rais|rose|ris|increas|reduc|extend|lower|revis|adjust|cut|mov|postpon|f[ae]ll|grew|grow|declin"
    r"|decreas|drop)\w*[^.;]{0,40} (?:(?P<by>by)|to) $"
    r"|(?:[增减降涨跌升提缩][\u4e00-\u9fff]?|修改|变更|调整|更改|修订|推迟|延期|延长|上调|下调|改)"
    r"(?:(?P<by_han>了)|后?[至到为成的][^，。；]{0,10})约?$",
    re.IGNORECASE,
)
_FALLS = re.compile(
    r"(?:下降|下跌|下滑|减少|降低|缩减|回落|\b(?:decreas|f[ae]ll|declin|drop|reduc|lower|down)\w*(?: by)?)了?约? ?$",
    re.IGNORECASE,
)
_OLD = re.compile(r"[前原旧]$|^[原旧]|^(?:before|old|former)\b|\bbefore$", re.IGNORECASE)
_NEW = re.compile(r"[后新]$|^新|^(?:after|new|revised)\b|\bafter$", re.IGNORECASE)
_STEP_WITHIN = 60  # characters before a value in which a verb of change is looked for
_FROM_WITHIN = 6  # characters before a value in which "from" is looked for


def find_exchange(
    statement: str,
    stated: Sequence[Token],
    passage: PassageSource,
    parts: Sequence[Sequence[Clause]] = (),
    quote: str = "",
) -> str:
    """Return the reason why a statement exchanges things that the passage tells apart, or "".

    "number": the values before and after a change; "name": the texts of two labels, who holds a post, what parties may
    and must do, or names of two `parts` of a sentence; "order": the sides of a comparison, first and second, cause and
    effect, or who does something to whom. For an order the statement must be in the words of a `quote`: in a
    paraphrase, it tells nothing.
    """
    if _is_change_turned(statement, passage) or _has_other_sign(statement, passage):
        return "number"
    if _is_mislabelled(statement, passage.labels) or _names_another_part(stated, parts):
        return "name"
    if quote and (_are_sides_turned(statement, quote) or _are_roles_swapped(statement, quote)):
        return "order"
    return ""


def _names_another_part(stated: Sequence[Token], sentence: Sequence[Sequence[Clause]]) -> bool:
    """Tell whether a part of a sentence has all that a statement says but for the names, which another part has.

    "Signed by Ann; Ben was absent" does not say "signed by Ben". The clauses of a sentence are given between its
    semicolons; a part also begins with a clause that has a name first and says something of it.
    """
    parts: list[Clause] = []
    for clauses in sentence:
        for number, clause in enumerate(clauses):
            if not number or has_own_subject(clause):
                parts.append([*clause])
            else:
                parts[-1] += clause
    keys = [content_keys(part) for part in parts]
    all_keys = set[str]().union(*keys)
    stated_keys = content_keys(stated)
    names = {token.key for token in stated if token.name}
    if len(parts) < 2 or not names or any(stated_keys <= words for words in keys):
        return False
    for part, words in zip(parts, keys, strict=True):
        missing = names - words
        has_other_name = any(token.name and token.key not in stated_keys for token in part)
        has_pronoun = any(token.key in PRONOUNS for token in part)  # which the missing name may be
        rest = stated_keys - names
        for others in keys if missing and has_other_name and not has_pronoun else ():
            # what is said of the names is in this part alone, or before both, as "Contacts:" is
            is_here_alone = bool(rest & words - others) and rest & others <= words and rest <= all_keys
            if missing <= others and (rest <= words or is_here_alone):
                return True
    return False


def _is_change_turned(statement: str, passage: PassageSource) -> bool:
    """Tell whether a statement has a value on another side of a change than the passage, which has it there only."""
    stated = _sides_of_change(statement)
    if not stated:  # most statements say nothing of a change: the passage is not read for one
        return False
    said = [*_sides_of_change(passage.plain()), *_sides_of_columns(passage)]
    for side, value in stated:
        sides = {other for other, one in said if says(one, value)}
        # what a value changes from, it may have reached by an earlier change
        if sides and side != "from" and side not in sides:
            return True
    return False


def says_change(statement: str, passage: PassageSource) -> bool:
    """Tell whether a statement has each of its values on the side of a change on which the passage has it."""
    stated = _sides_of_change(statement)
    if not stated:
        return False
    said = _sides_of_change(passage.plain())
    are_said = all(any(side == other and says(one, value) for other, one in said) for side, value in stated)
    kinds = {kind_of(value) for _, value in stated}
    return are_said and len(stated) == sum(kind_of(value) in kinds for value in find_values(statement))


def _sides_of_change(text: str) -> list[tuple[str, Value]]:
    """Return values with their sides of a change: "by" which, "from" which, or "to" which something changes."""
    sides: list[tuple[str, Value]] = []
    previous: Value | None = None
    for value in find_values(text):
        step = _STEP.search(text, max(0, value.begin - _STEP_WITHIN), value.begin)
        is_amount = step is not None and bool(step["by"] or step["by_han"])  # rose by 5%
        if step:
            sides.append(("by" if is_amount else "to", value))
        is_of_kind = previous is not None and kind_of(previous) == kind_of(value)
        # the fee of 5 EUR was raised to 7 EUR; the fee went from 5 EUR to 7 EUR
        if previous and is_of_kind and ((step and not is_amount) or _is_range(text, previous, value)):
            sides += [("from", previous), ("to", value)]
        previous = value
    return sides


def _sides_of_columns(passage: PassageSource) -> Iterator[tuple[str, Value]]:
    """Yield the values of a passage's tables whose header says that they are old ("from") or new ("to")."""
    for cell in (cell for row in passage.rows for cell in row.row):
        for side, header in (("from", _OLD), ("to", _NEW)):
            if header.search(cell.header):
                yield from ((side, value) for value in cell.values)


def _is_range(text: str, start: Value, end: Value) -> bool:
    """Tell whether a text says "from" before one value, and "to" between it and the next one."""
    is_begun = _FROM.search(text, max(0, start.begin - _FROM_WITHIN), start.begin)
    return is_begun is not None and _TO.fullmatch(text, start.end, end.begin) is not None


def _has_other_sign(statement: str, passage: PassageSource) -> bool:
    """Tell whether a statement has a rise by a value that has a minus in the passage, or a fall by one with a plus."""
    cells = (cell for row in passage.rows for cell in row.row if cell.text.startswith("+"))
    rising = {value.normal for cell in cells for value in cell.values}
    normals = {place.value.normal for place in passage.places}
    falling = {normal[1:] for normal in normals if normal.startswith("-") and normal[1:] not in normals}
    for value in find_values(statement) if rising or falling else ():
        falls = _FALLS.search(statement, max(0, value.start - _STEP_WITHIN), value.start)
        if value.normal in (rising if falls else falling):
            return True
    return False


def _is_mislabelled(statement: str, labels: Mapping[str, Set[str]]) -> bool:
    """Tell whether a statement gives a label a text that the passage has only beside other labels."""
    # values are compared elsewhere: a label may have its value in another form
    said = (match for match in _IS.finditer(statement) if not find_values(match["text"]))
    pairs = [(match["label"], match["text"]) for match in said] + labelled(statement)
    for stated_label, stated_text in pairs:
        label, text = letters_of(stated_label).strip(), letters_of(stated_text).strip()
        own_texts = next((labels[name] for name in labels if len(name) > 1 and label.endswith(name)), None)
        if own_texts is None or not text:
            continue
        if any(text in known or known in text for known in own_texts):
            continue
        if any(text in known for texts in labels.values() for known in texts):
            return True
    return False


class _Relation(NamedTuple):
    """Two sides of a text by their content words, and the comparative between them, or "" for cause or order."""

    left: set[str]
    what: str
    right: set[str]


def _are_sides_turned(statement: str, sentence: str) -> bool:
    """Tell whether a statement exchanges the sides of "longer than", or what is first or a cause in a sentence."""
    stated = _relations(statement)
    said = _relations(sentence) if stated else []
    for one, other in product(stated, said):
        is_opposite = bool(one.what and other.what) and are_opposites(one.what, other.what)
        if is_opposite and all(one.what != relation.what for relation in said):
            other = _Relation(other.right, one.what, other.left)  # A is shorter than B: B is longer than A
        to_left, to_right = (one.left & other.right) - other.left, (one.right & other.left) - other.right
        # a comparison may name its left side sentences before: "and was therefore faster than the kettle"
        is_crossed = to_right or (one.what and not one.right & other.right)
        if one.what == other.what and to_left and is_crossed:
            return True
    return False


def _relations(text: str) -> list[_Relation]:
    """Return the relations that a text states."""
    relations = []
    for match in (match for pattern in _RELATIONS for match in pattern.finditer(text)):
        left, right = (content_keys(tokens(match[side])) for side in ("left", "right"))
        relations.append(_Relation(left, match.groupdict().get("what", "").lower(), right))
    return relations


def _are_roles_swapped(statement: str, sentence: str) -> bool:
    """Tell whether two names change roles: "from B to A" for "from A to B", or "B beat A" for "A beat B"."""
    texts = [
        [token for token in tokens(text) if token.key not in _ARTICLES] for text in (statement, sentence)
    ]
    names = {token.key for text in texts for token in text if token.name}
    # a name that occurs twice may be on both sides of a verb
    once = {name for name in names if all([token.key for token in text].count(name) == 1 for text in texts)}
    stated, said = (_roles(text, names, once) for text in texts)
    if _have_agents_turned(*texts) or _is_list_turned(*texts):
        return True
    for one, other in permutations(stated.keys() & said.keys(), 2):
        if (stated[one] & said[other]) - said[one] - stated[other]:
            return True
    return False


def _is_list_turned(stated: Sequence[Token], said: Sequence[Token]) -> bool:
    """Tell whether a statement has one of the two lists of a sentence with "respectively" in another order."""
    if not all(any(token.key in IN_TURN for token in text) for text in (stated, said)):
        return False
    places = {token.key: number for number, token in enumerate(said) if token.content}
    order = [places[token.key] for token in stated if token.content and token.key in places]
    lists = order[: len(order) // 2], order[len(order) // 2 :]
    first, second = (part == sorted(part) for part in lists)
    return first != second


def _have_agents_turned(stated: Sequence[Token], said: Sequence[Token]) -> bool:
    """Tell whether what is before a statement's modal verb is behind that of a sentence, and the reverse."""
    sides: list[tuple[str, set[str]]] = []
    for text in (stated, said):
        modal = next((n for n, token in enumerate(text) if token.key in MODALS and n), None)
        if modal is None or VOICE.intersection(token.key for token in text):
            return False
        sides.append((text[modal - 1].key, {token.key for token in text[modal:] if token.content}))
    (agent, after), (said_agent, said_after) = sides
    return agent in said_after - after and said_agent in after - said_after


def _roles(text: Sequence[Token], names: Set[str], once: Set[str]) -> dict[str, set[str]]:
    """Map each name and Chinese content word to its roles: the prepositions before it, and of names the side of verbs.

    Sides are those of the names that occur `once`.
    """
    roles: dict[str, set[str]] = {}
    for before, token in pairwise([Token(""), *text]):
        if token.key in names or (token.content and not token.value):
            roles.setdefault(token.key, set()).update({before.key} & _ROLES)
    for name, side in _sides_of_verbs(text, once):
        roles[name].add(side)
    return roles


def _sides_of_verbs(text: Sequence[Token], names: Set[str]) -> Iterator[tuple[str, str]]:
    """Yield names with their side of each word that is no name; of one before "by" and a name, as if it were active.

    None if "and" joins words, or another passive tells who acts.
    """
    keys = [token.key for token in text]
    passive = next((n for n in range(len(text) - 2) if keys[n + 1] == "by" and keys[n + 2] in names), None)
    if JOINING.intersection(keys) or (passive is None and VOICE.intersection(keys)):
        return
    once = [n for n, key in enumerate(keys) if keys.count(key) == 1]
    places = [(n, keys[n]) for n in once if keys[n] in names]
    for n in once:
        token = text[n]
        if token.content and not token.value and not token.name and passive in (None, n):
            for place, name in places:
                is_left = (place < n) != (passive == n)
                yield name, f"{'left' if is_left else 'right'} of {token.key}"
