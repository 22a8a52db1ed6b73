"""Whether the values of a statement stand beside the words that they stand beside in its passage."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from itertools import pairwise
from typing import Literal, NamedTuple

from rag_kit.text.citations.cutting import Clause
from rag_kit.text.citations.tokens import JOINING, Token, content_keys
from rag_kit.text.values.value import TIMES, Value, same_value, uncounted

Placement = Literal["wrong", "all", "some", "open"]
IN_TURN = ("分别", "依次", "respect")
_MAX_PLACED = 20  # values of a statement that are compared by the words beside them


class ValuePlace(NamedTuple):
    """A value of a passage with the content words beside it.

    A sentence has parts, between its semicolons, and a part has clauses.
    """

    value: Value
    # other words of its clause; in a table, of cell, header and cells that name the row
    clause: frozenset[str]
    earlier: frozenset[str] = frozenset()  # words of earlier clauses of its sentence, also before a semicolon
    earlier_in_part: frozenset[str] = frozenset()  # and of those behind the semicolon
    section: int = -1  # the number of its part of a sentence
    order: int = 0  # its number among the passage's values


class CellTokens(NamedTuple):
    """The tokens of a cell and of its column's header."""

    header: list[Token]
    text: list[Token]
    answers: bool = False  # says yes or no to its header


def sentence_places(clauses: Sequence[Clause], earlier: Set[str], number: int) -> Iterator[ValuePlace]:
    """Yield the values of a part of a sentence, given its clauses, the words of earlier parts, and its number."""
    earlier_in_part = frozenset[str]()
    for clause in clauses:
        words = frozenset(content_keys(clause))
        names_of_others = _names_of_others(clause)
        for token in clause:
            if token.value:
                beside = words - {token.key} - names_of_others.get(token.key, set())
                yield ValuePlace(token.value, beside, earlier_in_part | earlier, earlier_in_part, number)
        earlier_in_part |= words


def _names_of_others(clause: Clause) -> dict[str, set[str]]:
    """Map each value of a clause to the words that belong to its other values.

    In 甲和乙分别为3万和5万, 3万 has 乙; in "from 5 in 2021 to 7 in 2022", 5 has 2022.
    """
    keys = [token.key for token in clause]
    if "from" in keys and "to" in keys:
        return _words_behind_values(clause)
    kinds = [(token.key, kind_of(token.value)) for token in clause if token.value]
    if not kinds or not any(key in IN_TURN for key in keys):
        return {}
    _, kind_of_last = kinds[-1]
    values = [key for key, kind in kinds if kind == kind_of_last]
    first_value = next(n for n, token in enumerate(clause) if token.key in values)
    before_values = clause[:first_value]
    names = [token.key for token in before_values if token.name or token.value]
    if len(names) != len(values):
        names = _things_joined(before_values, len(values))
    if len(names) != len(values):
        return {}
    return {value: set(names) - {name} for value, name in zip(values, names, strict=True)}


def _words_behind_values(clause: Clause) -> dict[str, set[str]]:
    """Map the values of "from 5 t in 2021 to 7 t in 2022" to what is behind the other one; {} if one has nothing."""
    before = {word.key: n for n, (word, token) in enumerate(pairwise(clause), 1) if token.value}
    first, last = before.get("from", 0), before.get("to", 0)
    behind = content_keys(clause[first + 1 : last]), content_keys(clause[last + 1 :])
    is_change = 0 < first < last and all(behind)
    return {clause[last].key: behind[0], clause[first].key: behind[1]} if is_change else {}


def _things_joined(text: Sequence[Token], count: int) -> list[str]:
    """Return the `count` things that the first "and" joins: "tea, milk and sugar cost" -> tea, milk, sugar."""
    joint = next((number for number, token in enumerate(text) if token.key in JOINING), 0)
    before = [token.key for token in text[:joint] if token.content]
    after = [token.key for token in text[joint:] if token.content]
    return [*before[1 - count :], *after[:1]]  # one thing is behind the "and", the others before it


def row_places(cells: Sequence[CellTokens]) -> Iterator[ValuePlace]:
    """Yield the values of a row; beside each are its column's header and the cells that name the row."""
    keys_of_cells = [content_keys([*cell.header, *cell.text]) for cell in cells]
    names: set[str] = set()  # words of cells that hold no measure, with their headers
    for cell, keys in zip(cells, keys_of_cells, strict=True):
        if {token.value.dimension for token in cell.text if token.value} <= {"id"}:  # nothing is measured
            names |= keys
    for cell, keys in zip(cells, keys_of_cells, strict=True):
        for token in cell.text:
            if token.value:
                yield ValuePlace(token.value, frozenset((names | keys) - {token.key}))


def supports(value: Value, stated: Value) -> bool:
    """Tell whether a value of a passage supports a stated one: equal, or the same with less of its unit.

    A passage with "900 EUR a month" or "900 EUR" supports "900 EUR" or "900".
    """
    if same_value(stated, value):
        return True
    if stated.bound and value.bound and stated.bound != value.bound:
        return False
    if value.amount < 0 < stated.amount and value.dimension == "ratio":  # by 3%, where a table has -3%
        return same_value(stated, value._replace(amount=-value.amount))
    if stated.dimension:  # 900 EUR, for 900 EUR a month
        return bool(value.per) and not stated.per and same_value(stated, uncounted(value))
    is_share = value.dimension in ("ratio", "points", "basis points")
    return bool(value.unit) and not is_share and stated.amount == value.amount


def place_values(stated: Sequence[Token], places: Sequence[ValuePlace]) -> Placement:
    """Tell whether the passage has the values of a statement beside the same words, so that none were exchanged.

    Args:
        stated: The tokens of the statement.
        places: The values of the passage.

    Returns:
        "wrong" if another value fits the words better; "all" or "some" if that many of the values that could be
        exchanged surely fit; "open" if nothing tells.
    """
    tokens = [token for token in stated if token.value][:_MAX_PLACED]
    values = [token.value for token in tokens if token.value]
    fits = [_fit_of_value(token, content_keys(stated), values, places) for token in tokens]
    if "wrong" in fits:
        return "wrong"
    if "sure" not in fits:
        return "open"
    return "some" if "unsure" in fits else "all"


def _fit_of_value(
    token: Token, words: Set[str], stated_values: Sequence[Value], places: Sequence[ValuePlace]
) -> Literal["wrong", "sure", "unsure", "alone"]:
    """Compare how a value of a statement and its rivals in the passage fit the words of the statement.

    Returns:
        "wrong" if a rival fits better, "unsure" if one fits as well, "sure" if none does, "alone" without rivals.
    """
    value = token.value
    # identifiers name the rows of a table
    if value is None or (value.dimension == "id" and any(place.section < 0 for place in places)):
        return "alone"
    same = [place for place in places if supports(place.value, value)]
    # if some have the same bound, only these count
    same = [place for place in same if place.value.bound == value.bound] or same
    rivals = _rivals(value, kind_of(same[0].value), stated_values, places) if same else []
    beside = words - {token.key}
    best = max(same, key=lambda place: _shared_counts(beside, place), default=None)
    if any(best and _is_nearer(beside, rival, best) for rival in rivals):
        return "wrong"
    # twelve months may be wrong beside two weeks, but tell nothing where they are right
    rivals = [rival for rival in rivals if kind_of(rival.value) in (kind_of(same[0].value), kind_of(value))]
    if best is None or not rivals:
        return "alone"
    counts = _shared_counts(beside, best)
    is_nearest = all(
        counts > _shared_counts(beside, rival) or _is_more_exact(beside, best, rival) for rival in rivals
    )
    return "sure" if is_nearest else "unsure"


def _rivals(
    value: Value, kind: str, stated_values: Sequence[Value], places: Sequence[ValuePlace]
) -> list[ValuePlace]:
    """Return the values of a passage of a stated value's kind, or of another `kind`, that the statement does not have.

    A number without a unit, such as 45 persons, may be any value, and its rivals are such numbers, too.
    """
    kinds = {kind, kind_of(value)}
    kinds.update(TIMES if not kinds.isdisjoint(TIMES) else ())  # two weeks and twelve months
    return [
        place
        for place in places
        if kind_of(place.value) in kinds
        # a day without a year (-07-13) is no rival of a date with one
        and place.value.key.startswith("-") == value.key.startswith("-")
        and not any(supports(place.value, stated) for stated in stated_values)
    ]


def kind_of(value: Value) -> str:
    """Return the dimension of a value without the units that it is counted by."""
    return value.dimension.split("/")[0]


def _is_nearer(words: Set[str], rival: ValuePlace, best: ValuePlace) -> bool:
    """Tell whether a rival fits the words of a statement better than `best`, the value that the statement has.

    It must share more words, and no fewer of its clause; a later one also needs a word that goes with it alone.
    """
    counts, best_counts = _shared_counts(words, rival), _shared_counts(words, best)
    if counts == best_counts:
        return _is_more_exact(words, rival, best)
    if counts < best_counts:
        return False
    # "14 months with the drug and 9 months in the control arm": the second has a word of its own, and no other
    shares_clause = rival.clause <= words or len(words & rival.clause) >= len(words & best.clause)
    near_rival = rival.clause
    if rival.section != best.section:
        near_rival |= rival.earlier_in_part
    goes_with_rival_alone = not words.isdisjoint(near_rival - best.clause - best.earlier)
    # the bound tells "at least 5" and "at most 7" apart
    have_opposite_bounds = {rival.value.bound, best.value.bound} == {"min", "max"}
    may_be_first = rival.order < best.order and not (have_opposite_bounds and rival.section == best.section)
    return shares_clause and (goes_with_rival_alone or may_be_first)


def _is_more_exact(words: Set[str], one: ValuePlace, other: ValuePlace) -> bool:
    """Tell whether a statement has all words that only `one` has beside it, and lacks one of `other` ("large")."""
    return _has_all(words, one.clause - other.clause) and not _has_all(words, other.clause - one.clause)


def _has_all(words: Set[str], beside: Set[str]) -> bool:
    """Tell whether a statement has all of the words beside a value, maybe in a longer form: "maximum" for "max"."""
    return all(any(stated.startswith(word) for stated in words) for word in beside)


def _shared_counts(words: Set[str], place: ValuePlace) -> tuple[int, ...]:
    """Count the words beside a value: in its sentence and part up to it, and in its clause."""
    clause = place.clause
    near = (clause | place.earlier, clause | place.earlier_in_part, clause)
    return tuple(len(words & beside) for beside in near)
