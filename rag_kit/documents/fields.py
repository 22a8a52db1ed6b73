"""Metadata fields of filters and of documents, and the error for a filter on a field that no document has."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

from rag_kit.documents.clean import clean_text
from rag_kit.documents.filters import Filter, translate
from rag_kit.documents.provenance import PROVENANCE_KEY
from rag_kit.errors import InvalidInputError

Fields = dict[str, bool]
"""Name of a field -> whether some document has a list there."""

_MAX_LISTED = 40


def fields_of_filter(where: Filter | None) -> Fields:
    """The fields that a filter tests, and whether a field must be a list.

    A field that the filter asks for with ``$exists`` may be missing.

    Example:
        >>> fields_of_filter({"year": 2020, "tags": {"$contains": "a"}, "draft": {"$exists": False}})
        {'year': False, 'tags': True}
    """
    operators: defaultdict[str, set[str]] = defaultdict(set)

    def note(key: str, operator: str, operand: object, negated: bool) -> str:
        operators[key].add(operator)
        return key

    translate(where, note, lambda word, keys: keys)
    return {key: "$contains" in found for key, found in operators.items() if "$exists" not in found}


def lacking(wanted: Mapping[str, bool], known: Mapping[str, bool]) -> Fields:
    """The fields that are wanted and not known; also where a list is wanted and the field is none."""
    return {key: many for key, many in wanted.items() if key not in known or (many and not known[key])}


def read_fields(rows: Iterable[Mapping[str, Any]], wanted: Mapping[str, bool]) -> tuple[Fields, bool]:
    """Read metadata until all fields that are wanted were seen.

    Returns:
        The fields seen, and whether all rows were read.
    """
    seen: Fields = {}
    left = dict(wanted)
    for row in rows:
        for name, value in row.items():
            if value is not None and name != PROVENANCE_KEY:
                many = isinstance(value, (list, tuple, set, frozenset))
                seen[name] = seen.get(name, False) or many
        if left and not (left := lacking(left, seen)):
            return seen, False
    return seen, True


def unknown_field(
    missing: Mapping[str, bool], known: Mapping[str, bool], *, listed: bool = True
) -> InvalidInputError:
    """The error for a filter that no document can pass because of its fields; it names fields, never values.

    Args:
        missing: What the filter asks for.
        known: The fields there are.
        listed: Whether they may be named: not to who may see only some of the documents.
    """
    name = next(iter(missing))
    names = [clean_text(each)[:60] for each in islice(sorted(known), _MAX_LISTED)]
    more = f" and {len(known) - _MAX_LISTED} more" if len(known) > _MAX_LISTED else ""
    there = f"The fields there are: {', '.join(names)}{more}."
    asked = f"The filter asks for {name!r:.80}, a field that no document has{did_you_mean(name, names)}."
    if not listed:
        asked = (
            f"The filter asks for {name!r:.80}, which no document has (or not as a list, as $contains asks)."
        )
        there = "The fields there are stay unnamed, since the retriever has a filter of its own."
    elif name in known:
        asked = f"The filter asks with $contains for {name!r:.80}, which is a list in no document."
    return InvalidInputError(
        f"{asked} {there} $contains asks whether a list holds a value; it does not search inside a text; for a folder "
        "write {'file': {'$startswith': 'folder/'}}. Where a field may be missing, say so: {'$exists': false}."
    )


def did_you_mean(name: str, allowed: Iterable[str]) -> str:
    """A hint at the allowed name that is spelled most like a wrong one; empty where none is alike.

    Example:
        >>> did_you_mean("yaer", ["source", "year"])
        " (did you mean 'year'?)"
    """
    import difflib  # needed only after a mistake

    close = difflib.get_close_matches(name, list(allowed), n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""
