"""Whether a statement in the words of a passage exchanges two things: sides of a change, parties, labels, an order."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from itertools import permutations, product
from typing import NamedTuple

from rag_kit.text.citations.change import VOICE
from rag_kit.text.citations.cutting import Clause, has_own_subject
from rag_kit.text.citations.placing import kind_of, says
from rag_kit.text.citations.source import PassageSource, letters_of, posts
from rag_kit.text.citations.tokens import Token, content_keys, tokens
from rag_kit.text.language import word_set
from rag_kit.text.values.reading import find_values
from rag_kit.text.values.value import Value

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
        r"(?P<left>[^.;,]*?)\b(?P<degree>\w+er|(?:more|less|fewer)(?: \w+)?) than (?P<right>[^.;,()]+)",
        re.IGNORECASE,
    ),
    re.compile(
        r"(?P<left>[^，。；]+?)比(?P<right>[^，。；]{1,12}?)[更还要]?(?P<degree>[高低大小多少长短重轻快慢早晚贵好差强弱]|便宜)"
    ),
    re.compile(
        r"(?P<left>[^。；]+?)(?<!不)(?P<degree>[高低大小多少长短早晚优劣]于|不如|不及|超过)(?P<right>[^，。；\d]{2,16})"
    ),
)
_SEQUENCES = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"^\W*(?:before|prior to)\s(?P<second>[^,.;]+),(?P<first>[^.;]+)",
        r"^\W*(?:after|once|because|since|as)\s(?P<first>[^,.;]+),(?P<second>[^.;]+)",
        r"(?P<first>[^.;]+?)\b(?:before|prior to|and then)\s(?P<second>[^.;]+)",
        r"(?P<first>[^.;]+?)\b(?:cause[sd]?|le(?:ads?|d) to|result(?:s|ed|ing) in)\s(?!by\b)(?P<second>[^.;]+)",
        r"(?P<second>[^.;]+?)\b(?:due to|caused by|as a result of|because(?: of)?)\s(?P<first>[^.;]+)",
        r"(?:因为|由于|因)(?P<first>[^，,。；]+)[，,](?P<second>[^。；]+)",
        r"(?P<second>[^。；]+?)[，,]?(?:是因为|原因是|[系是][由因])(?P<first>[^。；]+)",
        r"(?P<first>[^，。；]+?)(?:导致|引发|造成|引起)了?(?P<second>[^，。；]+)",
        r"(?P<second>[^.;]+?)\b(?:after|once)\s(?P<first>[^.;]+)",
        r"先(?P<first>[^。；]+?)[，,]?(?:再|然后|而后|接着|之?后)(?P<second>[^。；]+)",
        r"(?P<second>[^，。；]+?)之?前[，,](?P<first>[^。；]+)",
        r"(?P<first>[^，。；]+?)[之以]?后[，,]?(?P<second>[^。；]+)",
    )
]
_ROLES = word_set("to from by 给 向 从 由 被 到 往 至 对 请 让 要求 委托 邀请 授权 通知")
_AND = word_set("and or 和 与 及 以及 或")
_PRONOUNS = word_set("he she it they him her them his its their 他 她 它 他们 该 其 此")
_ARTICLES = word_set("the a an")
_FROM = re.compile(r"(?:\bfrom|从|由|自)\s?$", re.IGNORECASE)
_TO = re.compile(r"\s?(?:to|[^，。；\d]{0,6}[至到为成])\s?")
_STEP = re.compile(
    r"\b(?:chang|rais|rose|ris|increas|reduc|lower|cut|f[ae]ll|grew|grow|declin|decreas|drop)\w*[^.;,]{0,30}"
    r" (?:(?P<by>by)|to) $"
    r"|[增减降涨跌升提缩][\u4e00-\u9fff]?(?:(?P<by_han>了)|[至到为](?:[^，。；]{0,8}的)?)约?$",
    re.IGNORECASE,
)
_FALLS = re.compile(
    r"(?:下降|下跌|下滑|减少|降低|缩减|回落|\b(?:decreas|f[ae]ll|declin|drop|reduc|lower|down)\w*(?: by)?)了?约? ?$",
    re.IGNORECASE,
)
_STEP_WITHIN = 48  # characters before a value in which a verb of change is looked for
_FROM_WITHIN = 6  # characters before a value in which "from" is looked for
_DUTY = re.compile(
    rf"(?<![向给对为与和同])(?P<name>{_NAMES})[^，。；,;]{{0,6}}?(?:有权|无权|应当?|必须|不得|负责)(?P<action>[^，。；,;\n]{{3,40}})"
)
_CHANGE_WORDS = 60  # characters before a value in which English words that say it was changed are looked for


def swaps_roles(statement: str, sentence: str, passage: PassageSource) -> str:
    """Return the reason why a statement exchanges things that the passage tells apart, or "".

    "number": the values before and after a change; "name": the texts of two labels; "order": the sides of a comparison,
    or who may or must do something.
    """
    if _is_change_turned(statement, passage) or _has_other_sign(statement, passage):
        return "number"
    if _is_mislabelled(statement, passage.labels):
        return "name"
    if _is_comparison_turned(statement, sentence) or _is_duty_of_another(statement, passage):
        return "order"
    return ""


def names_of_another_part(stated: Sequence[Token], sentence: Sequence[Sequence[Clause]]) -> bool:
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
    stated_keys = content_keys(stated)
    names = {token.key for token in stated if token.name}
    if len(parts) < 2 or not names or any(stated_keys <= words for words in keys):
        return False
    for part, words in zip(parts, keys, strict=True):
        missing = names - words
        has_other_name = any(token.name and token.key not in stated_keys for token in part)
        has_pronoun = any(token.key in _PRONOUNS for token in part)  # which the missing name may be
        if missing and has_other_name and not has_pronoun and stated_keys - names <= words:
            return any(missing <= others for others in keys)
    return False


def turns_order(statement: str, sentence: str) -> bool:
    """Tell whether a statement exchanges first and second, cause and effect, or who does something to whom.

    It must be in the sentence's words: in a paraphrase, an order tells nothing.
    """
    return _is_sequence_turned(statement, sentence) or _are_roles_swapped(statement, sentence)


class _Changes(NamedTuple):
    """Changes of values that a text states, from one reading of its values."""

    steps: list[tuple[str, Value]]  # a value by which ("by"), or to which ("to"), something changes
    ranges: list[tuple[Value, Value]]  # from one value to another one of its kind
    old: list[Value]  # changed to another value
    new: list[Value]  # what they were changed to


def _is_change_turned(statement: str, passage: PassageSource) -> bool:
    """Tell whether a statement has a value before a change that the passage has only after it, or the reverse."""
    stated = _changes(statement)
    if not any(stated):  # most statements say nothing of a change: the passage is not read for one
        return False
    said = _changes(passage.plain())
    for step, value in stated.steps:
        steps = {other for other, one in said.steps if says(one, value)}
        if steps and step not in steps:
            return True
    for start, end in stated.ranges:
        if _has_range(said.ranges, end, start) and not _has_range(said.ranges, start, end):
            return True
    return any(_is_only(value, said.new, said.old) for value in stated.old) or any(
        _is_only(value, said.old, said.new) for value in stated.new
    )


def _changes(text: str) -> _Changes:
    """Read the changes of values that a text states: how far, from and to which value, and the old and new values."""
    changes = _Changes([], [], [], [])
    may_change = _MAY_CHANGE.search(text) is not None
    previous: Value | None = None
    for value in find_values(text):
        if step := _STEP.search(text, max(0, value.begin - _STEP_WITHIN), value.begin):
            changes.steps.append(("by" if step["by"] or step["by_han"] else "to", value))  # rose by 5%
        is_of_kind = previous is not None and kind_of(previous) == kind_of(value)
        if previous and is_of_kind and _is_range(text, previous, value):  # from 5 to 7
            changes.ranges.append((previous, value))
        between = text[previous.end if previous else 0 : value.begin]
        first = max(0, value.begin - _CHANGE_WORDS)
        if may_change and (_CHANGED.search(between) or _CHANGED_TO.search(text, first, value.begin)):
            changes.new.append(value)  # the fee of 5 EUR was raised to 7 EUR
            if previous and is_of_kind:
                changes.old.append(previous)
        previous = value
    return changes


def _is_range(text: str, start: Value, end: Value) -> bool:
    """Tell whether a text says "from" before one value, and "to" between it and the next one."""
    is_begun = _FROM.search(text, max(0, start.begin - _FROM_WITHIN), start.begin)
    return is_begun is not None and _TO.fullmatch(text, start.end, end.begin) is not None


def _has_range(ranges: Sequence[tuple[Value, Value]], start: Value, end: Value) -> bool:
    """Tell whether a range of the list says what a stated one does."""
    return any(says(first, start) and says(last, end) for first, last in ranges)


def _is_only(value: Value, these: Sequence[Value], others: Sequence[Value]) -> bool:
    """Tell whether a value is among some values, and not among others."""
    return any(says(one, value) for one in these) and not any(says(one, value) for one in others)


def _has_other_sign(statement: str, passage: PassageSource) -> bool:
    """Tell whether a statement has a rise by a value that has a minus in the passage, or a fall by one with a plus."""
    cells = (cell for row in passage.rows.values() for cell in row.cells if cell.text.startswith("+"))
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
    labelled = [(match["label"], match["text"]) for match in _IS.finditer(statement)] + posts(statement)
    for stated_label, stated_text in labelled:
        label, text = letters_of(stated_label).strip(), letters_of(stated_text).strip()
        own_texts = next((labels[name] for name in labels if len(name) > 1 and label.endswith(name)), None)
        if not own_texts or not text or find_values(stated_text):
            continue
        if any(text in known or known in text for known in own_texts):
            continue
        if any(text in known for texts in labels.values() for known in texts):
            return True
    return False


def _is_sequence_turned(statement: str, sentence: str) -> bool:
    """Tell whether a statement exchanges first and second, or cause and effect, of a sentence."""
    stated = _sequences(statement)
    said = _sequences(sentence) if stated else []
    for (first, second), (said_first, said_second) in product(stated[:1], said):
        straight = len(first & said_first) + len(second & said_second)
        crossed = len(first & said_second), len(second & said_first)
        if all(crossed) and sum(crossed) > straight:
            return True
    return False


def _sequences(text: str) -> list[tuple[set[str], set[str]]]:
    """Return pairs from a text: the content words of the first event or cause, and those of the second or effect."""
    return [
        (content_keys(tokens(match["first"])), content_keys(tokens(match["second"])))
        for pattern in _SEQUENCES
        for match in pattern.finditer(text)
    ]


def _are_roles_swapped(statement: str, sentence: str) -> bool:
    """Tell whether two names change roles: "from B to A" for "from A to B", or "B beat A" for "A beat B"."""
    stated_tokens, said_tokens = tokens(statement), tokens(sentence)
    names = {token.key for token in (*stated_tokens, *said_tokens) if token.name}
    stated, said = _roles(stated_tokens, names), _roles(said_tokens, names)
    both = [word for word in stated if word in said]
    if not any(token.key in _AND for token in (*stated_tokens, *said_tokens)):
        agents, said_agents = _agents(stated_tokens), _agents(said_tokens)
        is_plain = not VOICE & {token.key for token in (*stated_tokens, *said_tokens)}
        one_sided = {name: verb for name, verb in (agents | said_agents).items() if name in names}
        for one, other in permutations(names, 2):
            if is_plain and _is_turned(one, other, stated_tokens, said_tokens):
                return True
            # "A was seen by B" is "B saw A"
            verb = one_sided.get(one) or one_sided.get(other)
            is_passive = verb is not None and (agents.keys() & {one, other}) != (
                said_agents.keys() & {one, other}
            )
            if is_passive and _is_turned(one, other, stated_tokens, said_tokens[::-1], verb):
                return True
    for one, other in permutations(both, 2):
        for role in stated[one] & said[other] - {""}:
            if role not in said[one] and role not in stated[other]:
                return True
    return False


def _agents(text: Sequence[Token]) -> dict[str, str]:
    """Map who does what a passive tells, right behind "by" and maybe an article, to the word before "by"."""
    words = [token.key for token in text if token.key not in _ARTICLES]
    return {agent: verb for verb, by, agent in zip(words, words[1:], words[2:], strict=False) if by == "by"}


def _is_turned(
    one: str, other: str, stated: Sequence[Token], said: Sequence[Token], verb: str | None = None
) -> bool:
    """Tell whether `one` is before `other` in a statement and behind it in a sentence, with the same word between.

    That is `verb`, if it is given.
    """
    between: list[set[str]] = []
    for text, first, last in ((stated, one, other), (said, other, one)):
        keys = [token.key for token in text]
        if keys.count(first) != 1 or keys.count(last) != 1 or keys.index(first) > keys.index(last):
            return False
        inside = text[keys.index(first) + 1 : keys.index(last)]
        words = (token for token in inside if token.content and not token.name and not token.value)
        between.append({token.key for token in words})
    common = between[0] & between[1]
    return bool(common) if verb is None else verb in common


def _roles(text: Sequence[Token], names: Set[str]) -> dict[str, set[str]]:
    """Map each name and Chinese content word to the prepositions before it; "" where it has none."""
    roles: dict[str, set[str]] = {}
    before = ""
    for token in text:
        if token.content and not token.value and (token.key in names or not token.key.isascii()):
            roles.setdefault(token.key, set()).add(before)
        if token.key not in _ARTICLES:
            before = token.key if token.key in _ROLES else ""
    return roles


class _Comparison(NamedTuple):
    """ "Left is longer than right", each by its content words; `degree` is the comparative."""

    left: set[str]
    degree: str
    right: set[str]


def _is_comparison_turned(statement: str, sentence: str) -> bool:
    """Tell whether a statement exchanges the two sides of a sentence's "longer than"."""
    for stated, said in product(_comparisons(statement), _comparisons(sentence)):
        left, right = stated.left - stated.right, stated.right - stated.left
        was_right, was_left = said.right - said.left, said.left - said.right
        is_crossed = right & was_left or not right & was_right
        if stated.degree == said.degree and left & was_right and is_crossed:
            return True
    return False


def _comparisons(text: str) -> list[_Comparison]:
    """Return the comparisons of a text."""
    return [
        _Comparison(
            content_keys(tokens(match["left"])), match["degree"].lower(), content_keys(tokens(match["right"]))
        )
        for pattern in _COMPARISONS
        for match in pattern.finditer(text)
    ]


def _is_duty_of_another(statement: str, passage: PassageSource) -> bool:
    """Tell whether a passage gives a right or duty that a statement gives to one party only to other parties."""
    stated = _duties(statement)
    said = _duties(passage.plain()) if stated else []
    for name, action in stated:
        bound = {party for party, duty in said if action in duty or duty in action}
        if bound and name not in bound:
            return True
    return False


def _duties(text: str) -> list[tuple[str, str]]:
    """Return parties of a contract, each with something that it may, must or must not do."""
    return [(match["name"], letters_of(match["action"]).strip()) for match in _DUTY.finditer(text)]
