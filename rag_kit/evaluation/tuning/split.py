"""Which questions a search sees, which are held aside for its winner, and in what order they are asked."""

from __future__ import annotations

import hashlib
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from rag_kit.errors import InvalidInputError
from rag_kit.evaluation.examples import Example

_MOST_VALUES = 12
"""A tag with more values than this names the questions rather than their kinds."""
_LEAST = 3
"""Questions of a kind that are cut for themselves; kinds with fewer are cut together."""


@dataclass(frozen=True)
class Split:
    """The two parts of a set.

    Args:
        search: What the settings are searched with, in the order of asking: any beginning of it is mixed as the
            whole is.
        held: What the winner is judged with, once.
        tags: The tags whose values both parts hold in like shares.
    """

    search: tuple[Example, ...]
    held: tuple[Example, ...]
    tags: tuple[str, ...]


def split_examples(examples: Sequence[Example], held_aside: float, seed: int) -> Split:
    """Cut a set in two, by tags where they allow it; the same examples and seed give the same parts in any order.

    Questions with the same words, letter case aside, stay on one side.

    Args:
        examples: The questions.
        held_aside: Share that is held aside, from 0 to 0.9.
        seed: Another seed is another cut.

    Raises:
        InvalidInputError: If a part has fewer than 2 questions.

    Example:
        >>> examples = [Example(str(n), f"Question {n}?", tags={"type": "ab"[n % 2]}) for n in range(20)]
        >>> split = split_examples(examples, 0.3, 0)
        >>> len(split.search), sorted(example.tags["type"] for example in split.held), split.tags
        (14, ['a', 'a', 'a', 'b', 'b', 'b'], ('type',))
    """
    by_words: dict[str, list[Example]] = defaultdict(list)
    for example in sorted(examples, key=lambda example: example.id):
        by_words[" ".join(example.question.casefold().split())].append(example)
    groups = list(by_words.values())
    tags = _telling_tags(groups)
    strata = _strata(groups, tags)
    rest = [name for name, members in strata.items() if len(members) < _LEAST]
    joined = [group for name in rest for group in strata.pop(name)]  # too small to be cut each for itself
    if joined:
        strata[()] = joined
    for members in strata.values():
        members.sort(key=lambda group: _draw(seed, group[0].id))
    shares = _shares({name: len(members) for name, members in strata.items()}, held_aside)
    held = {name: members[: shares[name]] for name, members in strata.items()}
    search = {name: members[shares[name] :] for name, members in strata.items()}
    split = Split(_mixed(search, seed), _mixed(held, seed), tags)
    if len(split.search) < 2 or (held_aside and len(split.held) < 2):
        raise InvalidInputError(
            f"{len(examples)} questions with held_aside={held_aside:g} leave {len(split.search)} to search with and "
            f"{len(split.held)} to judge the winner with; each part needs at least 2, and 30 to tell anything"
        )
    return split


def blocks(count: int, first: int = 8) -> list[int]:
    """Where a setting may be given up: after so many questions, each time twice as many, the last time all.

    Args:
        count: Questions there are.
        first: Fewest questions before a setting is given up.

    Example:
        >>> blocks(100), blocks(14)
        ([13, 25, 50, 100], [14])
    """
    ends = [count]
    while (half := math.ceil(ends[0] / 2)) >= first:
        ends.insert(0, half)
    return ends


def _telling_tags(groups: Sequence[list[Example]]) -> tuple[str, ...]:
    """Tags that name kinds of questions, as many as leave few questions in kinds too small to be cut."""
    values = defaultdict(set)
    for group in groups:
        for tag, value in group[0].tags.items():
            values[tag].add(value)
    chosen: tuple[str, ...] = ()
    for tag in sorted(values, key=lambda tag: (len(values[tag]), tag)):
        if len(values[tag]) > _MOST_VALUES:
            continue
        strata = _strata(groups, (*chosen, tag))
        small = sum(len(members) for members in strata.values() if len(members) < _LEAST)
        if len(strata) > len(_strata(groups, chosen)) and small <= 0.2 * len(groups):
            chosen = (*chosen, tag)
    return chosen


def _strata(
    groups: Sequence[list[Example]], tags: tuple[str, ...]
) -> dict[tuple[str, ...], list[list[Example]]]:
    strata: dict[tuple[str, ...], list[list[Example]]] = defaultdict(list)
    for group in groups:
        strata[tuple(group[0].tags.get(tag, "") for tag in tags)].append(group)
    return strata


def _draw(seed: int, name: str) -> str:
    return hashlib.sha256(f"{seed}\n{name}".encode("utf-8", "backslashreplace")).hexdigest()


def _shares(sizes: dict[tuple[str, ...], int], share: float) -> dict[tuple[str, ...], int]:
    """How many of each stratum: the largest remainders round up, so that the sum is the share of the whole."""
    exact = {name: size * share for name, size in sizes.items()}
    taken = {name: math.floor(value + 1e-9) for name, value in exact.items()}
    missing = round(sum(sizes.values()) * share) - sum(taken.values())
    for name in sorted(exact, key=lambda name: (taken[name] - exact[name], name))[: max(0, missing)]:
        taken[name] += 1
    return taken


def _mixed(strata: dict[tuple[str, ...], list[list[Example]]], seed: int) -> tuple[Example, ...]:
    placed = [
        ((place + 0.5) / len(members), _draw(seed, group[0].id), group)
        for members in strata.values()
        for place, group in enumerate(members)
    ]
    return tuple(example for _, _, group in sorted(placed, key=lambda item: item[:2]) for example in group)
