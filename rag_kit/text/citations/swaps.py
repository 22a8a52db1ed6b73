"""Whether a statement in the words of a passage exchanges two things: sides of a change, parties, labels, an order."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import pairwise, permutations
from typing import NamedTuple

from rag_kit.text.citations.change import VOICE
from rag_kit.text.citations.placing import IN_TURN, kind_of, supports
from rag_kit.text.citations.source import PassageSource, letters_of, posts_in, relations_in
from rag_kit.text.citations.tokens import JOINING, MODALS, Token, are_opposites, content_keys, tokens
from rag_kit.text.language import word_set
from rag_kit.text.values.reading import find_values
from rag_kit.text.values.value import Value

_LABELLED = re.compile(r"(?P<label>[^，,。；;：:]{2,16}?)(?:是|为|系|：|:)\s?(?P<text>[^，,。；;]{2,40})")
# two sides and what is between them; without a comparative, left is first or the cause, right second or the effect
_RELATIONS = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"(?P<left>[^.;,]*?)\b(?P<comparative>\w+er|(?:more|less|fewer)(?: \w+)?) than (?P<right>[^.;,()]+)",
        r"(?P<comparative>\w+er|(?:more|less) \w+) (?P<left>(?:in|for|by|at|on|with|among) [^.;,]*?)"
        r" than (?P<right>[^.;,()]+)",
        r"(?P<left>[^，。；]+?)比(?P<right>[^，。；]{1,12}?)[更还要]?(?P<comparative>[高低大小多少长短重轻快慢早晚贵好差强弱]|便宜)",
        r"(?P<left>[^。；]+?)(?<!不)(?P<comparative>[高低大小多少长短早晚优劣]于|不如|不及|超过)(?P<right>[^，。；\d]{2,16})",
        r"^\W*(?:before|prior to)\s(?P<right>[^,.;]+),(?P<left>[^.;]+)",
        r"^\W*(?:after|once|because|since|as)\s(?P<left>[^,.;]+),(?P<right>[^.;]+)",
        r"(?P<left>[^.;]+?)\b(?:before|prior to|and then)\s(?P<right>[^.;]+)",
        r"(?P<left>[^.;]+?)\bfirst\b(?=.*\b(?:then|afterwards|after that)\b),?\s(?:and\s)?(?P<right>[^.;]+)",
        r"(?P<left>[^.;]+?)\b(?:caus(?:e[sd]?|ing)|le(?:ads?|d) to|result(?:s|ed|ing) in)\s(?!by\b)(?P<right>[^.;]+)",
        r"(?P<right>[^.;]+?)\b(?:due to|caused by|as a result of|because(?: of)?|after|once)\s(?P<left>[^.;]+)",
        r"(?:因为|由于|因)(?P<left>[^，,。；]+)[，,](?P<right>[^。；]+)",
        r"(?P<right>[^。；]+?)[，,]?(?:是因为|原因是|[系是][由因])(?P<left>[^。；]+)",
        r"(?P<left>[^，。；]+?)[，,]?(?:导致|引发|造成|引起)了?(?P<right>[^，。；]+)",
        r"先(?P<left>[^。；]+?)[，,]?(?:再|然后|而后|接着|之?后)(?P<right>[^。；]+)",
        r"(?P<right>[^，。；]+?)之?前[，,](?P<left>[^。；]+)",
        r"(?P<left>[^，。；]+?)[之以]?后[，,]?(?P<right>[^。；]+)",
    )
]
_ROLES = word_set("to from by 将 把 给 向 从 由 被 到 往 至 对 请 让 要求 委托 邀请 授权 通知")
_ARTICLES = word_set("the a an")
_BE = word_set("is are was were be been being")
_FROM = re.compile(r"(?:\bfrom|从|由|自)\s?$", re.IGNORECASE)
_TO = re.compile(r"\s?(?:to|[^，。；\d]{0,6}[至到为成])\s?")
_CHANGES = re.compile(
    r"\b(?:chang|amend|rais|rose|ris|increas|reduc|extend|lower|revis|adjust|cut|mov|postpon|f[ae]ll|grew|grow|declin"
    r"|decreas|drop)\w*[^.;]{0,40} (?:(?P<by>by)|to) $"
    r"|(?:[增减降涨跌升提缩][\u4e00-\u9fff]?|修改|变更|调整|更改|修订|推迟|延期|延长|上调|下调|改)"
    r"(?:(?P<by_han>了)|后?[至到为成的][^，。；,;]{0,10})约?$",
    re.IGNORECASE,
)
_FALLS = re.compile(
    r"(?:下降|下跌|下滑|减少|降低|缩减|回落|\b(?:decreas|f[ae]ll|declin|drop|reduc|lower|down)\w*(?: by)?)了?约? ?$",
    re.IGNORECASE,
)
# headers of the old and new values in a table of changes
_OLD = re.compile(r"[前原旧]$|^[原旧]|^(?:before|former)\b|\b(?:before$|old\b|until\b)", re.IGNORECASE)
_NEW = re.compile(
    r"[后新]$|^新|起[)）]?$|^(?:after|revised)\b|\b(?:after$|new\b|(?:from|since|as of) \d)", re.IGNORECASE
)
_CHANGES_WITHIN = 60  # characters before a value in which a verb of change is looked for
_AGENT_WITHIN = 4  # tokens after "by" in which a name is looked for: "by the chief engineer, Ann"
_FROM_WITHIN = 6  # characters before a value in which "from" is looked for


def find_exchange(statement: str, passage: PassageSource, quote: str = "") -> str:
    """Return the reason why a statement exchanges things that the passage tells apart, or "".

    "number": the values before and after a change; "name": the texts of two labels, who holds a post, or what parties
    may and must do; "order": the sides of a comparison, first and second, cause and effect, or who does something to
    whom. For an order the statement must be in the words of a `quote`: in a paraphrase, it tells nothing.
    """
    if _is_change_turned(statement, passage) or _has_other_sign(statement, passage):
        return "number"
    if _is_mislabelled(statement, passage.labels):
        return "name"
    if any(_are_roles_swapped(statement, line) for line in passage.directed):
        return "order"
    if quote and (_are_sides_turned(statement, quote) or _are_roles_swapped(statement, quote)):
        return "order"
    return ""


def _is_change_turned(statement: str, passage: PassageSource) -> bool:
    """Tell whether a statement says "to 5" where its passage says only "from 5" or "by 5", and the like."""
    stated = _sides_of_change(statement)
    if not stated:  # most statements say nothing of a change: the passage is not read for one
        return False
    in_passage = [*_sides_of_change(passage.plain()), *_sides_of_columns(passage)]
    for side, value in stated:
        same = {(other_side, other.start) for other_side, other in in_passage if supports(other, value)}
        sides = {other_side for other_side, _ in same}
        is_elsewhere = sum(supports(place.value, value) for place in passage.places) > len(same)
        # what something changes from, it may have reached by an earlier change, but not by how much it changes
        may_be_from = side == "from" and (sides != {"by"} or is_elsewhere)
        if sides and side not in sides and not may_be_from:
            return True
    return False


def says_change(statement: str, passage: PassageSource) -> bool:
    """Tell whether a statement has each of its values on the side of a change on which the passage has it."""
    stated = _sides_of_change(statement)
    kinds = {kind_of(value) for _, value in stated}
    # also False of "raised from 5 to 7 EUR", where 7 counts twice: such a change may be another thing's
    if not stated or len(stated) != sum(kind_of(value) in kinds for value in find_values(statement)):
        return False
    in_passage = _sides_of_change(passage.plain())
    return all(
        any(side == other_side and supports(other, value) for other_side, other in in_passage)
        for side, value in stated
    )


def _sides_of_change(text: str) -> list[tuple[str, Value]]:
    """Return values with their sides of a change: "by" which, "from" which, or "to" which something changes.

    In "the fee rose by 2 EUR to 7 EUR" 2 EUR has the side "by", and 7 EUR "to".
    """
    sides: list[tuple[str, Value]] = []
    before: Value | None = None
    side_before = "from"
    for value in find_values(text):
        verb = _CHANGES.search(text, max(0, value.begin - _CHANGES_WITHIN), value.begin)
        is_difference = verb is not None and bool(verb["by"] or verb["by_han"])  # rose by 5%
        if verb:
            sides.append(("by" if is_difference else "to", value))
        if before and kind_of(before) == kind_of(value):
            has_from = _FROM.search(text, max(0, before.begin - _FROM_WITHIN), before.begin)
            is_from_to = has_from and _TO.fullmatch(text, before.end, value.begin)
            # the fee of 5 EUR was raised to 7 EUR; the fee went from 5 EUR to 7 EUR
            if is_from_to or (verb and not is_difference):
                sides += [(side_before, before), ("to", value)]
        before, side_before = value, "by" if is_difference else "from"
    return sides


def _sides_of_columns(passage: PassageSource) -> Iterator[tuple[str, Value]]:
    """Yield the values of a passage's tables whose header says that they are old ("from") or new ("to")."""
    for cell in (cell for row in passage.rows for cell in row.row):
        for side, pattern in (("from", _OLD), ("to", _NEW)):
            if pattern.search(cell.header):
                yield from ((side, value) for value in cell.values)


def _has_other_sign(statement: str, passage: PassageSource) -> bool:
    """Tell whether a statement has a rise by a value with a minus in the passage, or a fall by one with a plus."""
    cells = (cell for row in passage.rows for cell in row.row if cell.text.startswith("+"))
    with_plus = {value.normal for cell in cells for value in cell.values}
    normals = {place.value.normal for place in passage.places}
    with_minus = {normal[1:] for normal in normals if normal.startswith("-")} - normals
    for value in find_values(statement) if with_plus or with_minus else ():
        falls = _FALLS.search(statement, max(0, value.start - _CHANGES_WITHIN), value.start)
        if value.normal in (with_plus if falls else with_minus):
            return True
    return False


def _is_mislabelled(statement: str, labels: Mapping[str, Set[str]]) -> bool:
    """Tell whether a statement gives a label a text of another one: "Chair: Ben" for "Chair: Ann, Clerk: Ben"."""
    # values are compared elsewhere: a label may have its value in another form
    matches = (match for match in _LABELLED.finditer(statement) if not find_values(match["text"]))
    pairs = [(match["label"], match["text"]) for match in matches] + relations_in(statement)
    all_texts = set().union(*labels.values())
    for stated_label, stated_text in pairs:
        label, text = letters_of(stated_label).strip(), letters_of(stated_text).strip()
        own_texts = next((labels[name] for name in labels if len(name) > 1 and label.endswith(name)), None)
        if own_texts is None or not text or any(text in own or own in text for own in own_texts):
            continue
        if any(text in other for other in all_texts):
            return True
    return False


def says_posts(statement: str, passage: PassageSource) -> bool:
    """Tell whether a statement says who holds posts, and all as the passage does: 王强任经理 beside 经理由王强担任."""
    posts = [(letters_of(post).strip(), letters_of(who).strip()) for post, who in posts_in(statement)]
    return bool(posts) and all(who in passage.labels.get(post, ()) for post, who in posts)


class _Relation(NamedTuple):
    """Two sides of a text by their content words, and the comparative between them, or "" for cause or order."""

    left: set[str]
    comparative: str
    right: set[str]


def _are_sides_turned(statement: str, sentence: str) -> bool:
    """Tell whether a statement exchanges the sides of "longer than", or what is first or a cause in a sentence."""
    stated_relations = _relations(statement)
    of_sentence = _relations(sentence) if stated_relations else []
    for stated in stated_relations:
        for quoted in _with_comparative(of_sentence, stated.comparative):
            moved_left = (stated.left & quoted.right) - quoted.left
            moved_right = (stated.right & quoted.left) - quoted.right
            # a comparison may name its left side sentences before: "and was therefore faster than the kettle"
            may_lack_left = stated.comparative and not stated.right & quoted.right
            if moved_left and (moved_right or may_lack_left):
                return True
    return False


def _with_comparative(relations: Sequence[_Relation], comparative: str) -> list[_Relation]:
    """Return the relations with a comparative; if there are none, those with its opposite, their sides exchanged."""
    same = [relation for relation in relations if relation.comparative == comparative]
    if same or not comparative:
        return same
    # A is shorter than B: B is longer than A
    opposite = (one for one in relations if one.comparative and are_opposites(comparative, one.comparative))
    return [_Relation(one.right, comparative, one.left) for one in opposite]


def _relations(text: str) -> list[_Relation]:
    """Return what a text compares, or says to be the first or the cause of something.

    Example:
        >>> _relations("Ann is older than Ben.")
        [_Relation(left={'ann'}, comparative='older', right={'ben'})]
    """
    relations = []
    for pattern in _RELATIONS:
        for match in pattern.finditer(text):
            left, right = (content_keys(tokens(match[side])) for side in ("left", "right"))
            relations.append(_Relation(left, match.groupdict().get("comparative", "").lower(), right))
    return relations


def _are_roles_swapped(statement: str, sentence: str) -> bool:
    """Tell whether two names change roles: "from B to A" for "from A to B", or "B beat A" for "A beat B"."""
    stated, quoted = (
        [token for token in tokens(text) if token.key not in _ARTICLES] for text in (statement, sentence)
    )
    if _is_list_turned(stated, quoted):
        return True
    names = {token.key for token in (*stated, *quoted) if token.name}
    # a name that occurs twice may be on both sides of a verb
    counts, quoted_counts = (Counter(token.key for token in text) for text in (stated, quoted))
    once = {name for name in names if counts[name] == quoted_counts[name] == 1}
    roles, quoted_roles = _roles(stated, names, once), _roles(quoted, names, once)
    for a, b in permutations(roles.keys() & quoted_roles.keys(), 2):
        if (roles[a] & quoted_roles[b]) - quoted_roles[a] - roles[b]:  # a has taken a role of b
            return True
    return False


def has_other_agent(stated: Sequence[Token], sentence: Sequence[Token], passage: PassageSource) -> bool:
    """Tell whether another one must or may do something than in its sentence: one who does so in another sentence."""
    agents, quoted_agents = _agents(stated), _agents(sentence)
    before_modals = {token.key for token, modal in pairwise(stated) if modal.key in MODALS}
    if not agents or not quoted_agents or not before_modals.union(agents).isdisjoint(quoted_agents):
        return False
    agent = agents[0]
    if not any(agent in span.keys and agent in _agents(span.tokens) for span in passage.spans):
        return False
    is_in_sentence = agent in content_keys(sentence)
    return not is_in_sentence or quoted_agents[0] in content_keys(stated)


def _agents(text: Sequence[Token]) -> list[str]:
    """Return who must or may do something in an English text: the word before the modal verb, or those behind "by"."""
    words = [token for token in text if token.key not in _ARTICLES]
    keys = [token.key for token in words]
    modal = next((n for n, key in enumerate(keys) if key in MODALS and key.isascii()), 0)
    if modal and "by" in keys[modal:]:
        start = keys.index("by", modal) + 1
        agents = words[start : start + _AGENT_WITHIN]
    else:
        agents = words[max(0, modal - 1) : modal]  # none if there is no modal verb
    return [token.key for token in agents if token.thing and not token.value]


def _is_list_turned(stated: Sequence[Token], quoted: Sequence[Token]) -> bool:
    """Tell whether a statement has one of the two lists of a sentence with "respectively" in a new order, not both."""
    if not all(any(token.key in IN_TURN for token in text) for text in (stated, quoted)):
        return False
    positions = {token.key: number for number, token in enumerate(quoted) if token.content}
    order = [positions[token.key] for token in stated if token.content and token.key in positions]
    # a list in a new order lies between two cuts, before which all is smaller than all behind: 0 | 2 1 | 3
    cuts = [n for n in range(1, len(order)) if max(order[:n]) < min(order[n:])]
    lengths = [end - start for start, end in pairwise([0, *cuts, len(order)])]
    return sum(length > 1 for length in lengths) == 1


def _roles(text: Sequence[Token], names: Set[str], once: Set[str]) -> dict[str, set[str]]:
    """Map each word to its roles: A of "from A" has "from", and in "A beat B", if it occurs `once`, "left of beat"."""
    roles: dict[str, set[str]] = {}
    for before, token in pairwise([Token(""), *text]):
        if token.key in names or (token.content and not token.value):
            roles.setdefault(token.key, set()).update({before.key} & _ROLES)
    for name, side in _sides_of_verbs(text, once):
        roles[name].add(side)
    return roles


def _sides_of_verbs(text: Sequence[Token], names: Set[str]) -> Iterator[tuple[str, str]]:
    """Yield each of some names, which occur once, with its side of each word that may be a verb: "left of beat".

    In "B was beaten by A" only "beaten" counts, and sides are those of "A beat B". Nothing is yielded if "and" joins
    words, or another passive tells who acts.
    """
    keys = [token.key for token in text]
    by = [n for n, key in enumerate(keys) if key == "by" and n]
    # position of the verb before the first "by" that a name follows
    passive = next((n - 1 for n in by if not names.isdisjoint(keys[n + 1 : n + 1 + _AGENT_WITHIN])), None)
    if JOINING.intersection(keys) or (passive is None and VOICE.intersection(keys)):
        return
    name_positions = [(position, key) for position, key in enumerate(keys) if key in names]
    for verb, token in enumerate(text):
        may_be_verb = token.content and not token.value and not token.name and keys.count(token.key) == 1
        is_passive = keys[max(verb - 1, 0)] in _BE  # "was fixed in"
        if may_be_verb and (passive == verb or (passive is None and not is_passive)):
            for position, name in name_positions:
                is_left = position >= verb if passive == verb else position < verb
                yield name, f"{'left' if is_left else 'right'} of {token.key}"
