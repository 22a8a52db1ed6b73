"""Whether the values of a statement stand beside the words that they stand beside in its passage."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from itertools import combinations
from typing import Literal

from rag_kit.text.citations.source import PassageSource, ValuePlace, content_keys, letters_of
from rag_kit.text.citations.tokens import Token, are_opposites
from rag_kit.text.values.reading import Value, find_values, same_value, uncounted

_MAY_CHANGE = re.compile(r"[改调推延提缩增降减更订]|\bto\b")
_IS = re.compile(r"(?P<label>[^，,。；;：:]{2,16}?)(?:是|为|系|：|:)\s?(?P<text>[^，,。；;]{2,40})")

_CHANGED = re.compile(
    r"(?:修改|变更|调整|更改|修订|推迟|延期|延长|提前|缩短|提[高升]|增加|上调|降低|减少|下调|改)后?[为到至成的][^，。；]{0,10}$"
)
_CHANGED_TO = re.compile(
    r"\b(?:chang|amend|rais|increas|reduc|extend|lower|revis|adjust|cut|mov|postpon)\w*\b[^.;]{0,40}\bto\s$",
    re.IGNORECASE,
)
_NAMES = (
    "[甲乙丙丁]方|(?:出租|承租|发包|承包|委托|受托|托运|承运|买|卖|转让|受让|供|需|出借|借款|担保)[方人]"
    "|用人单位|劳动者"
)
_COMPARISONS = (
    re.compile(
        r"(?P<left>[^.;,]*?)\b(?P<how>\w+er|(?:more|less|fewer)(?: \w+)?) than (?P<right>[^.;,()]+)",
        re.IGNORECASE,
    ),
    re.compile(
        r"(?P<left>[^，。；]+?)比(?P<right>[^，。；]{1,12}?)[更还要]?(?P<how>[高低大小多少长短重轻快慢早晚贵好差强弱]|便宜)"
    ),
)
_PARTY = re.compile(
    rf"(?P<to>[向给对为与和同]|支付|通知|赔偿|补偿|告知|交付|归还|退还|提供)?(?P<name>{_NAMES})(?P<of>的|所在)?"
)
_DUTY = re.compile(
    rf"(?<![向给对为与和同])(?P<name>{_NAMES})[^，。；,;]{{0,6}}?(?:有权|无权|应当?|必须|不得|负责)(?P<action>[^，。；,;\n]{{3,40}})"
)
Placed = Literal["wrong", "all", "some", "open"]
_MAX_PLACED = 20  # values of a statement that are compared by what stands beside them


def says(said: Value, stated: Value) -> bool:
    """Tell whether a passage that says one value supports the other: equal, or with less said of its unit."""
    if same_value(stated, said):
        return True
    if stated.bound and said.bound and stated.bound != said.bound:
        return False
    if stated.dimension:
        return not stated.per and bool(said.per) and same_value(stated, uncounted(said))
    return bool(said.unit) and said.dimension != "ratio" and stated.amount == said.amount


def place_values(
    stated: Sequence[Token], parts: Sequence[Sequence[Token]], places: Sequence[ValuePlace]
) -> Placed:
    """Tell where the values of a statement stand in its passage.

    "wrong": another value stands beside the statement's words; "all" or "some": so many that have rivals stand beside
    them for sure; "open": nothing tells.
    """
    if _have_swapped(parts, places):
        return "wrong"
    values = [(token.key, token.value) for token in stated if token.value][:_MAX_PLACED]
    words, mine = content_keys(stated), [value for _, value in values]
    found = [_place_value(value, words - {key}, words, mine, places) for key, value in values]
    if "wrong" in found:
        return "wrong"
    sure, unsure = found.count("sure"), found.count("unsure")
    return "open" if not sure else "some" if unsure else "all"


def _place_value(
    value: Value, beside: Set[str], words: Set[str], mine: Sequence[Value], places: Sequence[ValuePlace]
) -> Literal["wrong", "sure", "unsure", "alone"]:
    """Tell whether a value stands beside some words of a statement better than all that could stand in its place."""
    same = [place for place in places if value.dimension != "id" and says(place.value, value)]
    same = [place for place in same if place.value.bound == value.bound] or same
    kind = _kind(same[0].value) if same else ""
    rivals = [
        place
        for place in places
        if same and _kind(place.value) == kind and not any(says(place.value, one) for one in mine)
    ]
    if not rivals:
        return "alone"
    if all(_is_of_another(words, place, rivals) for place in same):
        return "wrong"
    best = max(same, key=lambda place: _fit(beside, place))
    if any(_is_nearer(beside, rival, best) for rival in rivals):
        return "wrong"
    return "sure" if _fit(beside, best) > max(_fit(beside, rival) for rival in rivals) else "unsure"


def _have_swapped(parts: Sequence[Sequence[Token]], places: Sequence[ValuePlace]) -> bool:
    """Tell whether two values of a statement each stand beside words that stand beside the other in the passage."""
    held = [
        (token.value, {one.key for one in part if one.content and not one.value})
        for part in parts
        for token in part
        if token.value
    ][:_MAX_PLACED]
    found = [(value, words, [place for place in places if says(place.value, value)]) for value, words in held]
    for (value, words, at), (other, others, there) in combinations(found, 2):
        if words is others or not (len(at) == len(there) == 1) or _kind(value) != _kind(other):
            continue
        straight = len(words & at[0].own) + len(others & there[0].own)
        if len(words & there[0].own) + len(others & at[0].own) > straight:
            return True
    return False


def _is_of_another(words: Set[str], place: ValuePlace, rivals: Sequence[ValuePlace]) -> bool:
    """Tell whether a value is said of another thing than a statement names, whose value its sentence has too."""
    if not place.subject or place.subject & words:
        return False
    return any(rival.subject & words and rival.section[0] == place.section[0] for rival in rivals)


def swaps_roles(statement: str, sentence: str, passage: PassageSource) -> str:
    """Return the reason why a statement gives something to another than the passage does, or "".

    "number": a value before and after a change are swapped; "name": a text stands beside another label; "order": the
    parties of an action, or the sides of a comparison, are swapped.
    """
    was, now = _changed_values(statement)
    if was or now:  # most statements say nothing of a change: the passage is not read for one
        old, new = _changed_values(passage.plain(0, None))
        if any(_is_only(one, new, old) for one in was) or any(_is_only(one, old, new) for one in now):
            return "number"
    if _is_mislabelled(statement, passage.labels):
        return "name"
    stated, said = _parties(statement), _parties(sentence)
    for name, roles in stated.items():
        there = said.get(name)
        if there and not there & roles and any(roles & other for other in said.values()):
            return "order"
    if _is_comparison_turned(statement, sentence):
        return "order"
    stated_duties = _duties(statement)
    said_duties = _duties(passage.plain(0, None)) if stated_duties else []
    for name, action in stated_duties:
        others = {one for one, said_action in said_duties if action in said_action or said_action in action}
        if others and name not in others:
            return "order"
    return ""


def _is_comparison_turned(statement: str, sentence: str) -> bool:
    """Tell whether a statement puts what a sentence has behind "than" before it, with the same comparative."""
    said = _comparisons(sentence)
    return any(
        how == same and other in left and other not in right
        for left, how, right in _comparisons(statement)
        for _, same, other in said
    )


def _comparisons(text: str) -> list[tuple[str, str, str]]:
    """The comparisons of a text: what is compared, the comparative, and with what, in letters."""
    return [
        (letters_of(match["left"]), match["how"].lower(), letters_of(match["right"]).strip())
        for pattern in _COMPARISONS
        for match in pattern.finditer(text)
    ]


def _changed_values(text: str) -> tuple[list[Value], list[Value]]:
    """The values that a text says were changed, and those that they were changed to."""
    old: list[Value] = []
    new: list[Value] = []
    before: Value | None = None
    for value in find_values(text) if _MAY_CHANGE.search(text) else ():  # most say nothing of a change
        between = text[before.end if before else 0 : value.begin]
        if _CHANGED.search(between) or _CHANGED_TO.search(text, max(0, value.begin - 60), value.begin):
            new.append(value)
            old += [before] if before and _kind(before) == _kind(value) else []
        before = value
    return old, new


def _is_only(value: Value, these: Sequence[Value], others: Sequence[Value]) -> bool:
    return any(says(one, value) for one in these) and not any(says(one, value) for one in others)


def _is_mislabelled(statement: str, labels: Mapping[str, Set[str]]) -> bool:
    """Tell whether a statement has beside a label what stands in the passage only beside another."""
    for match in _IS.finditer(statement):
        label, text = letters_of(match["label"]).strip(), letters_of(match["text"]).strip()
        own = next((labels[name] for name in labels if len(name) > 1 and label.endswith(name)), None)
        if (
            not own
            or not text
            or find_values(match["text"])
            or any(text in one or one in text for one in own)
        ):
            continue
        if any(text in one for texts in labels.values() for one in texts):
            return True
    return False


def _parties(text: str) -> dict[str, set[str]]:
    """The parties of a contract, each with its roles: who does something ("by"), or to whom it is done ("to")."""
    roles: dict[str, set[str]] = {}
    for match in _PARTY.finditer(text):
        if not match["of"]:
            roles.setdefault(match["name"], set()).add("to" if match["to"] else "by")
    return roles


def _duties(text: str) -> list[tuple[str, str]]:
    """The parties of a contract with what each may, must or must not do."""
    return [(match["name"], letters_of(match["action"]).strip()) for match in _DUTY.finditer(text)]


def _kind(value: Value) -> str:
    """The dimension of a value, whatever it is counted by."""
    return value.dimension.split("/")[0]


def _is_nearer(words: Set[str], rival: ValuePlace, best: ValuePlace) -> bool:
    """Say if a value stands nearer to the words than another; a later one needs a word that goes with it alone."""
    alone = rival.own
    if rival.section != best.section:
        alone, there = rival.own | rival.part, best.own | best.part
        if any(are_opposites(one, other) for one in words & alone - there for other in there - words):
            return True  # after the signing, where the other is after the handing over
    apart = words & alone - (best.own | best.within)
    if _fit(words, rival)[:3] == _fit(words, best)[:3]:
        return rival.own <= words and not best.own <= words  # of large tanks, where the statement is of tanks
    # "14 months with the drug and 9 months in the control arm": the second has a word of its own, and no other
    beside = rival.own <= words or len(words & rival.own) >= len(words & best.own)
    return beside and _fit(words, rival) > _fit(words, best) and bool(apart or rival.order < best.order)


def _fit(words: Set[str], place: ValuePlace) -> tuple[int, ...]:
    """How many of the words stand beside a value: in sentence and part up to it, its clause, the sentence before."""
    own = place.own
    return tuple(len(words & near) for near in (own | place.within, own | place.part, own, place.before))
